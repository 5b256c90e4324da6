"""The round mechanism of one run: X, what was received of it, and rounds on a grid."""

import functools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints
from repro.engine.rounds import kernel
from repro.engine.rounds.settings import RoundSettings
from repro.model.decision import NOTHING, Run, RunSet, Shares
from repro.model.jobs import JobTable
from repro.model.policy import Policy
from repro.model.share_policy import share_traits
from repro.model.speeds import Speeds

#: Relative overshoot of shares put down to rounding in the policy's solver.
TOLERANCE = 1e-6
#: Orders of types that are drawn, and rounds that are simulated, in one call.
AT_ONCE = 64
#: The same object for the same run.
_run = functools.lru_cache(1 << 16)(Run)


class Ledger:
    """Rows of the present X with the time they received and their deficits.

    ``prior_s`` is the time every row is taken to have received of each type when X is new (s).
    """

    def __init__(self, jobs: int, types: int, prior_s: float) -> None:
        self._prior = prior_s
        self._alone = np.zeros((jobs, types))
        #: jobs that were ever in X; the last entry stands for none
        self._known = np.zeros(jobs + 1, dtype=np.bool_)
        none = np.empty((0, 2), dtype=np.int64)
        nothing = np.empty((0, types))
        self.rows = self._new(none, nothing, np.empty((0, 2, types)), nothing)

    def _new(self, members: Ints, x: Floats, speeds: Floats, deficit: Floats) -> kernel.Rows:
        """Return rows that received nothing yet."""
        able = (speeds[:, 0] > 0) & (speeds[:, 1] > 0)
        allocated = np.ones(len(x), dtype=np.bool_)
        time = np.empty(x.shape)
        total = np.empty(x.shape[1])
        time.fill(self._prior)
        total.fill(self._prior * len(x))
        members = np.ascontiguousarray(members)
        return kernel.Rows(members, able, allocated, x, deficit, time, total, speeds)

    def renew(self, members: Ints, x: Floats, speeds: Floats, elapsed: float) -> None:
        """Settle the deficits of the old X, computed ``elapsed`` seconds ago; begin a new one."""
        old = self.rows
        keys, due, ascending = kernel.settle(
            old.members, old.x, old.time, old.deficit, self._prior, elapsed, self._alone
        )
        if not ascending:
            order = np.argsort(keys)
            keys = keys[order]
            due = due[order]
        owed = kernel.deficits(members, self._alone, keys, due, self._known, self._prior)
        self._known[members] = True
        self.rows = self._new(members, x, speeds, owed)

    def add(self, members: Ints, speeds: Floats) -> None:
        """Add jobs, or pairs of jobs, that arrived since X was computed; they have no share."""
        old = self.rows
        x = np.zeros((len(members), self._alone.shape[1]))
        owed = np.where(members[:, 1:] < 0, self._alone[members[:, 0]], x)
        new = self._new(members, x, speeds, owed)
        new.allocated[:] = False
        both: Any = map(np.concatenate, zip(old, new, strict=True))
        self.rows = kernel.Rows(*both)._replace(total=old.total)

    def finish(self, job: int) -> None:
        """Take the rows of a finished job out."""
        self.rows.able[np.flatnonzero(self.rows.members == job) // 2] = False

    def give(self, rows: Ints, types: Ints, seconds: Floats | float) -> None:
        """Book that rows, each named once, held GPUs of a type."""
        self.rows.time[rows, types] += seconds
        np.add.at(self.rows.total, types, seconds)


class RoundMechanism(ABC):
    """Realises the `Shares` of one run (Gavel, OSDI 2020, section 5, Algorithm 1).

    With ``books``, who holds GPUs is booked in the job table as rounds go by, and intervals of
    holding in ``spans``, if given (see `repro.model.records.Intervals`); otherwise the engine is
    told who starts and stops.
    """

    #: whether events may be told late, at the end of the rounds that are simulated in one call
    takes_late_events = False

    def __init__(
        self,
        table: JobTable,
        speeds: Speeds,
        policy: Policy,
        settings: RoundSettings,
        *,
        seed: int = 0,
        books: bool = False,
        spans: list[Floats] | None = None,
    ) -> None:
        self.table = table
        self.speeds = speeds
        self.policy = policy
        self.traits = share_traits(policy)
        self.settings = settings
        self.books = books
        self.spans = spans
        #: whether completions are foreseen in `ends`; otherwise the engine foresees them
        self.foresees = books
        ordered = settings.ideal is not None or self.traits.tells_types
        #: whether the seed matters
        self.shuffles = settings.shuffle_types and not ordered
        # the public simulator's stream for this purpose
        self._shuffler = random.Random(seed + 5)
        types = len(speeds.gpu_types)
        self.ledger = Ledger(table.count, types, settings.prior_rounds * settings.round_s)
        self._solo = np.array(table.solo)
        # without a throughput table jobs run at their speed in the trace
        reference = 1.0 / self._solo if table.counts_steps else np.ones(table.count)
        if speeds.known:
            reference = np.where(speeds.on_reference > 0, speeds.on_reference, 1.0)
        self.rule = kernel.RoundRules(
            widths=np.array(table.gpus, dtype=np.int64),
            solo=self._solo,
            reference=reference,
            taken=np.zeros(table.count, dtype=np.bool_),
            lost=np.zeros(table.count, dtype=np.int64),
            tries=settings.gang_tries,
            books=books,
            moves=spans is not None,
            capacity=speeds.gpu_counts.astype(np.int64),
            round_s=float(settings.round_s),
            overhead_s=float(settings.preemption_overhead_s),
            whole_queue=bool(settings.whole_queue),
            idle_ok=self.traits.idle_ok,
            counts_rounds=settings.prior_rounds == 0,
            drop=bool(settings.drop_unallocated),
            lease=bool(settings.lease_renewal),
        )
        #: kind of each job, -1 for none at the end; speeds of kinds alone and of pairs of kinds
        self._codes = np.append(speeds.codes, -1)
        self._alone = np.repeat(speeds.alone[:, None], 2, axis=1)
        self._paired: Floats | None = None
        #: whether some kind can never run
        self._unable = bool(np.isnan(speeds.alone).any())
        #: jobs that arrived since X was computed and have no row yet
        self._unplaced: list[int] = []
        self._computed = -math.inf
        #: end of the present round, where rounds have no grid (s)
        self._until = -math.inf
        # orders of the types in the rounds to come; faster generations last in the alphabet:
        # v100, p100, k80
        self._order = list(range(types))[::-1]
        self._orders = np.array([self._order] * AT_ONCE)
        self._drop_orders(AT_ONCE)
        #: predicted completions, replacing earlier predictions; None if unchanged
        self.ends: list[tuple[float, int]] | None = None
        #: pairs that began to share GPUs, and where
        self.together: list[tuple[int, int, str | None]] = []
        self.has_shares = False

    # what the driver asks ------------------------------------------------------------------------

    def boundary(self, now: float) -> bool:
        """Tell whether a round begins now."""
        return now >= self._until

    def next_boundary(self, now: float) -> float:
        """Return the beginning of the next round (s)."""
        if self._until > now:
            return self._until
        # nobody runs: the next arrival is the next round, and without one the next X
        if self.table.arrived < self.table.count:
            return math.inf
        if self.settings.idle_reset:
            return now
        return max(self._computed + self.settings.min_realloc_interval_s, now + 1.0)

    @abstractmethod
    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Choose the runs of the round that begins now; ``changed`` if X waits to be computed."""

    def settle(self, now: float) -> bool:
        """Book the round that has just ended; tell whether X has to be computed for that."""
        return 0 < self.settings.max_realloc_interval_s <= now - self._computed

    def may_compute(self, now: float) -> bool:
        """Tell whether enough time has passed since X was computed."""
        early = now - self._computed < self.settings.min_realloc_interval_s
        return not early or self._computed <= 0

    def arrive(self, job: int) -> None:
        """Queue a job that has no row in X yet."""
        self._unplaced.append(job)

    def finish(self, job: int, now: float) -> None:
        """Let a finished job give its GPUs back."""
        self.ledger.finish(job)
        state = self.table.state
        if self.books and state.running[job]:
            self._close(np.array([job]), now)
            state.running[job] = False
        state.on_type[job] = state.partner[job] = -1

    def adopt(self, shares: Shares, now: float) -> None:
        """Take over a new allocation matrix after checking it; rounding errors are trimmed."""
        types = self.speeds.gpu_types
        x = shares.fractions
        members = shares.jobs if isinstance(shares.jobs, np.ndarray) else shares.members
        if alone := members.ndim == 1:
            pairs = np.full((len(members), 2), -1)
            pairs[:, 0] = members
            members = pairs
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
        x = np.ascontiguousarray(x, dtype=float)
        widths = self.rule.widths
        gpus = self.speeds.gpu_counts
        if shares.overcommitted and self.settings.ideal is None:
            gpus = np.full(len(types), np.inf)
        elif shares.overcommitted:
            promised = widths[members[:, 0]] @ x
            x = x * (gpus / np.maximum(gpus, promised))
        possible, trimmed = kernel.trim(members, x, widths, gpus, TOLERANCE)
        if not possible:
            rule, what = _violated(members, x, widths, self.speeds, self.table.ids)
            raise PolicyError(f"{who}: {rule}: at {now:g} s {what}")
        if not alone:
            members, trimmed = _in_order(members, trimmed)
        self._renew(members, trimmed, now)
        self._unplaced.clear()
        self.has_shares = True

    def clear(self, now: float) -> bool:
        """Begin a round without jobs; tell whether that counts as a computation of X."""
        if not self.settings.whole_steps or self.settings.ideal == "fluid":
            return False
        self._drop_orders(1)
        if not self.may_compute(now):
            return False
        self._renew(np.empty((0, 2), dtype=np.int64), np.empty((0, len(self._order))), now)
        return True

    # what all kinds of rounds share --------------------------------------------------------------

    def _renew(self, members: Ints, x: Floats, now: float) -> None:
        """Begin a new X."""
        elapsed = now - self._computed if self.has_shares else 0.0
        self.ledger.renew(members, x, self._pace(members), elapsed)
        self._computed = now

    def _add_unplaced(self) -> None:
        """Give jobs that arrived since X rows: alone and, where jobs share, with others.

        Only where such rows may be chosen, and then do not run, do the pairs make a difference.
        """
        fresh = [job for job in self._unplaced if job in self.table.active]
        self._unplaced.clear()
        alone = np.array([(job, -1) for job in fresh], dtype=np.int64).reshape(-1, 2)
        present = self.ledger.rows
        widths = self.rule.widths
        rows = [alone[:0]]
        if self.traits.pairs_up and self.rule.drop and not self.traits.idle_ok:
            there = present.members[present.able.any(axis=1) & (present.members[:, 1] < 0), 0]
            for number, job in enumerate(fresh):
                rows.append(alone[number : number + 1])
                others = there[widths[there] == widths[job]]
                rows.append(np.stack([others, np.full(len(others), job)], axis=1))
                there = np.append(there, job)
            alone = np.concatenate(rows)
        self.ledger.add(alone, self._pace(alone))

    def _pace(self, members: Ints) -> Floats:
        """Return the steps per second of rows; without a throughput table, from the trace."""
        speeds = self.speeds
        codes = self._codes.take(members)
        if members[:, 1].max(initial=-1) < 0:
            pace = self._alone.take(codes[:, 0], axis=0)
        else:
            # one more column, of jobs alone
            if self._paired is None:
                alone = self._alone[:, None]
                self._paired = np.concatenate([alone, speeds.pairs], axis=1)
            kinds, partners, _, types = self._paired.shape
            place = codes[:, 0] * partners + codes[:, 1] + 1
            pace = self._paired.reshape(kinds * partners, 2, types).take(place, axis=0)
        if self._unable:
            for job in members[np.isnan(pace[:, 0, 0]), 0][:1].tolist():
                # says why it can never run
                speeds.of(job)
        if speeds.known or not self.table.counts_steps:
            return pace
        solo = self._solo[np.where(members >= 0, members, members[:, :1])]
        slowed: Floats = pace / solo[:, :, None]
        return slowed

    def _drop_orders(self, rounds: int) -> None:
        """Drop the orders in which rounds that are over filled the types; draw those to come."""
        if self.shuffles:
            self._orders = self._orders[rounds:]
            if not len(self._orders):
                drawn = [self._order.copy() for _ in range(AT_ONCE)]
                for order in drawn:
                    self._shuffler.shuffle(order)
                self._orders = np.array(drawn)

    def _note_pairs(self, one: Ints, two: Ints, columns: Ints) -> None:
        """Note which pairs begin to share GPUs of which types; -1: no second job."""
        for a, b, column in zip(one.tolist(), two.tolist(), columns.tolist(), strict=True):
            if b >= 0:
                self.together.append((a, b, self.speeds.gpu_types[column]))

    def _changes(self, rows: Ints, columns: Ints, before: Ints) -> RunSet:
        """Return the changes of a round: rows that begin, and those of ``before`` that stopped."""
        stops = before[self.table.state.on_type[before] < 0]
        runs = []
        pairs = self.ledger.rows.members[rows].tolist()
        for (one, two), column in zip(pairs, columns.tolist(), strict=True):
            jobs = (one,) if two < 0 else (one, two)
            runs.append(_run(jobs, self.table.gpus[one], self.speeds.gpu_types[column]))
        return RunSet(runs, keep=True, stop=stops.tolist())

    def _close(self, jobs: Ints, now: float) -> None:
        """Book the GPUs that jobs held up to now; the next hold begins."""
        self._note_ended(kernel.close(self.table.state, jobs, self._solo, now))

    def _note_ended(self, ended: Floats) -> None:
        """Keep the intervals of holds that ended."""
        if self.spans is not None and ended.size:
            self.spans.append(ended)


class GridRounds(RoundMechanism):
    """Rounds of a fixed length, on the grid of its multiples."""

    _running = np.empty(0, dtype=np.int64)

    def boundary(self, now: float) -> bool:
        """Tell whether a round begins now."""
        length = self.settings.round_s
        return abs(now / length - round(now / length)) < 1e-9

    def next_boundary(self, now: float) -> float:
        """Return the beginning of the next round (s)."""
        length = self.settings.round_s
        return (math.floor(now / length + 1e-9) + 1) * length

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Choose a fixed-length round; return only the jobs whose GPUs change."""
        if self._unplaced:
            self._add_unplaced()
        ledger = self.ledger
        state = self.table.state
        order = self._orders[0]
        choice = kernel.choose(ledger.rows, state.on_type, state.partner, self.rule, order)
        rows, columns, fresh = choice
        self._drop_orders(1)
        ledger.give(rows, columns, self.settings.round_s)
        one, two = ledger.rows.members[rows[fresh]].T
        self._note_pairs(one, two, columns[fresh])
        before = self._running[state.on_type[self._running] >= 0]
        jobs, ended = kernel.hand_over(ledger.rows, state, self.rule, choice, before, now)
        self._running = jobs
        self._note_ended(ended)
        if not self.books:
            return self._changes(rows[fresh], columns[fresh], before)
        # those that matter before completions are foreseen anew
        ends = state.since[jobs] + state.left[jobs] / state.rate[jobs]
        soon = ends <= now + 2 * self.settings.round_s
        self.ends = list(zip(ends[soon].tolist(), jobs[soon].tolist(), strict=True))
        return NOTHING


def _in_order(members: Ints, x: Floats) -> tuple[Ints, Floats]:
    """Return rows and shares in the order in which jobs and their pairs came into being.

    Jobs that are all alone stay in the order of the policy.
    """
    one, two = members[:, 0], members[:, 1]
    pairs = two >= 0
    if not pairs.any():
        return members, x
    swapped = pairs & (two < one)
    if swapped.any():
        members = np.where(swapped[:, None], members[:, ::-1], members)
        one, two = members[:, 0], members[:, 1]
    jobs = int(members.max(initial=0)) + 2
    place = np.where(two < 0, one * jobs - 1, two * jobs + one)
    if (place[1:] > place[:-1]).all():
        return members, x
    order = np.argsort(place, kind="stable")
    return members[order], x[order]


def _violated(
    members: Ints, x: Floats, widths: Ints, speeds: Speeds, ids: Sequence[object]
) -> tuple[str, str]:
    """Say which rule impossible shares violate, and where or by whom most."""
    types = speeds.gpu_types
    limits = speeds.gpu_counts
    # a NaN is reported before other violations
    if not x.min() >= -TOLERANCE:
        row, column = (int(at) for at in np.unravel_index(x.argmin(), x.shape))
        whose = f"that of {_named(members[row], ids)} in {types[column]!r} is {x[row, column]:g}"
        return "shares must be >= 0", whose
    one, two = members[:, 0], members[:, 1]
    pairs = two >= 0
    gangs = widths[one]
    unequal = pairs & (gangs != widths[two])
    if unequal.any():
        row = int(unequal.argmax())
        asked = f"{_named(members[row], ids)} ask for {gangs[row]} and {widths[two[row]]} GPUs"
        return "jobs that share GPUs must be of one size", asked
    row_time = x.sum(axis=1)
    time = np.bincount(one, row_time, len(widths))
    time += np.bincount(two[pairs], row_time[pairs], len(widths))
    if time.max() > 1 + TOLERANCE:
        job = int(time.argmax())
        whose = f"those of job {ids[job]!r} sum to {time[job]:.9g}"
        return "shares must sum to at most 1 per job", whose
    used = gangs @ x
    column = int((used / np.maximum(limits, 1e-300)).argmax())
    taken = f"they take {used[column]:.9g} of {limits[column]:g} GPUs of {types[column]!r}"
    return "shares must fit the GPUs of each type", taken


def _named(row: Sequence[int] | Ints, ids: Sequence[object]) -> str:
    """Return the words that name the jobs of a row."""
    one, two = row
    return f"job {ids[one]!r}" if two < 0 else f"jobs {ids[one]!r} and {ids[two]!r}"
