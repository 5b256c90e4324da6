"""PCS: weighted fair queueing of classes by size, elastic first in, first out within a class."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.engine.elastic import ruled
from repro.model.baseline import Baseline
from repro.model.elastic import HOLDERS, NO_GPUS, Elastic, ElasticState, Jobs, give
from repro.model.policy import register
from repro.model.settings import Above, AtLeast, Between

#: Residual GPUs and demand (GPUs) below which classes share no further, as in the artifact.
_ENOUGH = 1e-3
#: Rounds in which classes share the residual, at most, as in the artifact.
_ROUNDS = 100
#: A cap that nobody asks for.
_UNCAPPED = 1 << 40
#: Levels of the cap at most.
_MAX_LEVELS = 1_000_000


class Classes(NamedTuple):
    """Weights, where queues begin, GPUs per job by level and curve, whether GPUs stay whole."""

    weights: Floats
    start: Ints
    caps: Ints
    turns: bool


class Memory(NamedTuple):
    """Own memory: the queues of the classes, one after the other; all else by class."""

    #: GPUs of each class
    share: Floats
    #: jobs present in order of arrival; the queue of class k lies between ``start[k]`` of `Classes`
    #: and ``start[k + 1]`` and begins ``head[k]`` entries later
    queue: Ints
    head: Ints
    #: jobs present, how many of them hold GPUs, and the GPUs that they ask for
    number: Ints
    holding: Ints
    asked: Ints
    #: level of the cap
    level: Ints
    #: entry 0: turns taken so far
    turn: Ints


@njit(inline="always")
def memory(s: ElasticState) -> Memory:
    """Own memory in a state."""
    return Memory(
        share=s.real[0],
        queue=s.whole[0],
        head=s.whole[1],
        number=s.whole[2],
        holding=s.whole[3],
        asked=s.whole[4],
        level=s.whole[5],
        turn=s.whole[6],
    )


@njit()
def _admit(jobs: Jobs, how: Classes, s: ElasticState, job: int) -> None:
    """Put a job at the end of its class."""
    own = memory(s)
    k = jobs.group[job]
    end = how.start[k] + own.head[k] + own.number[k]
    own.queue[end] = job
    own.number[k] += 1
    own.asked[k] += jobs.asked[job]


@njit()
def _retire(jobs: Jobs, how: Classes, s: ElasticState, job: int) -> None:
    """Take a job out of its class; those before it move up."""
    own = memory(s)
    k = jobs.group[job]
    queue = own.queue
    head = how.start[k] + own.head[k]
    place = head
    while queue[place] != job:
        place += 1
    for to in range(place, head, -1):
        queue[to] = queue[to - 1]
    own.head[k] += 1
    own.number[k] -= 1
    own.holding[k] -= 1
    own.asked[k] -= jobs.asked[job]


@njit(error_model="numpy")
def _divide(jobs: Jobs, how: Classes, s: ElasticState) -> None:
    """Share the GPUs among the classes: weighted max-min fairness over what their jobs ask for."""
    own = memory(s)
    share = own.share
    asked = own.asked
    classes = len(how.weights)
    residual = float(jobs.gpus)
    demand = 0
    weight = 0.0
    for k in range(classes):
        share[k] = 0.0
        demand += asked[k]
        weight += how.weights[k]
    wanted = float(demand)
    for _ in range(_ROUNDS):
        if residual < _ENOUGH or wanted < _ENOUGH:
            break
        spread = residual
        residual = float(jobs.gpus)
        wanted = 0.0
        left = 0.0
        for k in range(classes):
            if asked[k] - share[k] > NO_GPUS:
                share[k] = min(asked[k], share[k] + spread * how.weights[k] / weight)
            residual -= share[k]
            if asked[k] - share[k] > NO_GPUS:
                wanted += asked[k] - share[k]
                left += how.weights[k]
        weight = left


@njit()
def _reach(jobs: Jobs, how: Classes, s: ElasticState, k: int, level: int) -> int:
    """Return the GPUs that the jobs of a class take at a level of the cap."""
    own = memory(s)
    head = how.start[k] + own.head[k]
    gpus = 0
    for job in own.queue[head : head + own.number[k]]:
        gpus += min(jobs.asked[job], how.caps[level, jobs.curve[job]])
    return gpus


@njit()
def _share(jobs: Jobs, how: Classes, s: ElasticState) -> None:
    """Share GPUs among classes, then in each hand them out in order of arrival, up to the cap.

    If GPUs are left at the end of a class, its cap is relaxed for all its jobs by one level, and
    all of its GPUs are handed out again.
    """
    own = memory(s)
    _divide(jobs, how, s)
    count = 0
    for k in range(len(how.weights)):
        left = own.share[k]
        number = own.number[k]
        level = 0
        # every job takes one GPU or more
        if number + NO_GPUS < left:
            level = own.level[k]
            most = len(how.caps) - 1
            if _reach(jobs, how, s, k, level) + NO_GPUS >= left:
                while level > 0 and _reach(jobs, how, s, k, level - 1) + NO_GPUS >= left:
                    level -= 1
            else:
                level += level < most
                while level < most and _reach(jobs, how, s, k, level) + NO_GPUS < left:
                    level += 1
            own.level[k] = level
        head = how.start[k] + own.head[k]
        place = 0
        while place < number and left > NO_GPUS:
            job = own.queue[head + place]
            gpus = min(left, float(min(jobs.asked[job], how.caps[level, jobs.curve[job]])))
            give(jobs, s, job, gpus)
            s.holders[count] = job
            count += 1
            left -= gpus
            place += 1
        for behind in range(place, own.holding[k]):
            s.gpus[own.queue[head + behind]] = 0.0
        own.holding[k] = place
    s.tally[HOLDERS] = count
    if how.turns:
        _take_turns(jobs, s)


@njit()
def _take_turns(jobs: Jobs, s: ElasticState) -> None:
    """Make GPUs whole: what fractions add up to goes to as many jobs, other ones every time."""
    own = memory(s)
    held = s.holders[: s.tally[HOLDERS]]
    parts = 0.0
    several = 0
    count = 0
    for job in held:
        part = s.gpus[job] - np.floor(s.gpus[job] + NO_GPUS)
        parts = parts + part
        several = several + (part > NO_GPUS)
    more = int(np.round(parts))
    at = own.turn[0] % max(several, 1)
    for job in held:
        whole = np.floor(s.gpus[job] + NO_GPUS)
        if s.gpus[job] - whole > NO_GPUS:
            whole += at % several < more
            at += 1
        give(jobs, s, job, whole)
        if whole > 0.0:
            s.holders[count] = job
            count += 1
    s.tally[HOLDERS] = count
    own.turn[0] += max(more, 1)


@register("pcs")
@dataclass(frozen=True)
class Pcs(Elastic):
    """Predictability-centric scheduling: classes by size share GPUs by weight, FIFO inside.

    Classes share GPUs by weighted max-min fairness over what their jobs ask for. Within a class
    earlier jobs come first, each with at most the GPUs that it uses with efficiency S(g)/g of
    ``zeta_min`` or more; while GPUs are left over, that bound is lowered by ``delta``. Without
    thresholds there is one class. (PCS, arXiv 2401.10354, section 3.)

    Parameters
    ----------
    thresholds : tuple of float
        Largest job of each class but the last (seconds on one GPU), ascending.
    weights : tuple of float
        Weight of each class, above 0; normalised. By default equal.
    c2 : float, optional
        Instead of thresholds: the trace's jobs, sorted by size, are cut wherever their squared
        coefficient of variation exceeds it (T in PCS).
    decay : float, optional
        Instead of weights: that of class k is proportional to exp(-k * decay) (W in PCS), rounded
        to three decimals.
    zeta_min : float
        Efficiency from which a job gets more GPUs at once, 0 to 1.
    delta : float
        Step by which ``zeta_min`` is lowered, above 0.
    turn : float
        Above 0: GPUs are whole, and those that fractions add up to go from job to job every so many
        seconds (the artifact's testbed: 100); 0: jobs hold fractions.
    """

    thresholds: tuple[Annotated[float, Above(0, "seconds")], ...] = ()
    weights: tuple[Annotated[float, Above(0, finite=True)], ...] = ()
    c2: Annotated[float, AtLeast(0)] | None = None
    decay: float | None = None
    zeta_min: Annotated[float, Between(0, 1)] = 0.01
    delta: Annotated[float, AtLeast(1 / _MAX_LEVELS, finite=True)] = 0.01
    turn: Annotated[float, AtLeast(0, "seconds", finite=True)] = 0.0

    time_fields = ("turn",)
    needs = frozenset({"duration"})
    classed = True
    baseline = Baseline(
        "fifo-elastic",
        "without thresholds all jobs are one class; find some with `repro front`, or give "
        "thresholds and weights, or c2 and decay (--set c2=1 --set decay=0.5)",
        parameters=("thresholds", "c2", "turn"),
        model=True,
    )
    rule: ClassVar[Any] = ruled(_admit, _retire, _share, Memory)

    def __post_init__(self) -> None:
        super().__post_init__()
        thresholds = np.atleast_1d(self.thresholds)
        weights = np.atleast_1d(self.weights)
        if (thresholds.size or weights.size) and not (self.c2 is None and self.decay is None):
            raise ParamError("policy 'pcs': give thresholds and weights, or c2 and decay, not both")
        if (self.c2 is None) != (self.decay is None):
            raise ParamError("policy 'pcs': c2 and decay go together; give both or neither")
        if not (np.diff(thresholds) > 0).all():
            raise ParamError(
                f"policy 'pcs': thresholds are {self.thresholds}; give seconds in ascending order"
            )
        if weights.size and weights.size != thresholds.size + 1:
            raise ParamError(
                f"policy 'pcs': {weights.size} weights for {thresholds.size} thresholds; give one "
                f"weight more than thresholds"
            )

    @property
    def lease_s(self) -> float:
        """Seconds after the last event at which turns change."""
        return self.turn or math.inf

    def bounds(self, work: Floats) -> Floats:
        """Return the thresholds (s on one GPU) for jobs of these sizes; PCS, section 3.3."""
        if self.c2 is None:
            # one value stands for a list of one
            return np.array(np.atleast_1d(self.thresholds), dtype=float)
        return class_thresholds(work, self.c2)

    def class_weights(self, classes: int) -> Floats:
        """Return the weight of each of so many classes, of sum 1; PCS, section 3.3."""
        if self.decay is not None:
            return decaying_weights(classes, self.decay)
        given = np.atleast_1d(self.weights)
        weights = given if given.size else np.ones(classes)
        return np.asarray(weights / weights.sum())

    def groups(self, jobs: Jobs, *, alone: bool) -> tuple[Ints, int]:
        """Return the class of every job, and how many there are."""
        bounds = self.bounds(jobs.work)
        return np.searchsorted(bounds, jobs.work * jobs.error), len(bounds) + 1

    def settings(self, jobs: Jobs) -> Classes:
        """Return weights, where the queues begin, and the caps of every level."""
        sizes = np.bincount(jobs.group, minlength=jobs.groups)
        start = np.append(0, np.cumsum(sizes))
        levels = caps(jobs.curves, self.zeta_min, self.delta)
        return Classes(self.class_weights(jobs.groups), start, levels, self.turn > 0)


def class_thresholds(work: Floats, c2: float) -> Floats:
    """Return where jobs sorted by size are cut into classes.

    A class ends before the job with which its squared coefficient of variation would exceed ``c2``;
    that job counts for neither. Thresholds are whole seconds on one GPU (PCS, section 3.3).

    Examples
    --------
    >>> class_thresholds(np.array([1.0, 2.0, 100.0, 110.0]), 0.5).tolist()
    [2.0]
    """
    found: list[int] = []
    ordered = np.sort(work).tolist()
    number = 0
    total = 0.0
    squares = 0.0
    for place, size in enumerate(ordered):
        number = number + 1
        total = total + size
        squares = squares + size * size
        mean = total / number
        if squares / number - mean * mean > c2 * mean * mean:
            found.append(int(ordered[place - 1]))
            number = 0
            total = 0.0
            squares = 0.0
    return np.array(found, dtype=float)


def decaying_weights(classes: int, decay: float) -> Floats:
    """Return weights proportional to exp(-k decay), k = 0, 1, …, rounded to three decimals.

    Raises ParamError if one of them rounds to 0 (PCS, section 3.3).

    Examples
    --------
    >>> decaying_weights(2, 1.0).tolist()
    [0.731, 0.269]
    """
    weights = np.exp(-decay * np.arange(classes))
    weights = np.round(weights / weights.sum(), 3)
    if not (weights > 0).all():
        raise ParamError(
            f"policy 'pcs': with decay {decay} one of {classes} classes has a weight that rounds "
            f"to 0; give a decay nearer 0, or a c2 that makes fewer classes"
        )
    weights /= weights.sum()
    weights[-1] = 1.0 - weights[:-1].sum()
    return np.asarray(weights)


def caps(curves: Floats, zeta_min: float, delta: float) -> Ints:
    """Return the GPUs a job gets at most, by level and speed-up curve (PCS, section 3.2).

    At level j these are the GPUs before the first count g at which S(g)/g is below ``zeta_min`` -
    j ``delta``. Levels at which nothing changes are left out. ``curves`` has rows S(0), S(1), …;
    row 0 stands for linear speed-up.
    """
    counts = np.arange(1, curves.shape[1])
    lowest = np.minimum.accumulate(curves[1:, 1:] / counts, axis=1)
    steps = math.ceil(zeta_min / delta) + 2
    levels = np.subtract.accumulate(np.append(zeta_min, np.full(steps, delta)))
    found = np.full((len(levels), len(curves)), _UNCAPPED)
    for row, low in enumerate(lowest, start=1):
        # the first count whose efficiency is below the level, in falling order
        place = np.searchsorted(-low, -levels, side="right")
        found[:, row] = np.where(place < len(low), place, _UNCAPPED)
    changes = np.append(True, (np.diff(found, axis=0) != 0).any(axis=1))
    return np.asarray(found[changes])
