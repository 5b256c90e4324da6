"""PCS: weighted fair queueing of job classes, elastic FIFO within a class (PCS, section 3).

With G GPUs, size s_i (seconds on one GPU), demand D_i and speed-up S_i of job i:

    class of job i   k = the first class with s_i <= t_k, for thresholds t_1 < t_2 < ... < infinity
    GPUs of class k  F_k = 0 at first, then F_k <- min(sum of D_i in class k, F_k + R w_k / V),
                     repeated with R the GPUs left and V the sum of w_l over classes l with unmet
                     demand
    cap of job i     c_i(z) = (first g in 1..D_i with S_i(g) / g < z) - 1, or D_i without such a g
    GPUs of job i    g_i = min(c_i(z), GPUs of the class that are left), in order of arrival

The bound z begins at zeta_min. It falls by delta for all jobs of the class until no GPU is left.

Ties: equal arrivals of a class in the order of the trace. A size equal to t_k belongs to class k.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.errors import ParamError, refuse_unknown
from repro.base.typing import Floats, Ints
from repro.engine.elastic import compiled_rule
from repro.model.baseline import Baseline
from repro.model.decision import GPU_TOLERANCE
from repro.model.elastic import (
    HOLDERS,
    NOW,
    WAKE,
    Elastic,
    ElasticJobs,
    ElasticState,
    give,
    ticks_of,
)
from repro.model.policy import register
from repro.model.settings import Above, AtLeast, Between

#: Residual GPUs, or unmet demand (GPUs), below which sharing among classes ends, as in the
#: artifact.
_RESIDUAL_GPUS = 1e-3
#: Largest number of rounds of sharing among classes, as in the artifact.
_MAX_ROUNDS = 100
#: Cap above every demand (GPUs).
_UNCAPPED = 1 << 40
#: `Pcs.on_type` makes a policy for one GPU type. In the ``type_weights`` of this policy, this text
#: stands in place of the name of the type.
_THIS_TYPE = ""
#: Largest number of levels of the cap.
_MAX_LEVELS = 1_000_000


class Classes(NamedTuple):
    """Classes of a simulation and the caps of their jobs."""

    #: (classes,): weight
    weights: Floats
    #: (classes + 1,): first entry of each class in `Memory.queue`, then the number of jobs
    start: Ints
    #: (levels, curves): cap (GPUs) by level and speed-up curve; level 0 is zeta_min
    caps: Ints
    #: length of a turn for a fraction of 1 GPU (s), see `_take_turns`; 0: jobs hold fractions
    turn_s: float


class Memory(NamedTuple):
    """Memory of the policy: one queue per class."""

    #: by class: GPUs
    class_gpus: Floats
    #: jobs present in order of arrival, one class after the other; the queue of class k begins
    #: ``head[k]`` entries after ``start[k]`` of `Classes`
    queue: Ints
    #: by class: number of completed jobs
    head: Ints
    #: by class: number of jobs present
    num_present: Ints
    #: by class: number of jobs that hold GPUs, the first ones of the queue
    num_holders: Ints
    #: by class: sum of demands (GPUs)
    demand: Ints
    #: by class: level of the cap
    level: Ints
    #: entry 0: turns since the last arrival, completion or change of a demand
    turns: Ints


@njit(inline="always")
def memory_of(s: ElasticState) -> Memory:
    """Memory of a state."""
    return Memory(
        class_gpus=s.memory_floats[0],
        queue=s.memory_ints[0],
        head=s.memory_ints[1],
        num_present=s.memory_ints[2],
        num_holders=s.memory_ints[3],
        demand=s.memory_ints[4],
        level=s.memory_ints[5],
        turns=s.memory_ints[6],
    )


@njit()
def _admit(jobs: ElasticJobs, classes: Classes, s: ElasticState, job: int) -> None:
    """Add a job at the end of its class."""
    memory = memory_of(s)
    k = jobs.group[job]
    end = classes.start[k] + memory.head[k] + memory.num_present[k]
    memory.queue[end] = job
    memory.num_present[k] += 1
    memory.demand[k] += jobs.demand[job]
    memory.turns[0] = 0


@njit()
def _retire(jobs: ElasticJobs, classes: Classes, s: ElasticState, job: int) -> None:
    """Remove a job from its class; jobs ahead of it in the queue move back by one entry."""
    memory = memory_of(s)
    k = jobs.group[job]
    queue = memory.queue
    head = classes.start[k] + memory.head[k]
    position = head
    while queue[position] != job:
        position += 1
    for entry in range(position, head, -1):
        queue[entry] = queue[entry - 1]
    memory.head[k] += 1
    memory.num_present[k] -= 1
    memory.num_holders[k] -= 1
    memory.demand[k] -= jobs.demand[job]
    memory.turns[0] = 0


@njit()
def _resize(jobs: ElasticJobs, classes: Classes, s: ElasticState, job: int, demand: int) -> None:
    """Change the demand of a job that is present."""
    memory = memory_of(s)
    memory.demand[jobs.group[job]] += demand - jobs.demand[job]
    memory.turns[0] = 0


@njit(error_model="numpy")
def _share_among_classes(jobs: ElasticJobs, classes: Classes, s: ElasticState) -> None:
    """Weighted max-min fairness among classes, over the demands of their jobs."""
    memory = memory_of(s)
    class_gpus = memory.class_gpus
    demand = memory.demand
    num_classes = len(classes.weights)
    residual = float(jobs.gpus)
    total_demand = 0
    total_weight = 0.0
    for k in range(num_classes):
        class_gpus[k] = 0.0
        total_demand += demand[k]
        total_weight += classes.weights[k]
    unmet_demand = float(total_demand)
    for _ in range(_MAX_ROUNDS):
        if residual < _RESIDUAL_GPUS or unmet_demand < _RESIDUAL_GPUS:
            break
        shared_gpus = residual
        residual = float(jobs.gpus)
        unmet_demand = 0.0
        unmet_weight = 0.0
        for k in range(num_classes):
            if demand[k] - class_gpus[k] > GPU_TOLERANCE:
                class_gpus[k] = min(
                    demand[k], class_gpus[k] + shared_gpus * classes.weights[k] / total_weight
                )
            residual -= class_gpus[k]
            if demand[k] - class_gpus[k] > GPU_TOLERANCE:
                unmet_demand += demand[k] - class_gpus[k]
                unmet_weight += classes.weights[k]
        total_weight = unmet_weight


@njit()
def _capped_demand(jobs: ElasticJobs, classes: Classes, s: ElasticState, k: int, level: int) -> int:
    """Sum of capped demands of class k at a level of the cap (GPUs)."""
    memory = memory_of(s)
    head = classes.start[k] + memory.head[k]
    gpus = 0
    for job in memory.queue[head : head + memory.num_present[k]]:
        gpus += min(jobs.demand[job], classes.caps[level, jobs.curve[job]])
    return gpus


@njit()
def _share(jobs: ElasticJobs, classes: Classes, s: ElasticState) -> None:
    """Share GPUs among classes, then within each class in order of arrival, up to the cap.

    The level of the cap is the first at which the capped demands take all GPUs of the class. The
    search for it starts at the level of the last event.
    """
    memory = memory_of(s)
    _share_among_classes(jobs, classes, s)
    count = 0
    for k in range(len(classes.weights)):
        free = memory.class_gpus[k]
        num_jobs = memory.num_present[k]
        level = 0
        # With as many jobs as GPUs or more, the first cap already uses all GPUs.
        if num_jobs + GPU_TOLERANCE < free:
            level = memory.level[k]
            last = len(classes.caps) - 1
            if _capped_demand(jobs, classes, s, k, level) + GPU_TOLERANCE >= free:
                while level > 0 and (
                    _capped_demand(jobs, classes, s, k, level - 1) + GPU_TOLERANCE >= free
                ):
                    level -= 1
            else:
                # the level of the last event is too low already
                level += level < last
                while level < last and (
                    _capped_demand(jobs, classes, s, k, level) + GPU_TOLERANCE < free
                ):
                    level += 1
            memory.level[k] = level
        head = classes.start[k] + memory.head[k]
        served = 0
        while served < num_jobs and free > GPU_TOLERANCE:
            job = memory.queue[head + served]
            cap = classes.caps[level, jobs.curve[job]]
            gpus = min(free, float(min(jobs.demand[job], cap)))
            give(jobs, s, job, gpus)
            s.holders[count] = job
            count += 1
            free -= gpus
            served += 1
        for stopped in range(served, memory.num_holders[k]):
            s.gpus[memory.queue[head + stopped]] = 0.0
        memory.num_holders[k] = served
    s.tally[HOLDERS] = count
    if classes.turn_s > 0.0:
        _take_turns(jobs, classes, s)


@njit()
def _take_turns(jobs: ElasticJobs, classes: Classes, s: ElasticState) -> None:
    """Round to whole GPUs. Fractions are pooled, and jobs take turns in getting the pooled GPUs.

    A job without a fraction keeps its GPUs. A fraction up to `_RESIDUAL_GPUS` counts as 0. The jobs
    with a fraction form a ring in order of class and arrival. The jobs with a pooled GPU are a
    window of the ring. After an arrival, a completion or a change of a demand, the window starts at
    the second job. It moves on by a job when the turn of its first job ends. That turn lasts the
    fraction of the job times ``turn_s``, as in the artifact.
    """
    memory = memory_of(s)
    holders = s.holders[: s.tally[HOLDERS]]
    fractions = 0.0
    num_fractional = 0
    for job in holders:
        fraction = s.gpus[job] - np.floor(s.gpus[job] + _RESIDUAL_GPUS)
        fractions = fractions + fraction
        num_fractional = num_fractional + (fraction > _RESIDUAL_GPUS)
    pooled_gpus = int(np.round(fractions))
    memory.turns[0] += 1
    first = memory.turns[0] % max(num_fractional, 1)
    s.clock[WAKE] = np.inf
    position = 0
    count = 0
    for job in holders:
        gpus = np.floor(s.gpus[job] + _RESIDUAL_GPUS)
        fraction = s.gpus[job] - gpus
        if fraction > _RESIDUAL_GPUS:
            if position == first:
                s.clock[WAKE] = s.clock[NOW] + ticks_of(jobs, fraction * classes.turn_s)
            gpus += (position - first) % num_fractional < pooled_gpus
            position += 1
        give(jobs, s, job, gpus)
        if gpus > 0.0:
            s.holders[count] = job
            count += 1
    s.tally[HOLDERS] = count


@register("pcs")
@dataclass(frozen=True)
class Pcs(Elastic):
    """Predictability-centric scheduling: classes by size share GPUs by weight, FIFO inside.

    Classes share GPUs by weighted max-min fairness over the demands of their jobs. Within a class
    earlier jobs come first. A job gets at most the GPUs at which its efficiency S(g)/g is
    ``zeta_min`` or more. While GPUs of the class are left, that bound falls by ``delta``. Without
    thresholds there is one class.

    Parameters
    ----------
    thresholds : tuple of float
        Largest size of each class but the last (seconds on one GPU), ascending. With throughputs by
        GPU type, sizes are those on the type of the trace.
    weights : tuple of float
        Weight of each class, above 0; normalised. By default all weights are equal.
    c2 : float, optional
        Largest squared coefficient of variation of the sizes in a class (T in PCS). It cuts the
        sorted sizes of the trace into classes and replaces ``thresholds``.
    decay : float, optional
        Decay of the weights (W in PCS): the weight of class k, counted from 0, is proportional to
        exp(-k * decay), rounded to three decimals. It replaces ``weights``.
    zeta_min : float
        Efficiency below which a job gets no further GPU at first, 0 to 1.
    delta : float
        Step by which ``zeta_min`` is lowered, above 0.
    type_weights : tuple of str
        Weights of the classes on a GPU type (W_1 to W_k of section 4), such as ``v100:3:1``. Other
        types have those of ``weights`` or ``decay``. Only on a cluster with several GPU types.
    turn : float
        Jobs hold whole GPUs, and pooled fractions go from job to job. The turn of a job lasts its
        fraction times this many seconds (600 in the artifact's testbed). 0: jobs hold fractions.

    Reference: PCS, arXiv 2401.10354, sections 3 and 4.
    """

    thresholds: tuple[Annotated[float, Above(0, "seconds")], ...] = ()
    weights: tuple[Annotated[float, Above(0, finite=True)], ...] = ()
    c2: Annotated[float, AtLeast(0)] | None = None
    decay: float | None = None
    zeta_min: Annotated[float, Between(0, 1)] = 0.01
    delta: Annotated[float, AtLeast(1 / _MAX_LEVELS, finite=True)] = 0.01
    turn: Annotated[float, AtLeast(0, "seconds", finite=True)] = 0.0
    type_weights: tuple[str, ...] = ()

    time_fields = (*Elastic.time_fields, "thresholds", "turn")
    needs = frozenset({"duration"})
    has_classes = True
    baseline = Baseline(
        "fifo-elastic",
        "without thresholds all jobs are one class; find some with `repro front`, or give "
        "thresholds and weights, or c2 and decay (--set c2=1 --set decay=0.5)",
        parameters=("thresholds", "c2", "turn"),
        model=True,
    )
    rule: ClassVar[Any] = compiled_rule(_admit, _retire, _share, Memory, resize=_resize)

    def __post_init__(self) -> None:
        super().__post_init__()
        thresholds = np.atleast_1d(self.thresholds)
        weights = np.atleast_1d(self.weights)
        has_thresholds_or_weights = thresholds.size > 0 or weights.size > 0
        has_c2_or_decay = self.c2 is not None or self.decay is not None
        if has_thresholds_or_weights and has_c2_or_decay:
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
        self._weights_by_type()

    def _type_words(self) -> tuple[str, ...]:
        """``type_weights`` as a tuple; a single text counts as a tuple of one."""
        return (self.type_weights,) if isinstance(self.type_weights, str) else self.type_weights

    def _weights_by_type(self) -> dict[str, tuple[float, ...]]:
        """Weights of the classes by GPU type, as ``type_weights`` names them."""
        weights: dict[str, tuple[float, ...]] = {}
        for word in self._type_words():
            name, *numbers = word.split(":")
            try:
                values = tuple(float(number) for number in numbers)
            except ValueError:
                values = ()
            if not values or not all(0 < value < math.inf for value in values):
                raise ParamError(
                    f"policy 'pcs': type_weights has {word!r}; give a GPU type and a weight above "
                    f"0 for each class, such as v100:3:1"
                )
            weights[name] = values
        return weights

    def on_type(self, gpu_type: str, gpu_types: Sequence[str | None]) -> "Pcs":
        """Policy on the GPUs of one type, with the weights of this type."""
        weights = self._weights_by_type()
        names = [str(name) for name in gpu_types]
        refuse_unknown("policy 'pcs': type_weights names no GPU type", weights, names)
        if gpu_type not in weights:
            return replace(self, type_weights=())
        own_weights = (_THIS_TYPE, *map(repr, weights[gpu_type]))
        return replace(self, type_weights=(":".join(own_weights),))

    def bounds(self, work: Floats) -> Floats:
        """Thresholds t_k (seconds on one GPU) for jobs of these sizes (PCS, section 3.3).

        Parameters
        ----------
        work : array
            Size of every job (seconds on one GPU).

        Returns
        -------
        array
            Thresholds, one less than classes, ascending.

        Examples
        --------
        >>> Pcs(c2=0.5, decay=1.0).bounds(np.array([1.0, 2.0, 100.0, 110.0])).tolist()
        [2.0]
        """
        if self.c2 is None:
            # a single number counts as a list of one
            return np.array(np.atleast_1d(self.thresholds), dtype=float)
        return class_thresholds(work, self.c2)

    def class_weights(self, classes: int) -> Floats:
        """Weights w_k of the classes, normalised to sum 1 (PCS, section 3.3).

        Parameters
        ----------
        classes : int
            Number of classes.

        Returns
        -------
        array
            Weight of each class.

        Examples
        --------
        >>> Pcs(thresholds=(10.0,), weights=(3.0, 1.0)).class_weights(2).tolist()
        [0.75, 0.25]
        """
        by_type = self._weights_by_type()
        if _THIS_TYPE in by_type:
            own_weights = np.array(by_type[_THIS_TYPE])
            if len(own_weights) != classes:
                raise ParamError(
                    f"policy 'pcs': type_weights has {len(own_weights)} weights for {classes} "
                    f"classes; give one for each class"
                )
            return normalised_weights(own_weights)
        if by_type:
            raise ParamError(
                "policy 'pcs': type_weights needs a cluster with several GPU types and speeds by "
                "type; leave it out, or give such a cluster and --throughputs"
            )
        if self.decay is not None:
            return decaying_weights(classes, self.decay)
        weights = np.atleast_1d(self.weights) if np.size(self.weights) else np.ones(classes)
        return normalised_weights(weights)

    def groups(self, jobs: ElasticJobs, *, alone: bool) -> tuple[Ints, int]:
        """Class of every job, (jobs,), and the number of classes."""
        bounds = self.bounds(jobs.work)
        return np.searchsorted(bounds, jobs.work * jobs.size_factor), len(bounds) + 1

    def settings(self, jobs: ElasticJobs) -> Classes:
        """Classes of the simulation."""
        sizes = np.bincount(jobs.group, minlength=jobs.num_groups)
        return Classes(
            weights=self.class_weights(jobs.num_groups),
            start=np.append(0, np.cumsum(sizes)),
            caps=caps(jobs.curves, self.zeta_min, self.delta),
            turn_s=self.turn,
        )


def class_thresholds(work: Floats, c2: float) -> Floats:
    """Thresholds that cut the sorted sizes into classes of little variation (PCS, section 3.3).

    A class ends before the job with which its squared coefficient of variation would exceed ``c2``.
    The variation of neither class includes that job. Thresholds are rounded down to whole seconds.

    Parameters
    ----------
    work : array
        Size of every job (seconds on one GPU).
    c2 : float
        Largest squared coefficient of variation in a class (T in PCS).

    Returns
    -------
    array
        Thresholds (seconds on one GPU), one less than classes, ascending.

    Examples
    --------
    >>> class_thresholds(np.array([1.0, 2.0, 100.0, 110.0]), 0.5).tolist()
    [2.0]
    """
    thresholds: list[int] = []
    sizes = np.sort(work).tolist()
    count = 0
    total = 0.0
    squares = 0.0
    for index, size in enumerate(sizes):
        count += 1
        total += size
        squares += size * size
        mean = total / count
        variance = squares / count - mean * mean
        if variance > c2 * mean * mean:
            thresholds.append(int(sizes[index - 1]))
            count = 0
            total = 0.0
            squares = 0.0
    return np.array(thresholds, dtype=float)


def normalised_weights(weights: Floats) -> Floats:
    """Weights divided by their sum, (classes,).

    Parameters
    ----------
    weights : array
        Weight of each class, above 0.

    Returns
    -------
    array
        Weights with sum 1.

    Raises
    ------
    ParamError
        If a weight rounds to 0, so that its class would get no GPUs.

    Examples
    --------
    >>> normalised_weights(np.array([3.0, 1.0])).tolist()
    [0.75, 0.25]
    """
    with np.errstate(over="ignore"):
        normalised = np.asarray(weights / weights.sum())
    if not (normalised > 0).all():
        raise ParamError(
            f"policy 'pcs': a weight of {weights.tolist()} rounds to 0 next to the sum of all; "
            f"give weights below 1e300 and nearer to each other"
        )
    return normalised


def decaying_weights(classes: int, decay: float) -> Floats:
    """Weights proportional to exp(-k decay), k = 0, 1, ..., with sum 1 (PCS, section 3.3).

    Parameters
    ----------
    classes : int
        Number of classes.
    decay : float
        Decay (W in PCS); below 0 the weights grow.

    Returns
    -------
    array
        Weight of each class, rounded to three decimals and then divided by the sum.

    Raises
    ------
    ParamError
        If a weight rounds to 0.

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
    """Caps c(z) of all levels z = zeta_min - j delta, by speed-up curve (PCS, section 3.2).

    The cap is one GPU less than the first count g at which S(g)/g is below z. Levels that change no
    cap are left out.

    Parameters
    ----------
    curves : array
        Speed-ups S(0), S(1), ... in rows, (curves, GPUs + 1). Row 0 stands for linear speed-up.
    zeta_min : float
        Efficiency of the first level.
    delta : float
        Step from level to level, above 0.

    Returns
    -------
    array of int
        Caps (GPUs), (levels, curves). A cap of 2**40 is above every demand.

    Examples
    --------
    >>> caps(np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 1.2]]), 0.7, 0.2)[:, 1].tolist()
    [1, 1099511627776]
    """
    counts = np.arange(1, curves.shape[1])
    # least efficiency on 1, ..., g GPUs, which falls with g
    lowest = np.minimum.accumulate(curves[1:, 1:] / counts, axis=1)
    steps = math.ceil(zeta_min / delta) + 2
    levels = np.subtract.accumulate(np.append(zeta_min, np.full(steps, delta)))
    level_caps = np.full((len(levels), len(curves)), _UNCAPPED)
    for curve, efficiency in enumerate(lowest, start=1):
        # largest count up to which the efficiency never falls below the level
        cap = np.searchsorted(-efficiency, -levels, side="right")
        level_caps[:, curve] = np.where(cap < len(efficiency), cap, _UNCAPPED)
    has_change = np.append(True, (np.diff(level_caps, axis=0) != 0).any(axis=1))
    return np.asarray(level_caps[has_change])
