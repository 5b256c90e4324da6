"""What Muri-S and Muri-L share: candidates, groups, and who holds what until the next decision."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from repro.errors import ParamError
from repro.perf.interleaving import STAGE_COLUMNS, Interleaving, stage_columns
from repro.perf.stages import Ordering, Stages
from repro.placement.first_fit import FirstFit
from repro.policies._groups import RESOURCES, Group, Grouping
from repro.policies._lanes import Entry, Lanes
from repro.policies.base import Policy
from repro.sim.decision import Run, RunSet
from repro.sim.view import View

#: Measured period over T of groups of 2, 3 and 4 jobs; grouping without matching was given another
#: value for 4 (Muri's simulator: factors on the CSV's times, over the 1.015 of a job alone).
MEASURED = (1.33 / 1.015, 1.5 / 1.015, 1.37 / 1.015)
MEASURED_BLOCKS = (1.33 / 1.015, 1.5 / 1.015, 1.3 / 1.015)


@dataclass(frozen=True)
class Muri(Policy):
    """Base of Muri-S and Muri-L: groups of jobs that take turns on the cluster's resources.

    Parameters
    ----------
    max_group : int
        Most jobs in a group, 2 to 4.
    ordering : {"best", "worst"}
        Order of the members' stages: the shortest or the longest period.
    blossom : bool
        Match jobs by efficiency; False: group neighbours in the order of priority.
    autopack : bool
        A group slower than its members one after the other is split, and all are admitted anew.
    noise : float
        The scheduler sees every stage time times a factor from [1 - noise, 1 + noise], drawn once
        per job and stage; 0 to 1.
    noise_seed : int
        Seed of those factors.
    interval : float, optional
        Seconds between decisions (360 on the paper's testbed); None: at every event.
    collapse : bool
        Match kinds of jobs where stage times repeat; False: always job by job (same weight, slow).
    measured_factors : bool, optional
        Periods of groups carry the simulator's measured factors. None: as the rules say.
    halving_rounds : bool, optional
        As many rounds of matching as halvings of ``max_group``; False: ``max_group`` rounds.
    best_first : bool, optional
        While GPUs lack, the most efficient pairs merge first; False: in the order of the list.
    wide_first : bool, optional
        Equal priorities go to the wider job, to new ones last; False: to the earlier job.
    tie_window_s : float, optional
        A completion this near an arrival is one event with it.
    """

    max_group: int = 4
    ordering: Ordering = "best"
    blossom: bool = True
    autopack: bool = False
    noise: float = 0.0
    noise_seed: int = 0
    interval: float | None = None  # type: ignore[misc]
    collapse: bool = field(default=True, repr=False)
    measured_factors: bool | None = None
    halving_rounds: bool | None = None
    best_first: bool | None = None
    wide_first: bool | None = None
    tie_window_s: float | None = None

    needs: ClassVar[frozenset[str]] = frozenset(
        {"stage_storage", "stage_cpu", "stage_gpu", "stage_network", "iteration_time"}
    )
    time_fields: ClassVar[tuple[str, ...]] = ("interval", "tie_window_s")
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "measured_factors": False,
            "halving_rounds": True,
            "best_first": True,
            "wide_first": False,
            "tie_window_s": 0.0,
        },
        "muri": {
            "measured_factors": True,
            "halving_rounds": False,
            "best_first": False,
            "wide_first": True,
            "tie_window_s": 1e-4,
        },
    }

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        if self.max_group not in range(2, RESOURCES + 1):
            raise ParamError(
                f"{self.name}: max_group is {self.max_group}; give 2 to {RESOURCES}, as many jobs "
                f"as there are resources to take turns on"
            )
        if self.ordering not in ("best", "worst"):
            raise ParamError(f"{self.name}: ordering is {self.ordering!r}; give best or worst")
        if not 0 <= self.noise <= 1:
            raise ParamError(f"{self.name}: noise is {self.noise}; give a number from 0 to 1")
        if self.interval is not None and not self.interval > 0:
            raise ParamError(
                f"{self.name}: interval is {self.interval}; give a positive number of seconds"
            )

    @property
    def tie_s(self) -> float:  # type: ignore[override]
        """Seconds within which a completion and the next arrival count as one event."""
        return self.tie_window_s or 0.0

    def performance(self) -> Interleaving:
        """Return the interleaving of groups, with or without the measured factors."""
        factors: tuple[float, ...] = ()
        if self.measured_factors:
            factors = MEASURED if self.blossom else MEASURED_BLOCKS
        return Interleaving(None, self.ordering, factors)

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Return the decision function of one run."""
        return _Session(self, view)

    @abstractmethod
    def first_value(self, view: View, job: int) -> float:
        """Return the priority of a job that never ran, smaller first."""

    @abstractmethod
    def values(self, view: View, width: int, jobs: list[int], seconds: list[float]) -> list[float]:
        """Return the priorities of jobs of one width, smaller first.

        Parameters
        ----------
        view : View
            The run.
        width : int
            GPUs each of them asks for.
        jobs : list of int
            Row numbers.
        seconds : list of float
            How long each has held GPUs (s).
        """


class _Session:
    """One run of a Muri policy."""

    def __init__(self, policy: Muri, view: View) -> None:
        self.policy = policy
        present = [name for name in STAGE_COLUMNS if view.has_column(name)]
        columns = stage_columns(present, view.source)
        stages = _believed(policy, np.column_stack([view.column(name) for name in columns]))
        rounds = policy.max_group
        if policy.halving_rounds:
            rounds = math.ceil(math.log2(policy.max_group))
        self.grouping = Grouping(
            stages,
            merged=len(columns) < RESOURCES,
            perf=policy.performance(),
            max_group=policy.max_group,
            rounds=rounds,
            best_first=bool(policy.best_first),
            collapse=policy.collapse,
        )
        self.solo = [view.iteration_s(job) for job in range(len(stages))]
        self.nodes = FirstFit(view.cluster)
        self.lanes = Lanes(view.cluster, policy.max_group, bool(policy.wide_first))
        self.seen, self.last = 0, 0.0
        #: seconds on GPUs of every job that ever held some
        self.seconds: dict[int, float] = {}
        #: jobs that hold GPUs, by width
        self.held: dict[int, set[int]] = {}
        self.runs: dict[Group, Run] = {}
        sizes = {node.gpus for node in view.cluster.nodes}
        #: whether gangs of powers of two, widest first, fit wherever enough GPUs are idle
        self.even = len(sizes) == 1 and all(map(_is_power_of_two, sizes))

    def __call__(self, view: View) -> RunSet:
        """Rank, pick candidates, group them, place the groups."""
        running = self._running(view)
        fresh = range(self.seen, view.arrived)
        for job in fresh:
            self.lanes.add(job, view.gpus(job), self.policy.first_value(view, job))
        self.seen, self.last = view.arrived, view.now
        entries = self.lanes.candidates(running, fresh)
        buckets = {width: [entry[2] for entry in line] for width, line in entries.items()}
        arrange = self.grouping.match if self.policy.blossom else self.grouping.blocks
        groups = arrange(buckets, view.cluster.num_gpus)
        if self.policy.autopack:
            groups = self._repacked(view, groups, entries)
        runs = self._placed(view, groups, buckets, running)
        order = [
            job
            for width in sorted(buckets, reverse=True)
            for job in buckets[width]
            if job in self.held[width]
        ]
        return RunSet(runs, "exact", order=order)

    def _running(self, view: View) -> dict[int, list[Entry]]:
        """Return the entries of the jobs that hold GPUs, by width."""
        now, last, seconds = view.now, self.last, self.seconds
        running: dict[int, list[Entry]] = {}
        for width, held in self.held.items():
            jobs = [job for job in held if view.is_unfinished(job)]
            for job in jobs:
                # from left to right, as the simulator adds: equal sums stay equal
                seconds[job] = seconds[job] + now - last
            if jobs:
                values = self.policy.values(view, width, jobs, [seconds[job] for job in jobs])
                running[width] = self.lanes.ranked(jobs, values)
        return running

    def _repacked(
        self, view: View, groups: dict[int, list[Group]], entries: Mapping[int, list[Entry]]
    ) -> dict[int, list[Group]]:
        """Split the groups that do not pay, then admit all by the best priority of a member."""
        values = {job: value for line in entries.values() for value, _, job in line}
        kept: list[tuple[float, int, Group]] = []
        for width, found in groups.items():
            for group in found:
                alone = len(group) == 1 or not self._pays(view, group)
                for part in [(job,) for job in group] if alone else [group]:
                    kept.append((min(values[job] for job in part), width, part))
        kept.sort(key=lambda entry: entry[0])
        admitted: dict[int, list[Group]] = {}
        self.nodes.clear()
        for _, width, group in kept:
            if self.nodes.take(width):
                admitted.setdefault(width, []).append(group)
        return admitted

    def _pays(self, view: View, group: Group) -> bool:
        return self.grouping.best_period(group) <= sum(self.solo[job] for job in group)

    def _placed(
        self,
        view: View,
        groups: Mapping[int, list[Group]],
        buckets: Mapping[int, list[int]],
        running: Mapping[int, list[Entry]],
    ) -> list[Run]:
        """Place the widest groups first; keep account of who holds GPUs and who waits."""
        known, self.runs = self.runs, {}
        required = sum(width * len(found) for width, found in groups.items())
        every = self.even and required <= self.nodes.free and all(map(_is_power_of_two, groups))
        before, self.held = self.held, {width: set() for width in running.keys() | buckets.keys()}
        self.nodes.clear()
        for width in sorted(groups, reverse=True):
            found = groups[width] if every else self._fitting(groups[width], width, buckets[width])
            held = self.held[width]
            for group in found:
                members = tuple(sorted(group))
                self.runs[members] = known.get(members) or Run(members, width)
                held.update(members)
        for width, held in self.held.items():
            former = before.get(width, set())
            for job in held - former:
                self.lanes.remove(job, width)
                self.seconds.setdefault(job, 0.0)
            for value, _, job in running.get(width, ()):
                if job not in held:
                    self.lanes.add(job, width, value)
        return list(self.runs.values())

    def _fitting(self, groups: list[Group], width: int, bucket: list[int]) -> list[Group]:
        """Return the groups for which nodes are left, best member first."""
        rank = {job: place for place, job in enumerate(bucket)}
        groups = sorted(groups, key=lambda group: min(rank[job] for job in group))
        fitting: list[Group] = []
        for group in groups:
            if not self.nodes.take(width):
                break
            fitting.append(group)
        return fitting


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _believed(policy: Muri, stages: np.ndarray[Any, np.dtype[np.float64]]) -> list[Stages]:
    """Return the stage times of every job as the scheduler sees them."""
    if policy.noise:
        rng = np.random.default_rng([policy.noise_seed, len(stages)])
        stages = stages * rng.uniform(1 - policy.noise, 1 + policy.noise, stages.shape)
    return [tuple(row) for row in stages.tolist()]
