"""Base of policies that divide GPUs, and the compiled state of their division rules."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from repro.base.compiled import njit
from repro.base.errors import PolicyError
from repro.base.outside import place_note
from repro.base.typing import Floats, Ints
from repro.model.decision import Run, RunSet
from repro.model.keys import bad_key, is_key
from repro.model.policy import Key, Policy
from repro.model.settings import AtLeast, Between
from repro.model.view import View

#: A job whose end is at most this factor times the present instant completes now, because ends have
#: rounding errors.
SAME_INSTANT = 1.0 + 1e-13
#: Entries of `ElasticState.tally`, in order:
#: - jobs that hold GPUs, the valid entries of `ElasticState.holders`,
#: - jobs present,
#: - events,
#: - jobs present just before an event, summed over the events (for `mean_jobs`).
HOLDERS, PRESENT, EVENTS, PRESENT_SUM = range(4)
#: Entries of `ElasticState.clock`, in order:
#: - present instant (ticks, see `ElasticJobs.ticks_per_second`),
#: - end of the lease (ticks),
#: - GPU-seconds held so far,
#: - demanded GPUs: the total demand of the jobs present, which may exceed the cluster. HELD_GPU_S
#:   grows per second by this number, or by the GPUs of the cluster if they are fewer. A rule that
#:   leaves GPUs idle sets this entry to the GPUs held.
#: - instant (ticks) at which the rule wants to divide GPUs again.
NOW, LEASE_ENDS, HELD_GPU_S, DEMANDED, WAKE = range(5)


class ElasticJobs(NamedTuple):
    """Jobs, cluster and settings of a run of divisible GPUs.

    Arrays have an entry per job, in order of arrival, except `curves`. During a run only
    `change_demand` writes into them.
    """

    #: submission time (ticks)
    submit: Floats
    #: work (s on one GPU)
    work: Floats
    #: work of the whole job as the trace predicts it (s on one GPU); ``work`` without predictions
    predicted_work: Floats
    #: factor: the remaining work that the scheduler assumes, divided by the true remaining work. It
    #: combines the predicted durations of the trace and `Elastic.size_error`.
    size_factor: Floats
    #: demand (GPUs)
    demand: Ints
    #: speed on the demanded GPUs, S(demand)
    full_speed: Floats
    #: row of the speed-up curve of each job in `curves`
    curve: Ints
    #: speed-up curves. Row 0 stands for linear speed-up, and its entries are not used.
    curves: Floats
    #: class or kind of each job as a number, see `Elastic.groups`
    group: Ints
    #: number of classes or kinds
    num_groups: int
    #: GPUs of the cluster
    gpus: int
    #: true: jobs that complete together are taken in order of arrival. False: in order of
    #: `ElasticState.holders`.
    by_arrival: bool
    #: ticks of the clock per second. Above 1, instants are whole numbers of ticks. With 1, they are
    #: seconds with fractions.
    ticks_per_second: float
    #: time without progress after the GPUs of a job changed (ticks)
    pause: float
    #: time from the last event until GPUs are divided again (ticks)
    lease: float


class ElasticState(NamedTuple):
    """State of a run of divisible GPUs; a rollout works on a copy.

    ``memory_floats`` and ``memory_ints`` are the memory of the policy, with a row for each array of
    `DivisionRule.memory`.
    """

    #: by job: remaining work (s on one GPU), GPUs held, speed on these GPUs, and instant from which
    #: it progresses on them (ticks)
    work_left: Floats
    gpus: Floats
    rate: Floats
    progress_from: Floats
    #: jobs that hold GPUs, in the first ``tally[HOLDERS]`` entries
    holders: Ints
    memory_floats: Floats
    memory_ints: Ints
    clock: Floats
    tally: Ints
    #: by job, at its arrival: jobs present, events, and jobs present summed over the events; see
    #: `tally`, (3, jobs)
    at_arrival: Ints

    @classmethod
    def of(cls, jobs: ElasticJobs, memory: Iterable[type]) -> "ElasticState":
        """State before the first arrival; the memory of the policy is zero."""
        n = len(jobs.work)
        width = max(n, jobs.num_groups)
        array_types = [hint for rows in memory for hint in _array_types(rows)]
        clock = np.zeros(5)
        clock[LEASE_ENDS] = clock[WAKE] = math.inf
        return cls(
            work_left=jobs.work.copy(),
            gpus=np.zeros(n),
            rate=np.zeros(n),
            progress_from=np.zeros(n),
            holders=np.zeros(n, np.int64),
            memory_floats=np.zeros((array_types.count(Floats), width)),
            memory_ints=np.zeros((array_types.count(Ints), width), np.int64),
            clock=clock,
            tally=np.zeros(4, np.int64),
            at_arrival=np.zeros((3, n), np.int64),
        )


@functools.cache
def _array_types(rows: type) -> tuple[Any, ...]:
    """Types of the arrays of a policy's memory."""
    return tuple(get_type_hints(rows).values())


@njit()
def speed(jobs: ElasticJobs, job: int, gpus: float) -> float:
    """Speed-up S(gpus), linear between whole numbers of GPUs; S(demand) above the demand."""
    if gpus >= jobs.demand[job]:
        return float(jobs.full_speed[job])
    curve = jobs.curve[job]
    if curve == 0:
        return gpus
    below = int(gpus)
    low = jobs.curves[curve, below]
    return float(low + (gpus - below) * (jobs.curves[curve, below + 1] - low))


@njit()
def give(jobs: ElasticJobs, s: ElasticState, job: int, gpus: float) -> None:
    """Give a job ``gpus`` GPUs from the present instant on."""
    if gpus != s.gpus[job]:
        s.gpus[job] = gpus
        s.rate[job] = speed(jobs, job, gpus)
        s.progress_from[job] = s.clock[NOW] + jobs.pause


@njit()
def ticks_of(jobs: ElasticJobs, seconds: float) -> float:
    """Ticks of a time in seconds, a whole number if a second has several ticks."""
    if jobs.ticks_per_second == 1.0:
        return seconds
    # The fraction is rounded alone, because a large float does not resolve microseconds.
    full_seconds = np.floor(seconds)
    fraction = seconds - full_seconds
    full_ticks = full_seconds * jobs.ticks_per_second
    return float(full_ticks + np.rint(fraction * jobs.ticks_per_second))


@njit()
def mean_jobs(s: ElasticState, job: int) -> float:
    """Mean number of jobs present over the events of a job's life (N of PCS, section 2)."""
    present_sum = s.at_arrival[0, job] + s.tally[PRESENT_SUM] - s.at_arrival[2, job]
    return float(present_sum / (1 + s.tally[EVENTS] - s.at_arrival[1, job]))


# This heap orders jobs by key and tie. `engine/rounds/kernel.py` and Themis have heaps with other
# orders. One heap that is passed its order would serve all three, but Numba would not cache its
# callers, and runs would take up to 1.6 times as long
# (docs/architecture-measured.md).
@njit()
def push(heap: Ints, key: Floats, tie: Ints, start: int, size: int, job: int) -> None:
    """Add a job to a binary heap of ``size`` jobs, which begins at ``heap[start]``.

    The smallest ``key`` is on top, and ``tie`` orders equal keys. Both have an entry per job.
    """
    position = size
    while position > 0:
        parent = (position - 1) // 2
        other = heap[start + parent]
        if key[other] < key[job] or (key[other] == key[job] and tie[other] < tie[job]):
            break
        heap[start + position] = other
        position = parent
    heap[start + position] = job


@njit()
def pop(heap: Ints, key: Floats, tie: Ints, start: int, size: int) -> int:
    """Remove the job on top of a heap of ``size`` jobs and return it."""
    top = heap[start]
    last = heap[start + size - 1]
    position = 0
    size = size - 1
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        best = heap[start + child]
        if child + 1 < size:
            right = heap[start + child + 1]
            if key[right] < key[best] or (key[right] == key[best] and tie[right] < tie[best]):
                child = child + 1
                best = right
        if key[last] < key[best] or (key[last] == key[best] and tie[last] <= tie[best]):
            break
        heap[start + position] = best
        position = child
    heap[start + position] = last
    return int(top)


class DivisionRule(NamedTuple):
    """Division rule of a policy: compiled functions, and the loop compiled around them.

    ``admit(jobs, settings, s, job)`` updates the memory of the policy at an arrival, and
    ``retire(jobs, settings, s, job)`` at a completion. ``share(jobs, settings, s)`` divides the
    GPUs: it updates `ElasticState.holders` and their GPUs. The settings are the result of
    `Elastic.settings`. ``run`` is the loop.

    ``resize(jobs, settings, s, job, demand)`` updates the memory before the demand of a job that
    holds GPUs changes (`change_demand`). None: no value in the memory depends on demands.

    ``memory`` has NamedTuple classes whose fields are the rows of the policy's memory. Fields of
    type `Floats` are rows of `ElasticState.memory_floats`, and come first in a class. Fields of
    type `Ints` are rows of `ElasticState.memory_ints`. A row is long enough for an entry per job,
    or an entry per class or kind.
    """

    run: Callable[..., Any]
    admit: Callable[..., None]
    retire: Callable[..., None]
    share: Callable[..., None]
    memory: tuple[type, ...]
    by_arrival: bool = True
    resize: Callable[..., None] | None = None


@dataclass(frozen=True)
class Elastic(Policy):
    """A policy that divides the GPUs of the cluster among all jobs, at every event.

    A subclass defines `key` or `grants`. With `key`, each job in order of the keys gets its demand,
    or the idle GPUs if these are fewer. `grants` may also give fractions of GPUs. A performance
    model (`repro.perf.SpeedUp`) has the speed of a job on fewer GPUs than its demand. If the policy
    has a compiled `rule`, simulations without further arrivals can predict completions.

    In its methods, ``view`` is the `View` of the run, ``job`` the row number of a job, ``jobs`` the
    arrays of all jobs that compiled functions read, and ``total`` the GPUs of the cluster.

    Parameters
    ----------
    size_error : float
        Largest relative error of the job sizes that the scheduler assumes. The error of each job
        is sampled once, from the seed of the run. Durations that the trace predicts are multiplied
        by 1 + error. Needs a compiled rule.
    resize_s : float
        Time without progress after the GPUs of a job changed (s). Needs a compiled rule.

    References
    ----------
    PCS, arXiv 2401.10354, section 5.1.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Halves(Elastic):
    ...     def grants(self, view, total):
    ...         for job in view.jobs:
    ...             total -= (gpus := min(total / 2, view.gpus(job)))
    ...             yield job, gpus
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> simulate(small_trace(), "1x4", Halves()).summary()["n_finished"]
    6
    """

    size_error: Annotated[float, Between(0, 1, below=True)] = field(default=0.0, kw_only=True)
    resize_s: Annotated[float, AtLeast(0, "seconds", finite=True)] = field(
        default=0.0, kw_only=True
    )

    time_fields: ClassVar[tuple[str, ...]] = ("resize_s",)
    elastic: ClassVar[bool] = True
    names_types: ClassVar[bool] = False
    pools_types: ClassVar[bool] = True
    #: the compiled division rule; None: `grants` decides
    rule: ClassVar[DivisionRule | None] = None
    #: true: the numbers of `groups` are classes of jobs, and the records have a column of them
    has_classes: ClassVar[bool] = False
    #: true: the numbers of `groups` are kinds of equal jobs, and one job of a kind stands for all
    divides_by_kind: ClassVar[bool] = False
    #: true: with exact job sizes, later arrivals do not change the completion of a job
    foresees: ClassVar[bool] = False
    #: row of `ElasticState.memory_floats` with the end that each job reserves at arrival. This end
    #: is the prediction of the job's completion. None: the policy reserves no ends.
    reserved_end_row: ClassVar[int | None] = None

    @property
    def lease_s(self) -> float:
        """Time from the last event until GPUs are divided again (s)."""
        return math.inf

    def groups(self, jobs: ElasticJobs, *, alone: bool) -> tuple[Ints, int]:
        """Group of each job as a number, (jobs,), and number of groups.

        A group is a class of the policy if `has_classes`, otherwise a kind of equal jobs. With
        ``alone`` a policy that groups by kind makes every job a kind of its own. By default all
        jobs are one group.
        """
        return np.zeros(len(jobs.work), np.int64), 1

    def settings(self, jobs: ElasticJobs) -> Any:
        """Parameters of the policy for its compiled functions, such as a tuple of weights."""
        return 0

    def key(self, view: View, job: int) -> Key:
        """Sort key of ``job`` at the present instant; the smallest key gets GPUs first."""
        raise PolicyError(f"elastic policy {self.name!r} defines neither `key` nor `grants`")

    def grants(self, view: View, total: int) -> Iterable[tuple[int, float]]:
        """Yield (job, GPUs) of the jobs that get some of ``total`` GPUs, highest priority first."""
        idle = total
        for job in self._by_key(view):
            gpus = min(idle, view.gpus(job))
            if gpus == 0:
                return
            yield job, gpus
            idle -= gpus

    def _by_key(self, view: View) -> list[int]:
        """Unfinished jobs, smallest key first, after a check of the keys."""
        keys: dict[int, Key] = {}
        length = 0
        for job in view.jobs:
            key = self.key(view, job)
            if not is_key(key, length):
                raise bad_key(self.name, view.job_id(job), key)
            length = len(key) if isinstance(key, tuple) else 1
            keys[job] = key
        return sorted(keys, key=keys.__getitem__)

    def decide(self, view: View) -> RunSet:
        """Gangs that hold the GPUs of `grants`."""
        granted = self.grants(view, view.cluster.num_gpus)
        if not isinstance(granted, Iterable):
            raise self._bad_grants(f"`grants` returned {granted!r:.60}")
        runs: list[Run] = []
        # One grant more than the jobs present names a job twice, which the engine refuses. A
        # generator may have no end.
        for grant in itertools.islice(granted, len(view.jobs) + 1):
            try:
                job, gpus = grant
            except (TypeError, ValueError):
                raise self._bad_grants(f"`grants` has {grant!r:.60}") from None
            if not isinstance(gpus, Real):
                raise self._bad_grants(f"`grants` has {grant!r:.60}")
            runs.append(Run((job,), gpus))
        return RunSet(runs, "exact")

    def _bad_grants(self, fault: str) -> PolicyError:
        """Error of grants that are not pairs of job and GPUs, with the place of `grants`."""
        return PolicyError(
            f"policy {self.name!r}: {fault}{place_note(type(self).grants)}; yield pairs (row "
            f"number of a job, number of GPUs)"
        )

    def session(self, view: View) -> Callable[[View], Any]:
        """Decision function of one run."""
        return self.decide if self.rule is None else _RuleSession(self, self.rule, view)


class _RuleSession:
    """Decision function of a policy with a compiled rule, called event by event."""

    def __init__(self, policy: Elastic, rule: DivisionRule, view: View) -> None:
        self.policy = policy
        self.jobs = jobs_of(policy, view)
        self.settings = policy.settings(self.jobs)
        self.rule = rule
        self.s = ElasticState.of(self.jobs, rule.memory)

    def __call__(self, view: View) -> RunSet:
        """Record completions and arrivals as one event each, then divide the GPUs."""
        jobs = self.jobs
        s = self.s
        settings = self.settings
        rule = self.rule
        finished = list(view.finished)
        s.clock[NOW] = view.now
        rows = s.holders[: s.tally[HOLDERS]]
        rows = rows[[view.is_unfinished(job) for job in rows.tolist()]]
        # the view has the remaining time on the demanded GPUs, and `work_left` that on one GPU
        s.work_left[rows] = view.true_remaining_of(rows) * jobs.full_speed[rows]
        if not finished and view.now >= s.clock[LEASE_ENDS]:
            count_event(s)
        for job in finished:
            count_event(s)
            depart(s, jobs, job)
            rule.retire(jobs, settings, s, job)
        for job in view.fresh:
            count_event(s)
            arrive(s, jobs, job)
            rule.admit(jobs, settings, s, job)
        rule.share(jobs, settings, s)
        s.clock[LEASE_ENDS] = min(view.now + jobs.lease, s.clock[WAKE])
        holders = s.holders[: s.tally[HOLDERS]].tolist()
        runs = [Run((job,), float(s.gpus[job])) for job in holders]
        return RunSet(runs, "exact", wake=float(s.clock[LEASE_ENDS]))


@njit()
def count_event(s: ElasticState) -> None:
    """Count an event and the jobs present just before the event."""
    s.tally[EVENTS] += 1
    s.tally[PRESENT_SUM] += s.tally[PRESENT]


@njit()
def arrive(s: ElasticState, jobs: ElasticJobs, job: int) -> None:
    """Record an arrival."""
    s.tally[PRESENT] += 1
    s.clock[DEMANDED] += jobs.demand[job]
    s.at_arrival[0, job] = s.tally[PRESENT]
    s.at_arrival[1, job] = s.tally[EVENTS]
    s.at_arrival[2, job] = s.tally[PRESENT_SUM]


@njit()
def depart(s: ElasticState, jobs: ElasticJobs, job: int) -> None:
    """Record a completion."""
    s.tally[PRESENT] -= 1
    s.clock[DEMANDED] -= jobs.demand[job]
    s.gpus[job] = s.work_left[job] = 0.0


def change_demand(
    rule: DivisionRule, jobs: ElasticJobs, settings: Any, s: ElasticState, job: int, demand: int
) -> None:
    """Change the demand of a job that holds GPUs and speeds up linearly."""
    if rule.resize is not None:
        rule.resize(jobs, settings, s, job, demand)
    s.clock[DEMANDED] += demand - jobs.demand[job]
    jobs.demand[job] = demand
    jobs.full_speed[job] = demand


def jobs_of(
    policy: Elastic,
    view: View,
    *,
    ticks_per_second: float = 1.0,
    alone: bool = True,
    predicts: bool = False,
) -> ElasticJobs:
    """Jobs, cluster and settings for a compiled rule.

    ``alone`` is passed to `Elastic.groups`. ``predicts`` says that completions are predicted.
    Predictions need the sizes of jobs, even if the policy does not read sizes.
    """
    demand = view.widths.astype(np.int64)
    n = len(demand)
    curves, curve = view.curves()
    # curve 0 is linear, and its row in `curves` is not used
    on_curve = curves[curve, np.minimum(demand, curves.shape[1] - 1)]
    full_speed = np.where(curve == 0, demand, on_curve)
    submit = view.submits
    if ticks_per_second > 1:
        submit = np.rint(submit * ticks_per_second)
    size_factors = np.ones(n)
    if policy.size_error:
        rng = np.random.default_rng([view.seed, n])
        size_factors = 1 + rng.uniform(-policy.size_error, policy.size_error, n)
    prediction_factors = view.prediction_factors if policy.reads_sizes or predicts else None
    work = view.work(full_speed)
    predicted_work = work
    if prediction_factors is not None:
        size_factors = size_factors * prediction_factors
        predicted_work = work * prediction_factors
    jobs = ElasticJobs(
        submit=submit,
        work=work,
        predicted_work=predicted_work,
        size_factor=size_factors,
        demand=demand,
        full_speed=full_speed,
        curve=curve,
        curves=curves,
        group=np.zeros(n, np.int64),
        num_groups=1,
        gpus=view.cluster.num_gpus,
        by_arrival=policy.rule is None or policy.rule.by_arrival,
        ticks_per_second=ticks_per_second,
        pause=policy.resize_s * ticks_per_second,
        lease=policy.lease_s * ticks_per_second,
    )
    # Jobs of equal size and demand are not equal to the policy if their size errors differ, or if
    # they progress from different instants after a change of their GPUs.
    has_error = policy.size_error > 0 or bool((size_factors != 1.0).any())
    alone = alone or has_error or policy.resize_s > 0
    # thresholds of classes are sizes in the trace, on any GPU type
    sized = jobs._replace(work=view.trace_work(full_speed)) if policy.has_classes else jobs
    group, num_groups = policy.groups(sized, alone=alone)
    return jobs._replace(group=group, num_groups=num_groups)
