"""Muri's groups of interleaved jobs: period T, efficiency gamma, rates of the members."""

import itertools
import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes

#: Time on each resource per iteration, in the order in which an iteration passes them.
Stages = tuple[float, ...]
#: Data (storage and CPU), GPU and network stage.
ThreeStages = tuple[float, float, float]
#: Order in which the members of a group run: the order of the shortest or the longest period.
StageOrder = Literal["best", "worst"]

#: Resources of Muri's cluster: storage, CPU, GPU, network.
NUM_RESOURCES = 4
#: Trace columns in the order in which an iteration passes through the resources.
STAGE_COLUMNS = ("stage_storage", "stage_cpu", "stage_gpu", "stage_network")
#: Columns of the measured ``stages.csv`` in the same order (s per iteration).
MEASURED_STAGES = ("storage_s", "cpu_s", "gpu_s", "network_s")
#: Trace columns where ``stage_storage`` holds storage and CPU time together.
MERGED_COLUMNS = ("stage_storage", "stage_gpu", "stage_network")

#: Relative change of the period below which the slots are in steady state.
_STEADY = 1e-3
#: Stages of an empty slot: a maximum ignores them.
_ABSENT = (-math.inf, -math.inf, -math.inf)


def interleaving_time(
    members: Sequence[Stages], ordering: StageOrder = "best", *, merged: bool = False
) -> float:
    """Period T (s) in which every member of a group completes one iteration (Eq 1 and 3).

    With k resources a group has at most k members. Members have different offsets o and a barrier
    after every step. Hence no two members use one resource at once: T = sum over steps j of max
    over jobs i of t_i[(j + o_i) mod k].

    ``merged`` jobs have three stages (data, GPU, network), as in Muri's simulator. A slot is one
    step of the rotation, and a period has four slots. The data stage (storage and CPU) may last two
    slots; the GPU and the network stage last one slot each. A group has at most four jobs.
    """
    # Sorted, so that the orders of one group share a cache entry.
    shortest, longest = _extreme_periods(tuple(sorted(map(tuple, members))), merged)
    if ordering not in ("best", "worst"):
        raise ParamError(f"ordering is {ordering!r}; give 'best' or 'worst'")
    return shortest if ordering == "best" else longest


@lru_cache(maxsize=200_000)
def busy_per_period(group: tuple[ThreeStages, ...]) -> float:
    """Time per period in which the GPU or the network of a group is busy (s).

    In every slot one member may be in its GPU stage and another in its network stage. Both start
    with the slot, so the slot is busy for the longer one. The order is that of the shortest period.
    """
    if len(group) == 1:
        return sum(group[0][1:])
    shortest = math.inf
    busy_s = 0.0
    padding = (_ABSENT,) * (NUM_RESOURCES - len(group))
    for members in dict.fromkeys(itertools.permutations(group)):
        order = members + padding
        period = _slot_period(order)
        if period < shortest:
            shortest = period
            busy_s = sum(max(0.0, slot_s) for _, slot_s in _slots(order))
    if len(group) == 2 and _period_two_apart(group) < shortest:
        # Two slots apart, the GPU and network stages of the two members are in different slots.
        return sum(sum(times[1:]) for times in group)
    return busy_s


def efficiency(members: Sequence[Stages]) -> float:
    """Interleaving efficiency gamma: mean busy share of the k resources (Eq 2 and 4)."""
    period = interleaving_time(members)
    # Summed in sorted order, so that gamma does not depend on the order of the members.
    return sum(map(sum, sorted(members))) / (len(members[0]) * period)


def stage_columns(present: Container[str], source: str = "the trace") -> tuple[str, ...]:
    """Stage columns of a trace: four, or three if storage and CPU share a column."""
    columns = STAGE_COLUMNS if "stage_cpu" in present else MERGED_COLUMNS
    if missing := [name for name in columns if name not in present]:
        raise TraceError(
            f"{source}: no column {missing[0]!r}; grouped jobs need their stage times in seconds "
            f"per iteration: {', '.join(STAGE_COLUMNS)} (stage_cpu may be part of stage_storage)"
        )
    return columns


class _TableStages(NamedTuple):
    """Stages of the jobs of a table, and the periods of their groups so far."""

    merged: bool  #: whether storage includes CPU
    stages: list[Stages]  #: by job
    numbers: list[int]  #: by job, equal for jobs of equal stages
    solo: list[float]  #: solo iteration time (s), by job
    periods: dict[tuple[int, ...], float]  #: periods (s), by the numbers of the members


@dataclass(frozen=True)
class Interleaving:
    """Performance model of grouped jobs: every member completes one iteration per period T.

    In its methods, ``members`` and each of ``groups`` are the stage times of the members (s), a
    tuple per job. With ``merged`` the storage stage includes the CPU. ``table`` has the jobs of the
    trace, ``run`` is the gang, and ``nodes`` are its nodes, which play no role.

    Parameters
    ----------
    columns : tuple of str, optional
        Trace columns of the stage times (s per iteration), in order. A group has at most as many
        jobs as there are columns, or four with `MERGED_COLUMNS`. None: storage, CPU, GPU, network,
        where storage may include CPU.
    ordering : {"best", "worst"}
        Order in which the members run: the one of the shortest or the longest period.
    factors : tuple of float
        Measured period divided by T for groups of 2, 3, … jobs; 1 beyond the end.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 3; factors of its public simulator.

    Examples
    --------
    >>> Interleaving(factors=(1.5,)).period([(2, 1), (1, 2)])
    4.5
    """

    columns: tuple[str, ...] | None = None
    ordering: StageOrder = "best"
    factors: tuple[float, ...] = ()

    #: rates are the same on any nodes
    reads_nodes: ClassVar[bool] = False

    def period(self, members: Sequence[Stages], merged: bool = False) -> float:
        """Period (s) of a group, with its measured factor; ``merged``: storage includes CPU."""
        index = len(members) - 2
        factor = self.factors[index] if 0 <= index < len(self.factors) else 1.0
        return interleaving_time(members, self.ordering, merged=merged) * factor

    def pair_efficiencies(self, trace: pd.DataFrame) -> Floats:
        """Gamma of every pair of jobs of ``trace``, shape (jobs, jobs), with a diagonal of 0."""
        columns = self.columns or stage_columns(trace.columns)
        jobs = [tuple(row) for row in trace[list(columns)].to_numpy(float).tolist()]
        gamma = np.zeros((len(jobs), len(jobs)))
        for i, j in itertools.combinations(range(len(jobs)), 2):
            gamma[i, j] = gamma[j, i] = efficiency((jobs[i], jobs[j]))
        return gamma

    def efficiencies(self, groups: Sequence[Sequence[Stages]], merged: bool) -> list[float]:
        """Gamma (Eq 4) of each group over Muri's four resources, with its period in this model.

        Pass groups of the same members with these in the same order. Another order may change the
        last bit.
        """
        return [
            sum(map(sum, group)) / (NUM_RESOURCES * self.period(group, merged)) for group in groups
        ]

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Rate of every member: solo iteration time over period, times GPUs held over demand.

        A job alone has only the second factor.
        """
        gpu_ratios = [run.gpus / table.gpus[job] for job in run.jobs]
        if len(run.jobs) == 1:
            return gpu_ratios
        solo, period = self._solo_and_period(table, run)
        return [ratio * solo[job] / period for ratio, job in zip(gpu_ratios, run.jobs, strict=True)]

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Seconds per unit of work of every member.

        If the unit is an iteration, every member of a group takes the period of the group for it,
        times demand over GPUs held.
        """
        if len(run.jobs) == 1 or not table.counts_iterations:
            rates = self.rates(table, run, nodes)
            return [table.solo[job] / rate for job, rate in zip(run.jobs, rates, strict=True)]
        _, period = self._solo_and_period(table, run)
        return [period * (table.gpus[job] / run.gpus) for job in run.jobs]

    def _solo_and_period(self, table: JobTable, run: Run) -> tuple[list[float], float]:
        """Solo iteration times (s) of all jobs, and period (s) of the group."""
        jobs: _TableStages = table.derived(self._cache_name, partial(self._stages_of, table))
        key = tuple(jobs.numbers[job] for job in run.jobs)
        period = jobs.periods.get(key)
        if period is None:
            members = [jobs.stages[job] for job in run.jobs]
            period = jobs.periods[key] = self.period(members, jobs.merged)
        return jobs.solo, period

    @cached_property
    def _cache_name(self) -> str:
        return f"stages {self}"

    def _stages_of(self, table: JobTable) -> _TableStages:
        """Stages and solo times of the jobs of a table."""
        columns = self.columns or stage_columns(list(filter(table.has, STAGE_COLUMNS)))
        if missing := [name for name in columns if name not in table.frame]:
            raise TraceError(
                f"the trace has no column {missing[0]!r}; grouped jobs need the stage times "
                f"{', '.join(columns)} in seconds per iteration"
            )
        stages = list(zip(*map(table.column, columns), strict=True))
        # Stages may overlap within an iteration; the trace then has the solo iteration time.
        trace_times = map(table.iteration_s, range(table.count))
        solo = [
            sum(times) if math.isnan(seconds) else seconds
            for seconds, times in zip(trace_times, stages, strict=True)
        ]
        number_of: dict[Stages, int] = {}
        numbers = [number_of.setdefault(times, len(number_of)) for times in stages]
        return _TableStages(columns == MERGED_COLUMNS, stages, numbers, solo, {})


@lru_cache(maxsize=200_000)
def _extreme_periods(group: tuple[Stages, ...], merged: bool) -> tuple[float, float]:
    """Shortest and longest period (s) over all orders of the members."""
    num_stages = len(group[0]) if group else 0
    max_jobs = num_stages
    if merged:
        num_stages = 3
        max_jobs = NUM_RESOURCES
    if not 1 <= len(group) <= max_jobs or any(len(times) != num_stages for times in group):
        accepted = "three stages (data, GPU, network)" if merged else "times of the same resources"
        raise ParamError(
            f"a group of {len(group)} jobs with stages {list(group)}; give 1 to {max_jobs or 'k'} "
            f"jobs, each with {accepted}"
        )
    if not all(0 <= time < math.inf for times in group for time in times):
        raise ParamError(f"stage times {list(group)}: each is finite and 0 or more")
    if any(sum(times) == 0 for times in group):
        raise ParamError(f"stage times {list(group)}: a job has no stage of any length")
    group = tuple(tuple(map(float, times)) for times in group)
    periods = _slot_periods(group) if merged else _barrier_periods(group)
    return min(periods), max(periods)


def _barrier_periods(group: tuple[Stages, ...]) -> list[float]:
    """T (s) of every assignment of members to offsets, Eq 3."""
    steps = range(len(group[0]))
    periods = []
    # A rotation of all offsets leaves T unchanged, so the first member stays at offset 0.
    for others in itertools.permutations(steps[1:], len(group) - 1):
        offsets = (0, *others)
        times_of_steps = (
            [times[(step + o) % len(steps)] for times, o in zip(group, offsets, strict=True)]
            for step in steps
        )
        periods.append(sum(map(max, times_of_steps)))
    return periods


def _slot_periods(group: tuple[Stages, ...]) -> list[float]:
    """T (s) of every order of three-stage jobs."""
    if len(group) == 1:
        return [sum(group[0])]
    padding = (_ABSENT,) * (NUM_RESOURCES - len(group))
    # Equal members have equal orders, which count once.
    orders = dict.fromkeys(itertools.permutations(group))
    periods = [_slot_period(order + padding) for order in orders]
    if len(group) == 2:
        # Two jobs can also be two slots apart.
        periods.append(_period_two_apart(group))
    return periods


def _period_two_apart(group: tuple[Stages, ...]) -> float:
    """Period T (s) of two three-stage jobs that are two slots apart."""
    (d0, g0, n0), (d1, g1, n1) = group
    return max(d0, g1 + n1) + max(d1, g0 + n0)


def _slots(order: tuple[Stages, ...]) -> list[tuple[float, float]]:
    """Two times of each slot (s): its data stage, and the longer of its GPU and network stage.

    The data stage of a slot is the one that must end before the slot ends.
    """
    (d0, g0, n0), (d1, g1, n1), (d2, g2, n2), (d3, g3, n3) = order
    # GPU and network stages start with their slot, the data stage one slot earlier.
    return [(d3, max(n1, g2)), (d0, max(n2, g3)), (d1, max(n3, g0)), (d2, max(n0, g1))]


def _slot_period(order: tuple[Stages, ...]) -> float:
    """Period T (s) of one order: time from the end of a slot to its end in the next period.

    It is computed until the steady state, for at most two periods.

    f[s] is the end of slot s, and d, g and n are the data, GPU and network time of a member:
    f[s+1] = max(0, f[s] + n_a, f[s] + g_b, f[s-1] + d_c) with a, b, c = s+1, s+2, s+3 mod 4.
    """
    slots = _slots(order)
    ends = [0.0, max(0.0, slots[0][1])]
    for data_s, slot_s in (slots * 2)[1:]:
        ends.append(max(0.0, ends[-1] + slot_s, ends[-2] + data_s))
        if len(ends) > NUM_RESOURCES + 1:
            period = ends[-1] - ends[-5]
            previous = ends[-2] - ends[-6]
            if abs(period - previous) <= _STEADY * max(abs(period), abs(previous)):
                break
    return ends[-1] - ends[-5]
