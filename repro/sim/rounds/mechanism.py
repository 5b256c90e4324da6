"""The round mechanism of one run: X, what was received of it, and the round that runs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from repro.core.decision import Run, RunSet, Shares
from repro.core.jobs import JobTable
from repro.core.speeds import Speeds
from repro.errors import PolicyError
from repro.sim.rounds.feasible import checked, in_order
from repro.sim.rounds.ideal import Ideal, spread
from repro.sim.rounds.ledger import Ledger
from repro.sim.rounds.settings import RoundSettings
from repro.sim.rounds.whole_steps import WholeSteps

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NOTHING = RunSet((), keep=True)
#: Rounds that are played in one go at most.
_AHEAD = 64


class RoundMechanism:
    """Realises the `Shares` of one run by whole rounds.

    Parameters
    ----------
    table : JobTable
        Job state; the progress of whole steps is written here.
    speeds : Speeds
        Throughputs and GPUs by type.
    policy : str
        Name for messages.
    settings : RoundSettings
        How rounds go.
    tells_types : bool
        Whether the policy tells GPU types apart (the others see them in shuffled order).
    pairs_up : bool
        Whether any two jobs of one gang size may share GPUs.
    idle_ok : bool
        Leave GPUs idle rather than give them to jobs without a share.
    seed : int
        Seed of the shuffled order.
    ahead : bool
        With whole steps, play rounds on as long as nothing happens; nobody is told of their runs,
        nor of those of ideal execution.

    References
    ----------
    Gavel, OSDI 2020, section 5 (Algorithm 1).
    """

    def __init__(
        self,
        table: JobTable,
        speeds: Speeds,
        policy: str,
        settings: RoundSettings,
        *,
        tells_types: bool = True,
        pairs_up: bool = False,
        idle_ok: bool = False,
        seed: int = 0,
        ahead: bool = False,
    ) -> None:
        self.table, self.speeds, self.policy, self.settings = table, speeds, policy, settings
        self._idle_ok, self._pairs_up = idle_ok, pairs_up
        #: whether the seed matters
        self.shuffles = settings.ideal is None and settings.shuffle_types and not tells_types
        # the public simulator's stream for this purpose
        self._shuffler = random.Random(seed + 5)
        kinds = len(speeds.gpu_types)
        #: faster generations last in the alphabet: v100, p100, k80
        self._order = list(range(kinds))[::-1]
        self._capacity = speeds.gpu_counts.astype(np.int64)
        self._ledger = Ledger(table.count, kinds, settings.prior_rounds * settings.round_s)
        self._widths = np.array(table.gpus, dtype=np.int64)
        self._taken = np.zeros(table.count, dtype=np.bool_)
        #: column of the GPU type each job holds and the job it shares with, -1 for none
        self._held = np.full(table.count, -1)
        self._partner = np.full(table.count, -1)
        self._running = np.empty(0, dtype=np.int64)
        self._alone: dict[tuple[int, int], Run] = {}
        self._unplaced: list[int] = []
        self._computed = -math.inf
        #: what keeps count of progress by itself; None: the engine does
        self._steps: WholeSteps | Ideal | None = None
        if settings.ideal == "artifact" or (self.fluid and ahead and speeds.known):
            whole = settings.ideal == "artifact"
            self._steps = Ideal(table, speeds, policy, whole=whole, ahead=ahead)
        elif settings.whole_steps and not self.fluid:
            self._steps = WholeSteps(table, speeds, settings, idle_ok, ahead)
        #: orders of the types in the rounds to come
        self._drawn = np.array([self._order] * (0 if self.shuffles else _AHEAD), dtype=np.int64)
        #: pairs that began to share GPUs, and where
        self.together: list[tuple[int, int, str | None]] = []
        self.has_shares = False

    # what the driver asks ------------------------------------------------------------------------

    @property
    def fluid(self) -> bool:
        """Whether every job progresses at its shares, without rounds."""
        return self.settings.ideal == "fluid"

    def boundary(self, now: float) -> bool:
        """Tell whether a round begins now."""
        if self.fluid:
            return True
        if self._steps:
            return now >= self._steps.until
        length = self.settings.round_s
        return abs(now / length - round(now / length)) < 1e-9

    def next_boundary(self, now: float) -> float:
        """Return the beginning of the next round (s)."""
        if self.fluid:
            return math.inf
        if self._steps:
            if self._steps.until > now:
                return self._steps.until
            # nobody runs: the next arrival is the next round, and without one the next X
            again = self._computed + self.settings.min_realloc_interval_s
            return math.inf if self.table.arrived < self.table.count else max(again, now + 1.0)
        length = self.settings.round_s
        return (math.floor(now / length + 1e-9) + 1) * length

    def may_compute(self, now: float) -> bool:
        """Tell whether enough time has passed since X was computed."""
        early = now - self._computed < self.settings.min_realloc_interval_s
        return not early or self._computed <= 0

    def arrive(self, job: int) -> None:
        """Take note of an arrival."""
        self._unplaced.append(job)

    def finish(self, job: int, now: float) -> None:
        """Forget a finished job."""
        self._ledger.finish(job)
        self._held[job] = -1
        if self._steps:
            self._steps.finish(job, now)

    def settle(self, now: float) -> None:
        """Book the round that has just ended."""
        if self._steps:
            self._steps.settle(self._ledger, now)

    def tell(self) -> None:
        """Write into the job table what it was not yet told."""
        if self._steps:
            self._steps.tell()

    def units_left(self, jobs: Sequence[int]) -> Floats | None:
        """Return the units of work left when the last round ended; None: ask the job table."""
        return self._steps.units_left(jobs) if self._steps else None

    def adopt(self, shares: Shares, now: float) -> None:
        """Take over a new allocation matrix after checking it; rounding errors are trimmed."""
        kinds = self.speeds.gpu_types
        members, x = shares.members, shares.fractions
        if x.shape != (len(members), len(shares.gpu_types)) or not set(shares.gpu_types) <= set(
            kinds
        ):
            raise PolicyError(
                f"policy {self.policy!r}: shares of shape {x.shape} for {len(members)} rows "
                f"and the GPU types {shares.gpu_types}; the cluster has {kinds}"
            )
        if shares.gpu_types != kinds:
            columns = np.zeros((len(x), len(kinds)))
            columns[:, [kinds.index(kind) for kind in shares.gpu_types]] = x
            x = columns
        ids = self.table.ids
        x = checked(members, x, self._widths, self.speeds, ids, f"policy {self.policy!r}", now)
        members, x = in_order(members, x)
        elapsed = now - self._computed if self.has_shares else 0.0
        self._ledger.renew(members, x, self._pace(members), elapsed)
        self._unplaced.clear()
        self._computed, self.has_shares = now, True

    def clear(self, now: float) -> bool:
        """Begin a round without jobs; tell whether that counts as a computation of X."""
        if self._steps is None or self.fluid:
            return False
        self._orders()
        self._forget(1)
        if not self.may_compute(now):
            return False
        nobody = np.empty((0, 2), dtype=np.int64)
        none = np.empty((0, len(self.speeds.gpu_types)))
        self._ledger.renew(nobody, none, self._pace(nobody), now - self._computed)
        self._computed = now
        return True

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Choose the runs of the round that begins now; ``changed`` if X waits to be computed."""
        if isinstance(self._steps, Ideal):
            return self._steps.begin(self._ledger, now)
        if self.fluid:
            return RunSet(spread(self._ledger, self.speeds, self.table, self.policy), "exact")
        if self._unplaced:
            fresh = [job for job in self._unplaced if job in self.table.active]
            self._unplaced.clear()
            rows = self._newcomers(fresh)
            self._ledger.add(rows, self._pace(rows))
        return self._whole_round(now, changed) if self._steps else self._grid_round()

    @property
    def patient(self) -> bool:
        """Whether rounds of whole steps are played to their end with nobody watching."""
        return isinstance(self._steps, WholeSteps) and self._steps.ahead

    @property
    def foretells(self) -> bool:
        """Whether completions follow from the steps of a round, not from rates."""
        return self._steps is not None

    def endings(self) -> Sequence[tuple[float, int]] | None:
        """Return the completions to come in place of those told before; None: no news."""
        if self._steps is None:
            return None
        found, self._steps.endings = self._steps.endings, None
        return found

    # the choice ----------------------------------------------------------------------------------

    def _newcomers(self, fresh: list[int]) -> Ints:
        """Return the rows of jobs that arrived since X: alone and, where jobs share, with others.

        Only where such rows may be chosen, and then do not run, do the pairs make a difference.
        """
        alone = np.array([(job, -1) for job in fresh], dtype=np.int64).reshape(-1, 2)
        if not self._pairs_up or not self.settings.drop_unallocated or self._idle_ok:
            return alone
        ledger, rows = self._ledger, [alone[:0]]
        there = ledger.members[ledger.alive & (ledger.members[:, 1] < 0), 0]
        for number, job in enumerate(fresh):
            rows.append(alone[number : number + 1])
            others = there[self._widths[there] == self._widths[job]]
            rows.append(np.stack([others, np.full(len(others), job)], axis=1))
            there = np.append(there, job)
        return np.concatenate(rows)

    def _pace(self, members: Ints) -> Floats:
        """Return the steps per second of rows; where no table tells, those of the trace."""
        pace = self.speeds.rows(members)
        if self.speeds.known or not self.table.counts_steps:
            return pace
        solo = np.array(self.table.solo)[np.where(members >= 0, members, members[:, :1])]
        slowed: Floats = pace / solo[:, :, None]
        return slowed

    def _orders(self) -> Ints:
        """Return the types in the order in which this round and those to come fill them."""
        if not self.shuffles:
            return self._drawn
        if not len(self._drawn):
            self._drawn = np.array([self._order] * _AHEAD)
            for order in self._drawn:
                drawn = order.tolist()
                self._shuffler.shuffle(drawn)
                order[:] = drawn
        return self._drawn

    def _forget(self, rounds: int) -> None:
        """Forget the orders of rounds that were played."""
        if self.shuffles:
            self._drawn = self._drawn[rounds:]

    def _whole_round(self, now: float, changed: bool) -> RunSet:
        """Play a round of whole steps, and those after it if nobody is told."""
        steps, table = self._steps, self.table
        assert isinstance(steps, WholeSteps)
        limit = table.submit[table.arrived] if table.arrived < table.count else math.inf
        if changed:
            limit = min(limit, self._computed + self.settings.min_realloc_interval_s)
        # what comes within a rounding of the end of a round belongs to it
        orders = self._orders()[: _AHEAD if steps.ahead else 1]
        last, played = steps.play(self._ledger, orders, now, limit * (1 - 1e-9))
        self._forget(played.rounds)
        for one, two, kind in played.began.tolist():
            self.together.append((one, two, self.speeds.gpu_types[kind]))
        if steps.ahead:
            return NOTHING
        stops = played.moved[~steps.holds(played.moved)]
        return self._told(last.rows[played.fresh], last.kinds[played.fresh], stops)

    def _grid_round(self) -> RunSet:
        """Choose for a round of the grid; who keeps the GPUs is not named."""
        # the compiler takes longer to import than most runs to simulate
        from repro.sim.rounds.greedy import ranks, walk

        ledger, held, partner, settings = self._ledger, self._held, self._partner, self.settings
        rows, kinds = walk(
            ledger.members,
            self._widths[ledger.members[:, 0]],
            ledger.able,
            ranks(ledger.x, ledger.time, ledger.total, settings.prior_rounds == 0),
            ledger.owed,
            ledger.x,
            self._capacity,
            self._orders()[0],
            settings.whole_queue,
            self._idle_ok,
            self._taken,
        )
        self._forget(1)
        if settings.drop_unallocated:
            kept = ledger.allocated[rows]
            rows, kinds = rows[kept], kinds[kept]
        one, two = ledger.members[rows, 0], ledger.members[rows, 1]
        fresh = (held[one] != kinds) | (partner[one] != two)
        second = two >= 0
        if not settings.lease_renewal:
            fresh[:] = True
        ledger.give(rows, kinds, settings.round_s)
        new = second & fresh
        named = [self.speeds.gpu_types[kind] for kind in kinds[new]]
        self.together += zip(one[new].tolist(), two[new].tolist(), named, strict=True)
        chosen, before, still = np.concatenate([one, two[second]]), self._running, self._taken
        still[chosen] = True
        stops = before[~still[before] & (held[before] >= 0)]
        still[chosen] = False
        held[stops] = partner[stops] = -1
        held[one], partner[one] = kinds, two
        held[two[second]], partner[two[second]] = kinds[second], one[second]
        self._running = chosen
        return self._told(rows[fresh], kinds[fresh], stops)

    def _told(self, rows: Ints, kinds: Ints, stops: Ints) -> RunSet:
        """Return the changes of a round: rows that begin, and jobs that stop."""
        members = self._ledger.members[rows]
        runs = zip(members[:, 0].tolist(), members[:, 1].tolist(), kinds.tolist(), strict=True)
        return RunSet([self._run(*run) for run in runs], keep=True, stop=stops.tolist())

    def _run(self, one: int, two: int, kind: int) -> Run:
        """Return a run; the same one each time for a job alone."""
        if two >= 0:
            return Run((one, two), self.table.gpus[one], self.speeds.gpu_types[kind])
        found = self._alone.get((one, kind))
        if found is None:
            found = Run((one,), self.table.gpus[one], self.speeds.gpu_types[kind])
            self._alone[one, kind] = found
        return found
