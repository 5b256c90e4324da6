"""Muri-S and Muri-L: groups of jobs that take turns on the resources (SIGCOMM 2022)."""

import itertools
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np

from repro.base.typing import Floats, Ints
from repro.model.decision import Run, RunSet
from repro.model.grouped import Group, Grouped
from repro.model.policy import register
from repro.model.rules import Completions
from repro.model.settings import Above, AtLeast, Between
from repro.model.view import View
from repro.perf.stages import RESOURCES, STAGE_COLUMNS, Interleaving, StageOrder, stage_columns
from repro.placement.first_fit import FirstFit
from repro.policies.muri._grouping import (
    Candidates,
    Entry,
    GroupsByKind,
    GroupsByList,
    Profiles,
)

#: Measured period over T of groups of 2, 3 and 4 jobs; grouping without matching was given another
#: value for 4 (Muri's simulator: factors on the CSV's times, over the 1.015 of a job alone).
MEASURED = (1.33 / 1.015, 1.5 / 1.015, 1.37 / 1.015)
MEASURED_BLOCKS = (1.33 / 1.015, 1.5 / 1.015, 1.3 / 1.015)

#: Groups as they were formed, and their runs by members, ascending.
Placed = tuple[list[Group], dict[Group, Run]]
NO_RUNS: Placed = ([], {})
_JOB = operator.itemgetter(2)


@dataclass(frozen=True)
class Muri(Grouped):
    """Base of Muri-S and Muri-L: groups of jobs that take turns on the resources (Algorithm 1).

    None: as the rules say.

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
    noise, noise_seed : float, int
        The scheduler sees every stage time times a factor from [1 - noise, 1 + noise], drawn once
        per job and stage; 0 to 1.
    interval : float, optional
        Seconds between decisions (360 on the paper's testbed); None: at every event.
    collapse : bool
        Match kinds of jobs where stage times repeat; False: always job by job (same weight, slow).
    measured_factors : bool, optional
        Periods of groups carry the simulator's measured factors.
    halving_rounds : bool, optional
        As many rounds of matching as halvings of ``max_group``; False: ``max_group`` rounds.
    best_first : bool, optional
        While GPUs lack, the pairs that waste least merge first; False: those first in the list.
        Only with ``blossom``.
    wide_first : bool, optional
        Equal priorities go to the wider job, to new ones last; False: to the earlier job.
    tie_window_s : float, optional
        A completion this near an arrival is one event with it.
    """

    max_group: Annotated[int, Between(2, RESOURCES)] = 4
    ordering: StageOrder = "best"
    blossom: bool = True
    autopack: bool = False
    noise: Annotated[float, Between(0, 1)] = 0.0
    noise_seed: Annotated[int, AtLeast(0)] = 0
    interval: Annotated[float, Above(0, "seconds")] | None = None
    collapse: bool = field(default=True, repr=False)
    measured_factors: bool | None = None
    halving_rounds: bool | None = None
    best_first: bool | None = None
    wide_first: bool | None = None
    tie_window_s: Annotated[float, AtLeast(0, "seconds")] | None = None

    #: priorities depend on the seconds on GPUs
    attained: ClassVar = False
    needs = frozenset(
        {"stage_storage", "stage_cpu", "stage_gpu", "stage_network", "iteration_time"}
    )
    time_fields = ("interval", "tie_window_s")
    rule_values: ClassVar = {
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

    def completions(self) -> Completions:
        """Completions near an arrival are one event with it."""
        return Completions(tie_s=self.tie_window_s or 0.0)

    def performance(self) -> Interleaving:
        """Return the interleaving of groups, with or without the measured factors."""
        factors: tuple[float, ...] = ()
        if self.measured_factors:
            factors = MEASURED if self.blossom else MEASURED_BLOCKS
        return Interleaving(None, self.ordering, factors)

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Return the state of one run."""
        return _BestFirst(self, view) if self.best_first and self.blossom else _InList(self, view)

    @abstractmethod
    def first_value(self, view: View, job: int) -> float:
        """Return the priority of a job that never ran, smaller first."""

    @abstractmethod
    def values(self, view: View, jobs: Ints, widths: Ints, seconds: Floats | None) -> Floats:
        """Return the priorities of jobs, smaller first; ``seconds`` on GPUs, None: the view's."""


@register("muri-l")
@dataclass(frozen=True)
class MuriL(Muri):
    """Multi-resource interleaving by 2D-LAS: time on GPUs times gang size, durations unknown."""

    families = ("las",)

    attained: ClassVar = True

    def first_value(self, view: View, job: int) -> float:
        """Return 0: nothing attained."""
        return 0.0

    def values(self, view: View, jobs: Ints, widths: Ints, seconds: Floats | None) -> Floats:
        """Return the attained service of each job (GPU-seconds)."""
        return (view.run_seconds_of(jobs) if seconds is None else seconds) * widths


@register("muri-s")
@dataclass(frozen=True)
class MuriS(Muri):
    """Multi-resource interleaving by SRSF: remaining time times gang size, durations known."""

    needs = Muri.needs | {"duration"}

    def first_value(self, view: View, job: int) -> float:
        """Return the service the trace says the job takes (GPU-seconds)."""
        return view.duration(job) * view.gpus(job)

    def values(self, view: View, jobs: Ints, widths: Ints, seconds: Floats | None) -> Floats:
        """Return the remaining service of each job (GPU-seconds)."""
        return view.remaining_of(jobs) * widths


class _Run:
    """What every run of a Muri policy has: profiles, waiting jobs, nodes to place groups on."""

    def __init__(self, policy: Muri, view: View) -> None:
        self.policy = policy
        columns = stage_columns(list(filter(view.has_column, STAGE_COLUMNS)), view.source)
        stages = np.column_stack([view.column(name) for name in columns])
        if policy.noise:
            rng = np.random.default_rng([policy.noise_seed, len(stages)])
            stages = stages * rng.uniform(1 - policy.noise, 1 + policy.noise, stages.shape)
        most = policy.max_group
        jobs = range(len(stages))
        self.profiles = Profiles(
            [tuple(row) for row in stages.tolist()],
            merged=len(columns) < RESOURCES,
            perf=policy.performance(),
            max_group=most,
            collapse=policy.collapse,
        )
        self.rounds = math.ceil(math.log2(most)) if policy.halving_rounds else most
        self.solo = [view.iteration_s(job) for job in jobs]
        self.widths = [view.gpus(job) for job in jobs]
        #: priority of each job until it first runs
        self.first = [policy.first_value(view, job) for job in jobs]
        self.nodes = FirstFit(view.cluster, set(self.widths))
        self.candidates = Candidates(self.widths, view.cluster, most, bool(policy.wide_first))

    def ranked(
        self, view: View, jobs: Ints, seconds: Floats | None = None
    ) -> dict[int, list[Entry]]:
        """Return the entries of jobs that hold GPUs, by width."""
        values = self.policy.values(view, jobs, self.candidates.widths[jobs], seconds)
        return self.candidates.ranked(jobs, values)

    def fitting(self, groups: Sequence[Group], width: int, line: Sequence[int]) -> list[Group]:
        """Return the groups of a width that still find nodes; ``line`` has members best first."""
        rank = {job: place for place, job in enumerate(line)}
        ordered = sorted(groups, key=lambda group: min(rank[job] for job in group))
        wishes = itertools.repeat(width, len(ordered))
        return ordered[: len(list(itertools.takewhile(self.nodes.take, wishes)))]

    def repacked(
        self, groups: Mapping[int, Sequence[Group]], entries: Mapping[int, list[Entry]]
    ) -> dict[int, list[Group]]:
        """Split the groups slower than their members in turn; admit all by their best member."""
        values = {job: value for line in entries.values() for value, _, job in line}
        kept: list[tuple[float, int, Group]] = []
        for width, found in groups.items():
            for group in found:
                in_turn = sum(self.solo[job] for job in group)
                whole = len(group) > 1 and self.profiles.best_period(group) <= in_turn
                for part in [group] if whole else [(job,) for job in group]:
                    kept.append((min(values[job] for job in part), width, part))
        admitted: dict[int, list[Group]] = {}
        self.nodes.clear()
        for _, width, group in sorted(kept, key=lambda entry: entry[0]):
            if self.nodes.take(width):
                admitted.setdefault(width, []).append(group)
        return admitted


class _BestFirst(_Run):
    """Muri as its paper describes it: the pairs that waste least merge first, by kind.

    While all jobs together fit the cluster, a decision costs what the jobs that came and went
    cost; only when jobs have to wait are all of them ranked.
    """

    def __init__(self, policy: Muri, view: View) -> None:
        super().__init__(policy, view)
        self.kinds = GroupsByKind(self.profiles, self.widths, self.rounds, view.cluster.num_gpus)

    def __call__(self, view: View) -> RunSet:
        """Choose candidates, arrange them in groups, return what changes."""
        self.kinds.remove(view.finished)
        if self.policy.autopack:
            # whoever was split may be grouped again
            self._select(view)
            self.kinds.arrange()
            groups = {width: self.kinds.of_width(width) for width in self.kinds.groups}
            packed = self.repacked(groups, self.ranked(view, np.array(self.kinds.jobs(), np.int64)))
            return RunSet(
                [Run(g, width) for width, found in packed.items() for g in found], "exact"
            )
        left: list[int] = []
        if self.candidates.waiting or not self._room(view.fresh):
            left = self._select(view)
        else:
            self.kinds.add(view.fresh)
        found = self.kinds.arrange()
        wide = self.kinds.groups
        required = sum(width * sum(map(len, same.values())) for width, same in wide.items())
        if not self.nodes.surely_fits(wide, required):
            left += self._without_nodes(view)
            found = [(width, group) for width, group in found if group[0] in self.kinds.group_of]
        stop = [job for job in left if view.is_running(job)]
        return RunSet([Run(group, width) for width, group in found], stop=stop, keep=True)

    def _room(self, fresh: Sequence[int]) -> bool:
        """Tell whether all jobs, as many to a group as there may be, fit the cluster."""
        numbers = self.kinds.numbers()
        for job in fresh:
            numbers[self.widths[job]] = numbers.get(self.widths[job], 0) + 1
        most = self.policy.max_group
        required = sum(-(-number // most) * width for width, number in numbers.items())
        return self.nodes.surely_fits(numbers, required)

    def _select(self, view: View) -> list[int]:
        """Choose the candidates among all jobs; return those that lose their GPUs."""
        self.candidates.add(view.fresh, [self.first[job] for job in view.fresh])
        running = self.ranked(view, np.array(self.kinds.jobs(), np.int64))
        chosen = self.candidates.choose(running, view.fresh)
        found = [job for line in chosen.values() for job in sorted(job for _, _, job in line)]
        held = {
            job: value
            for width in dict.fromkeys([*chosen, *running])
            for value, _, job in running.get(width, ())
        }
        new = [job for job in found if job not in held]
        kept = set(found)
        left = {job: value for job, value in held.items() if job not in kept}
        self._drop(left)
        self.candidates.remove(new)
        self.kinds.add(new)
        return list(left)

    def _drop(self, left: Mapping[int, float]) -> None:
        """Send jobs of groups, given with their priorities, back to those that wait."""
        self.kinds.remove(left)
        self.candidates.add(left, left.values())

    def _without_nodes(self, view: View) -> list[int]:
        """Take the groups that no nodes are left for apart; their jobs wait."""
        entries = self.ranked(view, np.array(self.kinds.jobs(), np.int64))
        self.nodes.clear()
        gone: dict[int, float] = {}
        for width in sorted(self.kinds.groups, reverse=True):
            line = entries.get(width, [])
            groups = self.kinds.of_width(width)
            kept = set(self.fitting(groups, width, [job for _, _, job in line]))
            lost = {job for group in groups if group not in kept for job in group}
            gone |= {job: value for value, _, job in line if job in lost}
        self._drop(gone)
        return list(gone)


class _InList(_Run):
    """Muri as its simulator runs it: at every event all jobs are ranked, grouped, placed anew."""

    def __init__(self, policy: Muri, view: View) -> None:
        super().__init__(policy, view)
        self.groups = GroupsByList(self.profiles, policy.max_group, self.rounds)
        self.last = 0.0
        self.seconds = np.zeros(len(self.solo))
        #: by width: what holds GPUs; and the jobs that do
        self.runs: dict[int, Placed] = {}
        self.held: set[int] = set()

    def __call__(self, view: View) -> RunSet:
        """Rank all jobs, choose candidates, group them, place the groups; return what changes."""
        self.held.difference_update(view.finished)
        rows = np.fromiter(self.held, np.int64, len(self.held))
        spent = None
        if self.policy.attained:
            # from left to right, as the simulator adds: equal sums stay equal
            spent = self.seconds[rows] = self.seconds[rows] + view.now - self.last
            self.last = view.now
        running = self.ranked(view, rows, spent)
        self.candidates.add(view.fresh, [self.first[job] for job in view.fresh])
        entries = self.candidates.choose(running, view.fresh)
        buckets = {width: [*map(_JOB, line)] for width, line in entries.items()}
        arrange = self.groups.match if self.policy.blossom else self.groups.blocks
        groups = arrange(buckets, view.cluster.num_gpus)
        if self.policy.autopack:
            groups = self.repacked(groups, entries)
        known = self.runs
        self.runs = self._placed(groups, buckets)
        stop: list[int] = []
        start: list[Run] = []
        for width in sorted(known.keys() | self.runs.keys(), reverse=True):
            (_, before), (_, now) = (runs.get(width, NO_RUNS) for runs in (known, self.runs))
            if now is not before:
                gone = itertools.filterfalse(now.__contains__, before)
                stop += [job for group in gone for job in group if job in self.held]
                start += map(now.__getitem__, itertools.filterfalse(before.__contains__, now))
        begun = {job for run in start for job in run.jobs}
        if lost := set(stop) - begun:
            ranked = itertools.chain.from_iterable(running.values())
            left = {job: value for value, _, job in ranked if job in lost}
            self.candidates.add(left, left.values())
        self.candidates.remove(begun - self.held)
        self.held -= lost
        self.held |= begun
        lines = map(buckets.__getitem__, sorted(buckets, reverse=True))
        order = [*filter(self.held.__contains__, itertools.chain.from_iterable(lines))]
        return RunSet(start, stop=stop, keep=True, order=order)

    def _placed(
        self, groups: Mapping[int, list[Group]], buckets: Mapping[int, list[int]]
    ) -> dict[int, Placed]:
        """Return the groups that find nodes, the widest first, by width."""
        required = sum(width * len(found) for width, found in groups.items())
        every = self.nodes.surely_fits(groups, required)
        self.nodes.clear()
        placed: dict[int, Placed] = {}
        for width in sorted(groups, reverse=True):
            found = groups[width] if every else self.fitting(groups[width], width, buckets[width])
            before, known = placed[width] = self.runs.get(width, NO_RUNS)
            if found != before:
                members = map(_ascending, found)
                runs = {group: known.get(group) or Run(group, width) for group in members}
                placed[width] = found, runs
        return placed


@lru_cache(maxsize=1 << 10)
def _ascending(group: Group) -> Group:
    """Return the members of a group, ascending."""
    return tuple(sorted(group))
