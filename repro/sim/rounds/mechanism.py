"""The round mechanism of one run: X, what was received of it, and the round that runs."""

import math
import random

import numpy as np

from repro.core.decision import Run, RunSet, Shares
from repro.core.jobs import JobTable
from repro.core.policy import Policy
from repro.core.speeds import Speeds
from repro.errors import PolicyError
from repro.sim.rounds.feasible import checked, in_order
from repro.sim.rounds.ideal import Ideal, spread
from repro.sim.rounds.ledger import Ledger
from repro.sim.rounds.settings import RoundSettings
from repro.sim.rounds.whole_steps import WholeSteps
from repro.typing import Floats, Ints

NOTHING = RunSet((), keep=True)
#: Rounds that are simulated in one call at most.
_AT_ONCE = 64


class RoundMechanism:
    """Realises the `Shares` of one run by rounds (Gavel, OSDI 2020, section 5, Algorithm 1).

    With ``silent``, whole stretches of rounds are simulated in one call until the next arrival or
    completion; intermediate placements are not reported.
    """

    def __init__(
        self,
        table: JobTable,
        speeds: Speeds,
        policy: Policy,
        settings: RoundSettings,
        *,
        seed: int = 0,
        silent: bool = False,
    ) -> None:
        self.table, self.speeds, self.policy, self.settings = table, speeds, policy, settings
        #: whether the seed matters
        self.shuffles = settings.ideal is None and settings.shuffle_types and not policy.tells_types
        # the public simulator's stream for this purpose
        self._shuffler = random.Random(seed + 5)
        types = len(speeds.gpu_types)
        #: faster generations last in the alphabet: v100, p100, k80
        self._order = list(range(types))[::-1]
        self._capacity = speeds.gpu_counts.astype(np.int64)
        self._ledger = Ledger(table.count, types, settings.prior_rounds * settings.round_s)
        self._widths = np.array(table.gpus, dtype=np.int64)
        self._taken = np.zeros(table.count, dtype=np.bool_)
        #: column of the GPU type each job holds and the job it shares with, -1 for none
        self._held = np.full(table.count, -1)
        self._partner = np.full(table.count, -1)
        self._running = np.empty(0, dtype=np.int64)
        self._alone: dict[tuple[int, int], Run] = {}
        #: jobs that arrived since X was computed and have no row yet
        self._unplaced: list[int] = []
        self._computed = -math.inf
        #: every job progresses at its shares, without rounds
        self.fluid = settings.ideal == "fluid"
        #: what keeps count of progress and foresees completions; None: the engine does
        self.steps: WholeSteps | Ideal | None = None
        if settings.ideal == "artifact" or (self.fluid and silent and speeds.known):
            whole = settings.ideal == "artifact"
            self.steps = Ideal(table, speeds, policy.name, whole=whole, silent=silent)
        elif settings.whole_steps and not self.fluid:
            self.steps = WholeSteps(table, speeds, settings, policy.idle_ok, silent)
        #: orders of the types in the rounds to come
        self._orders = np.array([self._order] * (0 if self.shuffles else _AT_ONCE), dtype=np.int64)
        #: pairs that began to share GPUs, and where
        self.together: list[tuple[int, int, str | None]] = []
        self.has_shares = False

    # what the driver asks ------------------------------------------------------------------------

    @property
    def takes_late_events(self) -> bool:
        """Whether rounds of whole steps are simulated in one call until something happens."""
        return isinstance(self.steps, WholeSteps) and self.steps.silent

    def boundary(self, now: float) -> bool:
        """Tell whether a round begins now."""
        if self.fluid:
            return True
        if self.steps:
            return now >= self.steps.until
        length = self.settings.round_s
        return abs(now / length - round(now / length)) < 1e-9

    def next_boundary(self, now: float) -> float:
        """Return the beginning of the next round (s)."""
        if self.fluid:
            return math.inf
        if self.steps:
            if self.steps.until > now:
                return self.steps.until
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
        """Queue a job that has no row in X yet."""
        self._unplaced.append(job)

    def finish(self, job: int, now: float) -> None:
        """Forget a finished job."""
        self._ledger.finish(job)
        self._held[job] = -1
        if self.steps:
            self.steps.finish(job, now)

    def settle(self, now: float) -> None:
        """Book the round that has just ended."""
        if self.steps:
            self.steps.settle(self._ledger, now)

    def adopt(self, shares: Shares, now: float) -> None:
        """Take over a new allocation matrix after checking it; rounding errors are trimmed."""
        types = self.speeds.gpu_types
        members, x = shares.members, shares.fractions
        who = f"policy {self.policy.name!r}"
        if x.shape != (len(members), len(shares.gpu_types)) or not set(shares.gpu_types) <= set(
            types
        ):
            raise PolicyError(
                f"{who}: shares of shape {x.shape} for {len(members)} rows "
                f"and the GPU types {shares.gpu_types}; the cluster has {types}"
            )
        if shares.gpu_types != types:
            columns = np.zeros((len(x), len(types)))
            columns[:, [types.index(name) for name in shares.gpu_types]] = x
            x = columns
        x = checked(members, x, self._widths, self.speeds, self.table.ids, who, now)
        members, x = in_order(members, x)
        elapsed = now - self._computed if self.has_shares else 0.0
        self._ledger.renew(members, x, self._pace(members), elapsed)
        self._unplaced.clear()
        self._computed, self.has_shares = now, True

    def clear(self, now: float) -> bool:
        """Begin a round without jobs; tell whether that counts as a computation of X."""
        if self.steps is None or self.fluid:
            return False
        self._draw_orders()
        self._drop_orders(1)
        if not self.may_compute(now):
            return False
        rows = np.empty((0, 2), dtype=np.int64)
        none = np.empty((0, len(self.speeds.gpu_types)))
        self._ledger.renew(rows, none, self._pace(rows), now - self._computed)
        self._computed = now
        return True

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Choose the runs of the round that begins now; ``changed`` if X waits to be computed."""
        if isinstance(self.steps, Ideal):
            return self.steps.begin(self._ledger, now)
        if self.fluid:
            return RunSet(spread(self._ledger, self.speeds, self.table, self.policy.name), "exact")
        if self._unplaced:
            fresh = [job for job in self._unplaced if job in self.table.active]
            self._unplaced.clear()
            rows = self._newcomers(fresh)
            self._ledger.add(rows, self._pace(rows))
        if self.steps:
            return self._whole_rounds(self.steps, now, changed)
        return self._grid_round()

    # the choice ----------------------------------------------------------------------------------

    def _newcomers(self, fresh: list[int]) -> Ints:
        """Return the rows of jobs that arrived since X: alone and, where jobs share, with others.

        Only where such rows may be chosen, and then do not run, do the pairs make a difference.
        """
        alone = np.array([(job, -1) for job in fresh], dtype=np.int64).reshape(-1, 2)
        policy = self.policy
        if not policy.pairs_up or not self.settings.drop_unallocated or policy.idle_ok:
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
        """Return the steps per second of rows; without a throughput table, from the trace."""
        pace = self.speeds.rows(members)
        if self.speeds.known or not self.table.counts_steps:
            return pace
        solo = np.array(self.table.solo)[np.where(members >= 0, members, members[:, :1])]
        slowed: Floats = pace / solo[:, :, None]
        return slowed

    def _draw_orders(self) -> Ints:
        """Return the types in the order in which this round and those to come fill them."""
        if self.shuffles and not len(self._orders):
            self._orders = np.array([self._order] * _AT_ONCE)
            for order in self._orders:
                drawn = order.tolist()
                self._shuffler.shuffle(drawn)
                order[:] = drawn
        return self._orders

    def _drop_orders(self, rounds: int) -> None:
        """Drop the orders of rounds that are over."""
        if self.shuffles:
            self._orders = self._orders[rounds:]

    def _whole_rounds(self, steps: WholeSteps, now: float, changed: bool) -> RunSet:
        """Simulate a round of whole steps, or all until the next event if they are not reported."""
        table = self.table
        limit = table.submit[table.arrived] if table.arrived < table.count else math.inf
        if changed:
            limit = min(limit, self._computed + self.settings.min_realloc_interval_s)
        # events closer to the round's end than float rounding count as inside it
        orders = self._draw_orders()[: _AT_ONCE if steps.silent else 1]
        last, played = steps.play(self._ledger, orders, now, limit * (1 - 1e-9))
        self._drop_orders(played.rounds)
        for one, two, column in played.began.tolist():
            self.together.append((one, two, self.speeds.gpu_types[column]))
        if steps.silent:
            return NOTHING
        return self._changes(last.rows[played.fresh], last.columns[played.fresh], steps.stopped)

    def _grid_round(self) -> RunSet:
        """Choose a fixed-length round; return only the jobs whose GPUs change."""
        from repro.sim.rounds.kernel import ranks, walk

        ledger, held, partner, settings = self._ledger, self._held, self._partner, self.settings
        rank = ranks(ledger.x, ledger.time, ledger.total, settings.prior_rounds == 0)
        rows, columns = walk(
            ledger.members, self._widths[ledger.members[:, 0]], ledger.able, rank, ledger.deficit,
            ledger.x, self._capacity, self._draw_orders()[0], settings.whole_queue,
            self.policy.idle_ok, self._taken,
        )  # fmt: skip
        self._drop_orders(1)
        if settings.drop_unallocated:
            kept = ledger.allocated[rows]
            rows, columns = rows[kept], columns[kept]
        one, two = ledger.members[rows, 0], ledger.members[rows, 1]
        fresh = (held[one] != columns) | (partner[one] != two)
        second = two >= 0
        if not settings.lease_renewal:
            fresh[:] = True
        ledger.give(rows, columns, settings.round_s)
        new = second & fresh
        named = [self.speeds.gpu_types[column] for column in columns[new]]
        self.together += zip(one[new].tolist(), two[new].tolist(), named, strict=True)
        chosen, before, still = np.concatenate([one, two[second]]), self._running, self._taken
        still[chosen] = True
        stops = before[~still[before] & (held[before] >= 0)]
        still[chosen] = False
        held[stops] = partner[stops] = -1
        held[one], partner[one] = columns, two
        held[two[second]], partner[two[second]] = columns[second], one[second]
        self._running = chosen
        return self._changes(rows[fresh], columns[fresh], stops)

    def _changes(self, rows: Ints, columns: Ints, stops: Ints) -> RunSet:
        """Return the changes of a round: rows that begin, and jobs that stop."""
        members = self._ledger.members[rows]
        runs = zip(members[:, 0].tolist(), members[:, 1].tolist(), columns.tolist(), strict=True)
        return RunSet([self._run(*run) for run in runs], keep=True, stop=stops.tolist())

    def _run(self, one: int, two: int, column: int) -> Run:
        """Return a run; the same one each time for a job alone."""
        found = self._alone.get((one, column)) if two < 0 else None
        if found is None:
            jobs = (one,) if two < 0 else (one, two)
            found = Run(jobs, self.table.gpus[one], self.speeds.gpu_types[column])
            if two < 0:
                self._alone[one, column] = found
        return found
