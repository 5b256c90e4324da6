"""The round mechanism of one simulation: the rows of X, and rounds of fixed length.

The mechanism turns `Shares` into rounds (Gavel, OSDI 2020, section 5, Algorithm 1). In a round of
``round_s`` seconds the chosen jobs hold their GPUs. For every row m of X (a job, or two jobs that
share GPUs) and every GPU type j, a `Ledger` keeps

- X_mj, the share of time that the policy gave the row,
- t_mj, the time received since X was computed (s); the paper counts it in rounds received,
- D_mj, the deficit (s): time owed under earlier X.

A round runs the rows of highest priority X_mj / f_mj, where f_mj = t_mj / sum_m t_mj. Time received
lowers the priority, so that the fractions f_mj approach X. Deficits break ties.

`repro.engine.rounds.kernel` computes priorities and deficits, chooses rows and writes holds in
compiled loops. A hold is an interval in which a job holds GPUs. The classes here check a new X, add
rows for jobs that arrive before the next X, decide when a round begins and when X may be computed,
and sample the order of GPU types. `WholeSteps` (`whole_steps.py`) and `Ideal` (`ideal.py`) are the
other two ways to execute shares.
"""

import functools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints
from repro.engine.multiples import is_multiple, next_multiple
from repro.engine.rounds import kernel
from repro.engine.rounds.settings import RoundSettings
from repro.model.decision import NO_CHANGE, Run, RunSet, Shares
from repro.model.jobs import JobTable
from repro.model.policy import Policy
from repro.model.share_policy import share_traits
from repro.model.speeds import Speeds

#: Relative excess of shares that counts as a rounding error of the policy's solver.
TOLERANCE = 1e-6
#: GPU types of Gavel's public simulator.
GAVEL_TYPES = frozenset({"v100", "p100", "k80"})
#: Largest number of rounds per kernel call. Their orders of GPU types are sampled together.
ROUNDS_PER_CALL = 64
#: Gang from its fields; equal gangs are the same object.
_cached_run = functools.lru_cache(1 << 16)(Run)


class Ledger:
    """Rows of the present X, with the time they received and their deficits.

    Parameters
    ----------
    jobs, types : int
        Number of jobs of the simulation and of GPU types.
    prior_s : float
        Time (s) credited to every row on each GPU type when X is new.
    """

    def __init__(self, jobs: int, types: int, prior_s: float) -> None:
        self._prior_s = prior_s
        #: deficits of single jobs at the end of the last X (s), shape (jobs, types)
        self._job_deficits = np.zeros((jobs, types))
        #: whether each job was in an earlier X; entry -1 stands for "no second job"
        self._was_allocated = np.zeros(jobs + 1, dtype=np.bool_)
        no_members = np.empty((0, 2), dtype=np.int64)
        no_shares = np.empty((0, types))
        self.rows = self._new_rows(no_members, no_shares, np.empty((0, 2, types)), no_shares)

    def _new_rows(
        self, members: Ints, x: Floats, throughputs: Floats, deficit: Floats
    ) -> kernel.Rows:
        """Rows of a new X, each credited with ``prior_s``."""
        runnable = (throughputs[:, 0] > 0) & (throughputs[:, 1] > 0)
        allocated = np.ones(len(x), dtype=np.bool_)
        received = np.full(x.shape, self._prior_s, dtype=float)
        total_received = np.full(x.shape[1], self._prior_s * len(x), dtype=float)
        members = np.ascontiguousarray(members)
        return kernel.Rows(
            members, runnable, allocated, x, deficit, received, total_received, throughputs
        )

    def replace_x(self, members: Ints, x: Floats, throughputs: Floats, elapsed_s: float) -> None:
        """Replace X, which was computed ``elapsed_s`` seconds ago, and carry the deficits over."""
        old = self.rows
        pair_keys, pair_deficits, ascending = kernel.update_deficits(
            old.members,
            old.x,
            old.received,
            old.deficit,
            self._prior_s,
            elapsed_s,
            self._job_deficits,
        )
        if not ascending:
            order = np.argsort(pair_keys)
            pair_keys = pair_keys[order]
            pair_deficits = pair_deficits[order]
        deficit = kernel.initial_deficits(
            members,
            self._job_deficits,
            pair_keys,
            pair_deficits,
            self._was_allocated,
            self._prior_s,
        )
        self._was_allocated[members] = True
        self.rows = self._new_rows(members, x, throughputs, deficit)

    def add(self, members: Ints, throughputs: Floats) -> None:
        """Add rows without a share, for new jobs since X was computed, and for their pairs."""
        old = self.rows
        x = np.zeros((len(members), self._job_deficits.shape[1]))
        deficit = np.where(members[:, 1:] < 0, self._job_deficits[members[:, 0]], x)
        new = self._new_rows(members, x, throughputs, deficit)
        new.allocated[:] = False
        columns: Any = map(np.concatenate, zip(old, new, strict=True))
        self.rows = kernel.Rows(*columns)._replace(total_received=old.total_received)

    def finish(self, job: int) -> None:
        """Mark the rows of a finished job as not runnable."""
        # a row has two members
        rows = np.flatnonzero(self.rows.members == job) // 2
        self.rows.runnable[rows] = False

    def add_received(self, rows: Ints, types: Ints, seconds: Floats | float) -> None:
        """Add time that distinct rows received, each on one type."""
        self.rows.received[rows, types] += seconds
        np.add.at(self.rows.total_received, types, seconds)


class RoundMechanism(ABC):
    """Executes the `Shares` of one simulation (Gavel, OSDI 2020, section 5, Algorithm 1).

    Parameters
    ----------
    table, speeds, policy, settings
        Jobs, speeds and policy of the simulation, settings of its rounds.
    seed : int
        Seed of the order of GPU types.
    writes_holds : bool
        Whether the kernel writes holds into the job table, round by round. Otherwise `next_round`
        names the jobs that start and stop, and the engine writes the holds.
    interval_blocks : list of ndarray, optional
        Receives blocks of intervals (`repro.model.records.Intervals`); None: intervals are not
        recorded.
    """

    #: whether one call may simulate several rounds. The engine then reports the arrivals and
    #: completions in them after the last round.
    simulates_many_rounds = False

    def __init__(
        self,
        table: JobTable,
        speeds: Speeds,
        policy: Policy,
        settings: RoundSettings,
        *,
        seed: int = 0,
        writes_holds: bool = False,
        interval_blocks: list[Floats] | None = None,
    ) -> None:
        self.table = table
        self.speeds = speeds
        self.policy = policy
        self.traits = share_traits(policy)
        self.settings = settings
        self.writes_holds = writes_holds
        self.interval_blocks = interval_blocks
        #: whether the seed decides the order of GPU types
        self.shuffles = settings.samples_type_order and not self.traits.tells_types
        # the seed of this stream in Gavel's public simulator
        self._shuffler = random.Random(seed + 5)
        types = len(speeds.gpu_types)
        self.ledger = Ledger(table.count, types, settings.prior_rounds * settings.round_s)
        self._solo = np.array(table.solo)
        self.constants = self._round_constants()
        #: kind of each job; entry -1 stands for "no second job" and is -1
        self._kind_of = np.append(speeds.kind_codes, -1)
        #: steps per second of single jobs, stored twice as for the members of a pair, shape (kinds,
        #: 2, types)
        self._single_throughputs = np.repeat(speeds.single[:, None], 2, axis=1)
        #: the same for pairs, shape (kinds, 1 + kinds, 2, types); column 0 has single jobs
        self._pair_throughputs: Floats | None = None
        #: whether some kind can never run
        self._has_unrunnable_kind = bool(np.isnan(speeds.single).any())
        #: jobs that arrived since X was computed and have no row
        self._rowless: list[int] = []
        #: instant at which X was computed (s)
        self._computed_s = -math.inf
        #: end of the present round (s), for rounds without a fixed length
        self._round_end = -math.inf
        self._usual_order = filling_order(speeds)
        #: orders in which the next rounds fill the types, shape (rounds, types)
        self._orders = np.array([self._usual_order] * ROUNDS_PER_CALL)
        self._use_orders(ROUNDS_PER_CALL)
        #: predicted completions (s, job), which replace earlier predictions; None: no change
        self.ends: list[tuple[float, int]] | None = None
        #: pairs that began to share GPUs, with the GPU type
        self.new_pairs: list[tuple[int, int, str | None]] = []
        #: whether the policy has given an X
        self.has_allocation = False

    def _round_constants(self) -> kernel.RoundConstants:
        """Constants of all rounds, for the compiled loops."""
        table = self.table
        settings = self.settings
        # steps per second to which throughputs are compared; without a table, those of the trace
        reference_speed = 1.0 / self._solo if table.counts_steps else np.ones(table.count)
        if self.speeds.has_throughputs:
            on_reference = self.speeds.on_reference
            reference_speed = np.where(on_reference > 0, on_reference, 1.0)
        return kernel.RoundConstants(
            demands=np.array(table.gpus, dtype=np.int64),
            solo=self._solo,
            reference_speed=reference_speed,
            scratch=np.zeros(table.count, dtype=np.bool_),
            lost_rounds=np.zeros(table.count, dtype=np.int64),
            gang_tries=settings.gang_tries,
            writes_holds=self.writes_holds,
            splits_holds=self.interval_blocks is not None,
            capacity=self.speeds.gpu_counts.astype(np.int64),
            round_s=float(settings.round_s),
            overhead_s=float(settings.preemption_overhead_s),
            whole_queue=bool(settings.whole_queue),
            idle_ok=self.traits.idle_ok,
            ranks_by_time=settings.prior_rounds == 0,
            drops_unallocated=bool(settings.drop_unallocated),
            renews_leases=bool(settings.lease_renewal),
        )

    # calls of the driver -------------------------------------------------------------------------

    def begins_round(self, now: float) -> bool:
        """Whether a round begins now."""
        return now >= self._round_end

    def next_boundary(self, now: float) -> float:
        """Beginning of the next round (s)."""
        if self._round_end > now:
            return self._round_end
        # No job runs. The next arrival begins a round; after the last arrival, the next X does.
        # With idle_reset X may be computed at once, but ideal execution has no empty rounds.
        if self.next_arrival < math.inf:
            return math.inf
        if self.settings.idle_reset and self.settings.ideal is None:
            return now
        return max(self._computed_s + self.settings.min_realloc_interval_s, now + 1.0)

    @property
    def next_arrival(self) -> float:
        """Instant of the next arrival (s); infinity after the last one, also that of a rollout."""
        table = self.table
        return table.submit[table.arrived] if table.arrived < table.count else math.inf

    @abstractmethod
    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Choose the gangs of the round that begins now.

        ``changed`` says that jobs arrived or ended since X was computed.
        """

    def record_round(self, now: float) -> bool:
        """Record the round that has ended, in subclasses; True if X must be computed anew."""
        return 0 < self.settings.max_realloc_interval_s <= now - self._computed_s

    def may_compute(self, now: float) -> bool:
        """Whether X is old enough to be computed anew."""
        early = now - self._computed_s < self.settings.min_realloc_interval_s
        # in the public simulator an X computed at 0 s counts as never computed
        return not early or self._computed_s <= 0

    def arrive(self, job: int) -> None:
        """Note a new job, which has no row in X yet."""
        self._rowless.append(job)

    def finish(self, job: int, now: float) -> None:
        """Free the GPUs of a finished job."""
        self.ledger.finish(job)
        state = self.table.state
        if self.writes_holds and state.running[job]:
            self._close_holds(np.array([job]), now)
            state.running[job] = False
        state.type_column[job] = -1
        state.partner[job] = -1

    def set_allocation(self, shares: Shares, now: float) -> None:
        """Check a new X, trim its rounding errors and put it in force.

        Raises
        ------
        PolicyError
            If X is infeasible. The message names the constraint, the job or GPU type, and the
            share or sum that breaks it.
        """
        try:
            x = np.asarray(shares.fractions, dtype=float)
        except (TypeError, ValueError):
            raise PolicyError(
                f"policy {self.policy.name!r}: Shares.fractions is no array of numbers; give one "
                f"of shape (rows, GPU types)"
            ) from None
        only_single_jobs = isinstance(shares.jobs, np.ndarray) and shares.jobs.ndim == 1
        try:
            members = shares.members
        except PolicyError as error:
            raise PolicyError(f"policy {self.policy.name!r}: {error}") from None
        self._check_jobs(members)
        x = self._by_cluster_type(x, shares.gpu_types, len(members))
        demands = self.constants.demands
        gpus = self.speeds.gpu_counts
        # Shares of an overcommitted X may exceed the GPUs. Rounds ration them by priority, so no
        # limit is checked. Ideal execution scales them down to the GPUs of each type.
        if shares.overcommitted and self.settings.ideal is None:
            gpus = np.full(len(gpus), np.inf)
        elif shares.overcommitted:
            used = demands[members[:, 0]] @ x
            x = x * (gpus / np.maximum(gpus, used))
        feasible, trimmed = kernel.trim(members, x, demands, gpus, TOLERANCE)
        if not feasible:
            constraint, detail = _violation(members, x, demands, self.speeds, self.table.ids)
            raise PolicyError(f"policy {self.policy.name!r}: {constraint}: at {now:g} s {detail}")
        if not only_single_jobs:
            members, trimmed = _in_order_of_arrival(members, trimmed)
        self._replace_x(members, trimmed, now)
        self._rowless.clear()
        self.has_allocation = True

    def _check_jobs(self, members: Ints) -> None:
        """Check that jobs with a share are present, each once in a row of `Shares.members`."""
        # arrays, because space sharing names some hundred thousand pairs
        count = self.table.count
        active = np.zeros(count, dtype=bool)
        active[list(self.table.active)] = True
        is_row = (members >= 0) & (members < count)
        is_present = is_row & active[np.where(is_row, members, 0)]
        is_present[:, 1] |= members[:, 1] == -1
        ids = self.table.ids
        if not is_present.all():
            job = int(members[~is_present].min())
            mistake = f"unknown row number {job}"
            if 0 <= job < self.table.count:
                mistake = f"job {ids[job]!r}, which is neither waiting nor running"
            raise PolicyError(
                f"policy {self.policy.name!r}: Shares.jobs names {mistake}; give jobs of view.jobs"
            )
        is_twice = members[:, 0] == members[:, 1]
        if is_twice.any():
            job = members[is_twice.argmax(), 0]
            raise PolicyError(
                f"policy {self.policy.name!r}: Shares.jobs pairs job {ids[job]!r} with itself; "
                "give two jobs, or one alone"
            )

    def begin_empty_round(self, now: float) -> bool:
        """Begin a round without jobs; True if an empty X replaces X.

        A new X restarts the timer of ``min_realloc_interval_s``.
        """
        if not self.settings.whole_steps or self.settings.ideal == "fluid":
            return False
        self._use_orders(1)
        if not self.may_compute(now):
            return False
        no_shares = np.empty((0, len(self._usual_order)))
        self._replace_x(np.empty((0, 2), dtype=np.int64), no_shares, now)
        return True

    # common to all executions --------------------------------------------------------------------

    def _by_cluster_type(
        self, x: Floats, gpu_types: tuple[str | None, ...], row_count: int
    ) -> Floats:
        """X with a column per GPU type of the cluster, 0 for types that the policy left out."""
        types = self.speeds.gpu_types
        if x.shape != (row_count, len(gpu_types)) or not set(gpu_types) <= set(types):
            raise PolicyError(
                f"policy {self.policy.name!r}: shares of shape {x.shape} for {row_count} rows "
                f"and the GPU types {gpu_types}; the cluster has {types}"
            )
        if gpu_types != types:
            columns = np.zeros((len(x), len(types)))
            columns[:, [types.index(name) for name in gpu_types]] = x
            x = columns
        return np.ascontiguousarray(x, dtype=float)

    def _replace_x(self, members: Ints, x: Floats, now: float) -> None:
        """Put a checked X in force."""
        elapsed_s = now - self._computed_s if self.has_allocation else 0.0
        self.ledger.replace_x(members, x, self._throughputs(members), elapsed_s)
        self._computed_s = now

    def _add_rowless(self) -> None:
        """Add rows for jobs that arrived since X was computed: alone and, if needed, in pairs.

        Pairs are needed only under ``drop_unallocated``. There a pair without a share can be chosen
        but does not run, and its GPUs stay idle.
        """
        arrivals = [job for job in self._rowless if job in self.table.active]
        self._rowless.clear()
        members = np.array([(job, -1) for job in arrivals], dtype=np.int64).reshape(-1, 2)
        # with idle_ok no row without a share is chosen
        takes_leftovers = not self.traits.idle_ok
        if takes_leftovers and self.traits.pairs_up and self.constants.drops_unallocated:
            members = self._with_pairs(members)
        self.ledger.add(members, self._throughputs(members))

    def _with_pairs(self, singles: Ints) -> Ints:
        """Rows of single jobs, each followed by its pairs with earlier jobs of equal demand."""
        rows = self.ledger.rows
        demands = self.constants.demands
        is_single = rows.runnable.any(axis=1) & (rows.members[:, 1] < 0)
        earlier = rows.members[is_single, 0]
        blocks = [singles[:0]]
        for number, job in enumerate(singles[:, 0].tolist()):
            blocks.append(singles[number : number + 1])
            partners = earlier[demands[earlier] == demands[job]]
            blocks.append(np.stack([partners, np.full(len(partners), job)], axis=1))
            earlier = np.append(earlier, job)
        return np.concatenate(blocks)

    def _throughputs(self, members: Ints) -> Floats:
        """Throughput of both members of rows (steps/s), shape (rows, 2, types)."""
        speeds = self.speeds
        kinds = self._kind_of.take(members)
        if members[:, 1].max(initial=-1) < 0:
            throughputs = self._single_throughputs.take(kinds[:, 0], axis=0)
        else:
            if self._pair_throughputs is None:
                singles = self._single_throughputs[:, None]
                self._pair_throughputs = np.concatenate([singles, speeds.pairs], axis=1)
            kind_count, partner_kinds, _, types = self._pair_throughputs.shape
            flat = self._pair_throughputs.reshape(kind_count * partner_kinds, 2, types)
            # "no second job" has kind -1, whose column is 0
            throughputs = flat.take(kinds[:, 0] * partner_kinds + kinds[:, 1] + 1, axis=0)
        if self._has_unrunnable_kind:
            for job in members[np.isnan(throughputs[:, 0, 0]), 0][:1].tolist():
                # raises, and names the job and the reason
                speeds.speeds_of(job)
        if speeds.has_throughputs or not self.table.counts_steps:
            return throughputs
        # without a throughput table, the time of a step comes from the trace
        solo = self._solo[np.where(members >= 0, members, members[:, :1])]
        from_trace: Floats = throughputs / solo[:, :, None]
        return from_trace

    def _use_orders(self, rounds: int) -> None:
        """Discard the type orders of ``rounds`` rounds; sample new orders when all are used."""
        if self.shuffles:
            self._orders = self._orders[rounds:]
            if not len(self._orders):
                orders = [self._usual_order.copy() for _ in range(ROUNDS_PER_CALL)]
                for order in orders:
                    self._shuffler.shuffle(order)
                self._orders = np.array(orders)

    def _note_pairs(self, jobs: Ints, partners: Ints, columns: Ints) -> None:
        """Note the pairs that begin to share GPUs. A single job has partner -1."""
        pairs = zip(jobs.tolist(), partners.tolist(), columns.tolist(), strict=True)
        for job, partner, column in pairs:
            if partner >= 0:
                self.new_pairs.append((job, partner, self.speeds.gpu_types[column]))

    def _changes(self, rows: Ints, columns: Ints, previous_jobs: Ints) -> RunSet:
        """Decision of a round: rows that start, and jobs of the previous round that stop."""
        stops = previous_jobs[self.table.state.type_column[previous_jobs] < 0]
        runs = []
        members = self.ledger.rows.members[rows].tolist()
        for (job, partner), column in zip(members, columns.tolist(), strict=True):
            jobs = (job,) if partner < 0 else (job, partner)
            runs.append(_cached_run(jobs, self.table.gpus[job], self.speeds.gpu_types[column]))
        return RunSet(runs, keep=True, stop=stops.tolist())

    def _close_holds(self, jobs: Ints, now: float) -> None:
        """Close the hold of each job at ``now`` and open its next hold."""
        self._keep_intervals(kernel.close_holds(self.table.state, jobs, self._solo, now))

    def _keep_intervals(self, ended_holds: Floats) -> None:
        """Keep the holds that ended as intervals, if intervals are recorded."""
        if self.interval_blocks is not None and ended_holds.size:
            self.interval_blocks.append(ended_holds)


class GridRounds(RoundMechanism):
    """Rounds of a fixed length, which begin at the multiples of this length."""

    _previous_jobs = np.empty(0, dtype=np.int64)

    def begins_round(self, now: float) -> bool:
        """Whether a round begins now."""
        return is_multiple(now, self.settings.round_s)

    def next_boundary(self, now: float) -> float:
        """Beginning of the next round (s)."""
        return next_multiple(now, self.settings.round_s)

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Choose the rows of a round, and list the changes to the previous round.

        If ``writes_holds`` is set, the engine has no changes to make, and the list is empty.
        """
        if self._rowless:
            self._add_rowless()
        ledger = self.ledger
        state = self.table.state
        order = self._orders[0]
        choice = kernel.choose(ledger.rows, state.type_column, state.partner, self.constants, order)
        rows, columns, starts = choice
        self._use_orders(1)
        ledger.add_received(rows, columns, self.settings.round_s)
        jobs, partners = ledger.rows.members[rows[starts]].T
        self._note_pairs(jobs, partners, columns[starts])
        # jobs of the previous round that have not finished
        previous_jobs = self._previous_jobs[state.type_column[self._previous_jobs] >= 0]
        round_jobs, ended_holds = kernel.apply_choice(
            ledger.rows, state, self.constants, choice, previous_jobs, now
        )
        self._previous_jobs = round_jobs
        self._keep_intervals(ended_holds)
        if not self.writes_holds:
            return self._changes(rows[starts], columns[starts], previous_jobs)
        # the next call replaces the predictions, so later completions are not needed yet
        ends = (
            state.progress_from[round_jobs] + state.work_left[round_jobs] / state.rate[round_jobs]
        )
        soon = ends <= now + 2 * self.settings.round_s
        self.ends = list(zip(ends[soon].tolist(), round_jobs[soon].tolist(), strict=True))
        return NO_CHANGE


def filling_order(speeds: Speeds) -> list[int]:
    """Order in which the rounds fill the GPU types, as column numbers.

    Types of Gavel's simulator have its order: v100, p100, k80. Otherwise the type that is faster on
    average, relative to the fastest type of each kind of job, comes first. Equally fast types, and
    types without throughputs, come in the reverse order of the alphabet.
    """
    usual = list(range(len(speeds.gpu_types)))[::-1]
    if not speeds.has_throughputs or GAVEL_TYPES.issuperset(speeds.gpu_types):
        return usual
    # kinds without throughputs are refused later
    single = np.nan_to_num(speeds.single)
    fastest = single.max(axis=1, keepdims=True)
    relative = np.divide(single, fastest, out=np.zeros_like(single), where=fastest > 0)
    totals = relative.sum(axis=0)
    return sorted(usual, key=lambda column: -totals[column])


def _in_order_of_arrival(members: Ints, x: Floats) -> tuple[Ints, Floats]:
    """Rows of X by arrival of their later member: a job, then its pairs with earlier jobs.

    Without pairs, the rows keep the order of the policy.
    """
    first = members[:, 0]
    second = members[:, 1]
    is_pair = second >= 0
    if not is_pair.any():
        return members, x
    swapped = is_pair & (second < first)
    if swapped.any():
        members = np.where(swapped[:, None], members[:, ::-1], members)
        first = members[:, 0]
        second = members[:, 1]
    # the later member decides; -1 puts a single job before its pairs
    stride = int(members.max(initial=0)) + 2
    rank = np.where(second < 0, first * stride - 1, second * stride + first)
    if (rank[1:] > rank[:-1]).all():
        return members, x
    order = np.argsort(rank, kind="stable")
    return members[order], x[order]


def _violation(
    members: Ints, x: Floats, demand_of: Ints, speeds: Speeds, ids: Sequence[object]
) -> tuple[str, str]:
    """Constraint that an infeasible X violates, and where it is violated most."""
    types = speeds.gpu_types
    limits = speeds.gpu_counts
    # this comparison is also false for NaN, which is reported before other violations
    if not x.min() >= -TOLERANCE:
        row, column = (int(index) for index in np.unravel_index(x.argmin(), x.shape))
        owner = f"{_job_names(members[row], ids)} on {types[column]!r}"
        return "shares must be >= 0", f"the share of {owner} is {x[row, column]:g}"
    first = members[:, 0]
    second = members[:, 1]
    is_pair = second >= 0
    demands = demand_of[first]
    unequal = is_pair & (demands != demand_of[second])
    if unequal.any():
        row = int(unequal.argmax())
        pair = _job_names(members[row], ids)
        pair_demands = f"{demands[row]} and {demand_of[second[row]]} GPUs"
        return "jobs that share GPUs must have equal demand", f"{pair} ask for {pair_demands}"
    row_time = x.sum(axis=1)
    job_time = np.bincount(first, row_time, len(demand_of))
    job_time += np.bincount(second[is_pair], row_time[is_pair], len(demand_of))
    if job_time.max() > 1 + TOLERANCE:
        job = int(job_time.argmax())
        total = f"the shares of job {ids[job]!r} sum to {job_time[job]:.9g}"
        return "shares must sum to at most 1 per job", total
    used = demands @ x
    column = int((used / np.maximum(limits, 1e-300)).argmax())
    usage = f"jobs use {used[column]:.9g} of {limits[column]:g} GPUs of {types[column]!r}"
    return "shares must fit the GPUs of each type", usage


def _job_names(members: Sequence[int] | Ints, ids: Sequence[object]) -> str:
    """Names of the jobs of a row, for messages."""
    job, partner = members
    return f"job {ids[job]!r}" if partner < 0 else f"jobs {ids[job]!r} and {ids[partner]!r}"
