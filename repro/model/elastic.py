"""Base of policies of divisible GPUs, and the compiled state their rules work on."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from repro.base.compiled import njit
from repro.base.errors import ParamError, PolicyError
from repro.base.typing import Floats, Ints
from repro.model.decision import Run, RunSet
from repro.model.policy import Key, Policy
from repro.model.settings import AtLeast, Between
from repro.model.view import View

#: GPUs left over up to this many are none: sums of fractions differ from whole numbers by rounding.
NO_GPUS = 1e-9
#: Completions up to this multiple of an instant are at that instant: rounding tells them apart.
SAME_INSTANT = 1.0 + 1e-13
#: Entries of `ElasticState.tally`: jobs that hold GPUs (the first ones of `ElasticState.holders`),
#: jobs present, events so far, and the sum of jobs present just before each.
HOLDERS, PRESENT, EVENTS, SHOWN = range(4)
#: Entries of `ElasticState.clock`: now and when the lease ends (parts of a second), GPU-seconds
#: held so far, GPUs asked for by the jobs present (if the rule leaves GPUs idle: held), when the
#: rule wants GPUs handed out anew.
NOW, LEASE_ENDS, HELD, ASKED, WAKE = range(5)


class Jobs(NamedTuple):
    """What does not change during a run of divisible GPUs, one entry per job in order of arrival.

    ``work`` is in seconds on one GPU; the scheduler takes it to be ``work * error``.
    """

    submit: Floats
    work: Floats
    error: Floats
    asked: Ints
    #: speed S(asked), the row of the speed-up curve, and the curves (row 0: linear, not filled in)
    fastest: Floats
    curve: Ints
    curves: Floats
    #: numbers that a policy gives each job: its class, its kind
    group: Ints
    #: how many such numbers there are, and GPUs
    groups: int
    gpus: int
    #: of equal completions that of the earlier arrival is taken first; else in order of holders
    by_arrival: bool
    #: instants are counted in parts of a second, whole numbers of them if there are more than one
    per_second: float
    #: such parts without progress after a job's GPUs changed
    pause: float
    #: parts after the last event at which GPUs are handed out anew
    lease: float


class ElasticState(NamedTuple):
    """What changes during a run of divisible GPUs; a playout works on a copy.

    ``real`` and ``whole`` are the policy's own memory, a row for each array of
    `DivisionRule.memory`.
    """

    #: of jobs: seconds of work left on one GPU, GPUs held, speed on them, start of progress on them
    left: Floats
    gpus: Floats
    rate: Floats
    begins: Floats
    holders: Ints
    real: Floats
    whole: Ints
    clock: Floats
    tally: Ints
    #: of jobs, at their arrival: jobs present, events so far, sum of jobs present before each
    seen: Ints

    @classmethod
    def of(cls, jobs: Jobs, memory: Iterable[type]) -> "ElasticState":
        """ElasticState before the first arrival, with own memory of zeros."""
        n = len(jobs.work)
        width = max(n, jobs.groups)
        kinds = [kind for part in memory for kind in get_type_hints(part).values()]
        clock = np.zeros(5)
        clock[LEASE_ENDS] = clock[WAKE] = math.inf
        return cls(
            left=jobs.work.copy(),
            gpus=np.zeros(n),
            rate=np.zeros(n),
            begins=np.zeros(n),
            holders=np.zeros(n, np.int64),
            real=np.zeros((kinds.count(Floats), width)),
            whole=np.zeros((kinds.count(Ints), width), np.int64),
            clock=clock,
            tally=np.zeros(4, np.int64),
            seen=np.zeros((3, n), np.int64),
        )


@njit()
def speed(jobs: Jobs, job: int, gpus: float) -> float:
    """Return S(gpus), interpolated between whole numbers; beyond what the job asks for S(asked)."""
    if gpus >= jobs.asked[job]:
        return float(jobs.fastest[job])
    curve = jobs.curve[job]
    if curve == 0:
        return gpus
    below = int(gpus)
    low = jobs.curves[curve, below]
    return float(low + (gpus - below) * (jobs.curves[curve, below + 1] - low))


@njit()
def give(jobs: Jobs, s: ElasticState, job: int, gpus: float) -> None:
    """Let a job hold so many GPUs from now on."""
    if gpus != s.gpus[job]:
        s.gpus[job] = gpus
        s.rate[job] = speed(jobs, job, gpus)
        s.begins[job] = s.clock[NOW] + jobs.pause


@njit()
def in_parts(jobs: Jobs, seconds: float) -> float:
    """Return seconds in parts of the clock, a whole number of them if a second has several."""
    if jobs.per_second == 1.0:
        return seconds
    # rounded as a duration: far from time zero a sum of seconds has no microseconds left
    whole = np.floor(seconds)
    return float(whole * jobs.per_second + np.rint((seconds - whole) * jobs.per_second))


@njit()
def mean_jobs(s: ElasticState, job: int) -> float:
    """Return the mean number of jobs present over the events of a job's life (PCS's N)."""
    shown = s.seen[0, job] + s.tally[SHOWN] - s.seen[2, job]
    return float(shown / (1 + s.tally[EVENTS] - s.seen[1, job]))


# Rounds and Themis have compiled heaps of their own: one heap that is passed its order as a
# compiled function is not cached by Numba and costs up to 1.6 times (docs/architecture.md).
@njit()
def push(heap: Ints, key: Floats, tie: Ints, start: int, size: int, job: int) -> None:
    """Add a job to a binary heap of ``size`` jobs that begins at ``start``; smallest key on top."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        other = heap[start + parent]
        if key[other] < key[job] or (key[other] == key[job] and tie[other] < tie[job]):
            break
        heap[start + place] = other
        place = parent
    heap[start + place] = job


@njit()
def pop(heap: Ints, key: Floats, tie: Ints, start: int, size: int) -> int:
    """Remove and return the job on top of a heap of ``size`` jobs."""
    top = heap[start]
    last = heap[start + size - 1]
    place = 0
    size = size - 1
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        one = heap[start + child]
        if child + 1 < size:
            two = heap[start + child + 1]
            if key[two] < key[one] or (key[two] == key[one] and tie[two] < tie[one]):
                child = child + 1
                one = two
        if key[last] < key[one] or (key[last] == key[one] and tie[last] <= tie[one]):
            break
        heap[start + place] = one
        place = child
    heap[start + place] = last
    return int(top)


class DivisionRule(NamedTuple):
    """How a policy divides GPUs, as compiled functions, and the loop compiled around them.

    ``admit(jobs, how, s, job)`` and ``retire(jobs, how, s, job)`` book a job that comes or goes;
    ``share(jobs, how, s)`` brings `ElasticState.holders` and what they hold up to date. ``how``
    is what `Elastic.settings` returns. ``memory`` are classes of NamedTuples that name the rows of
    own memory, those of `Floats` (`ElasticState.real`) before those of `Ints`
    (`ElasticState.whole`) in each. A row has an entry for every job and for every number of
    `Elastic.groups`. ``run`` is the loop.
    """

    run: Callable[..., Any]
    admit: Callable[..., None]
    retire: Callable[..., None]
    share: Callable[..., None]
    memory: tuple[type, ...]
    by_arrival: bool = True


@dataclass(frozen=True)
class Elastic(Policy):
    """A policy that divides the cluster's GPUs among all jobs, anew at every event.

    A subclass defines `key`, and jobs in that order get what they ask for or what is left; or it
    defines `grants`, which may hand out fractions of GPUs. How fast a job runs on fewer GPUs than
    it asks for is the performance model's (`repro.perf.SpeedUp`). Policies with a compiled `rule`
    can be run forward without further arrivals, which predicts completions.

    Parameters
    ----------
    size_error : float
        The scheduler takes each job for up to this share larger or smaller than it is, drawn once
        per job from the seed of the run.
    resize_s : float
        Seconds without progress after the GPUs of a job changed. Both only with a compiled rule.

    Reference: PCS, arXiv 2401.10354, section 5.1.

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

    elastic: ClassVar[bool] = True
    #: the compiled rule, where there is one
    rule: ClassVar[DivisionRule | None] = None
    #: `groups` are classes, which records name
    classed: ClassVar[bool] = False
    #: with exact sizes, later arrivals change nothing for a job
    foresees: ClassVar[bool] = False
    #: row of `ElasticState.real` with the promised end of each job, which is then its prediction
    promised: ClassVar[int | None] = None

    @property
    def lease_s(self) -> float:
        """Seconds after the last event at which GPUs are handed out anew."""
        return math.inf

    def groups(self, jobs: Jobs, *, alone: bool) -> tuple[Ints, int]:
        """Return a number for every job, and how many such numbers there are.

        ``alone``: the clock has to tell all jobs apart.
        """
        return np.zeros(len(jobs.work), np.int64), 1

    def settings(self, jobs: Jobs) -> Any:
        """Return what the rule is handed besides jobs and state."""
        return 0

    def key(self, view: View, job: int) -> Key:
        """Return the sort key of ``job`` now; smaller gets GPUs first."""
        raise PolicyError(f"elastic policy {self.name!r} defines neither `key` nor `grants`")

    def grants(self, view: View, total: int) -> Iterable[tuple[int, float]]:
        """Return (job, GPUs) of the jobs that get some of the ``total`` GPUs, best first."""
        left = total
        for job in sorted(view.jobs, key=lambda job: self.key(view, job)):
            gpus = min(left, view.gpus(job))
            if gpus == 0:
                return
            yield job, gpus
            left -= gpus

    def decide(self, view: View) -> RunSet:
        """Return what `grants` hands out."""
        granted = self.grants(view, total_gpus(view))
        return RunSet([Run((job,), gpus) for job, gpus in granted], "exact")

    def session(self, view: View) -> Callable[[View], Any]:
        """Return the decision function of one run."""
        return self.decide if self.rule is None else _Sharing(self, self.rule, view)


class _Sharing:
    """A compiled rule asked by the engine, event by event."""

    def __init__(self, policy: Elastic, rule: DivisionRule, view: View) -> None:
        self.policy = policy
        self.jobs = jobs_of(policy, view)
        self.how = policy.settings(self.jobs)
        self.rule = rule
        self.s = ElasticState.of(self.jobs, rule.memory)

    def __call__(self, view: View) -> RunSet:
        """Book who came and went, one event each, and share the GPUs out."""
        jobs = self.jobs
        s = self.s
        how = self.how
        rule = self.rule
        if self.policy.size_error or self.policy.resize_s:
            raise ParamError(
                f"{self.policy.name}: size_error and resize_s go by the compiled clock, which has "
                f"no intervals, overheads, nodes, added processes or early ends; leave these out"
            )
        finished = list(view.finished)
        s.clock[NOW] = view.now
        rows = s.holders[: s.tally[HOLDERS]]
        rows = rows[[view.is_unfinished(job) for job in rows.tolist()]]
        # duration is the time on the GPUs asked for
        s.left[rows] = view.remaining_of(rows) * jobs.fastest[rows]
        if not finished and view.now >= s.clock[LEASE_ENDS]:
            count_event(s)
        for job in finished:
            count_event(s)
            depart(s, jobs, job)
            rule.retire(jobs, how, s, job)
        for job in view.fresh:
            count_event(s)
            arrive(s, jobs, job)
            rule.admit(jobs, how, s, job)
        rule.share(jobs, how, s)
        s.clock[LEASE_ENDS] = min(view.now + jobs.lease, s.clock[WAKE])
        held = s.holders[: s.tally[HOLDERS]].tolist()
        runs = [Run((job,), float(s.gpus[job])) for job in held]
        return RunSet(runs, "exact", wake=float(s.clock[LEASE_ENDS]))


@njit()
def count_event(s: ElasticState) -> None:
    """Let everyone present see how many are."""
    s.tally[EVENTS] += 1
    s.tally[SHOWN] += s.tally[PRESENT]


@njit()
def arrive(s: ElasticState, jobs: Jobs, job: int) -> None:
    """Book a job that is present from now on."""
    s.tally[PRESENT] += 1
    s.clock[ASKED] += jobs.asked[job]
    s.seen[0, job] = s.tally[PRESENT]
    s.seen[1, job] = s.tally[EVENTS]
    s.seen[2, job] = s.tally[SHOWN]


@njit()
def depart(s: ElasticState, jobs: Jobs, job: int) -> None:
    """Book a job that is done."""
    s.tally[PRESENT] -= 1
    s.clock[ASKED] -= jobs.asked[job]
    s.gpus[job] = s.left[job] = 0.0


def total_gpus(view: View) -> int:
    """Return the GPUs an elastic policy divides; they must be of one type."""
    if len(view.capacity()) > 1:
        raise PolicyError(
            f"elastic policies divide GPUs of one type, the cluster has {dict(view.capacity())}; "
            f"use a cluster of one type or a policy that returns Shares"
        )
    return view.cluster.num_gpus


def jobs_of(policy: Elastic, view: View, *, grid: float = 1.0, alone: bool = True) -> Jobs:
    """Return what a compiled rule knows of all jobs; see `Elastic.groups` for ``alone``."""
    asked = view.widths.astype(np.int64)
    n = len(asked)
    curves, curve = view.curves()
    fastest = curves[curve, np.minimum(asked, curves.shape[1] - 1)]
    fastest = np.where(curve == 0, asked, fastest)
    submit = view.submits
    error = np.ones(n)
    if policy.size_error:
        rng = np.random.default_rng([view.seed, n])
        error = 1 + rng.uniform(-policy.size_error, policy.size_error, n)
    submit = np.rint(submit * grid) if grid > 1 else submit
    jobs = Jobs(
        submit, view.work(fastest), error, asked, fastest, curve, curves, np.zeros(n, np.int64), 1,
        total_gpus(view), policy.rule is None or policy.rule.by_arrival,
        grid, policy.resize_s * grid, policy.lease_s * grid,
    )  # fmt: skip
    alone = alone or policy.size_error > 0 or policy.resize_s > 0
    group, groups = policy.groups(jobs, alone=alone)
    return jobs._replace(group=group, groups=groups)
