"""What every run of a Muri policy has: profiles, waiting jobs, nodes to place groups on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from repro.core.view import View
from repro.perf.interleaving import STAGE_COLUMNS, Interleaving, stage_columns
from repro.perf.stages import Stages
from repro.placement.first_fit import FirstFit
from repro.policies.muri._candidates import Entry, Lanes
from repro.policies.muri._profiles import RESOURCES, Group, Profiles


class Settings(Protocol):
    """What a run reads of a Muri policy, every rule resolved."""

    @property
    def max_group(self) -> int:
        """Most jobs in a group."""

    @property
    def blossom(self) -> bool:
        """Match jobs by efficiency."""

    @property
    def autopack(self) -> bool:
        """Split groups slower than their members one after the other."""

    @property
    def noise(self) -> float:
        """Largest relative error of a stage time."""

    @property
    def noise_seed(self) -> int:
        """Seed of those errors."""

    @property
    def collapse(self) -> bool:
        """Match kinds of jobs."""

    @property
    def halving_rounds(self) -> bool | None:
        """As many rounds as halvings of `max_group`."""

    @property
    def wide_first(self) -> bool | None:
        """Equal priorities go to the wider job."""

    def performance(self) -> Interleaving:
        """Return the period of a group."""

    def first_value(self, view: View, job: int) -> float:
        """Return the priority of a job that never ran."""

    def values(self, view: View, width: int, jobs: list[int], seconds: list[float]) -> list[float]:
        """Return the priorities of jobs of one width."""


class Session:
    """One run of a Muri policy.

    Parameters
    ----------
    policy : Settings
        With every rule resolved.
    view : View
        The run.
    """

    def __init__(self, policy: Settings, view: View) -> None:
        self.policy = policy
        present = [name for name in STAGE_COLUMNS if view.has_column(name)]
        columns = stage_columns(present, view.source)
        stages = _believed(policy, np.column_stack([view.column(name) for name in columns]))
        self.profiles = Profiles(
            stages,
            merged=len(columns) < RESOURCES,
            perf=policy.performance(),
            max_group=policy.max_group,
            collapse=policy.collapse,
        )
        self.rounds = policy.max_group
        if policy.halving_rounds:
            self.rounds = math.ceil(math.log2(policy.max_group))
        self.solo = [view.iteration_s(job) for job in range(len(stages))]
        #: value of each job until it first runs
        self.first = [policy.first_value(view, job) for job in range(len(stages))]
        self.nodes = FirstFit(view.cluster)
        self.lanes = Lanes(view.cluster, policy.max_group, bool(policy.wide_first))
        #: rows below this number are known
        self.seen = 0
        sizes = {node.gpus for node in view.cluster.nodes}
        self._even = len(sizes) == 1 and all(map(_is_power_of_two, sizes))
        #: a gang wider than a node stays within one switch
        self._widest = view.cluster.num_gpus if len(view.cluster.switches) == 1 else max(sizes)

    def all_fit(self, widths: Iterable[int], required: int) -> bool:
        """Tell whether gangs of these widths, widest first, surely fit the empty cluster."""
        if required > self.nodes.num_gpus:
            return False
        return self._even and all(_is_power_of_two(w) and w <= self._widest for w in widths)

    def fitting(self, groups: Sequence[Group], width: int, line: Iterable[int]) -> list[Group]:
        """Return the groups of a width that still find nodes, best member first.

        Parameters
        ----------
        groups : sequence of tuple of int
            Groups of one width.
        width : int
            GPUs of each.
        line : iterable of int
            Their members, best first.
        """
        rank = {job: place for place, job in enumerate(line)}
        found: list[Group] = []
        for group in sorted(groups, key=lambda group: min(rank[job] for job in group)):
            if not self.nodes.take(width):
                break
            found.append(group)
        return found

    def repacked(
        self, groups: Mapping[int, Sequence[Group]], entries: Mapping[int, list[Entry]]
    ) -> dict[int, list[Group]]:
        """Split the groups that do not pay, then admit all by the best value of a member."""
        values = {job: value for line in entries.values() for value, _, job in line}
        kept: list[tuple[float, int, Group]] = []
        for width, found in groups.items():
            for group in found:
                alone = len(group) == 1 or not self._pays(group)
                for part in [(job,) for job in group] if alone else [group]:
                    kept.append((min(values[job] for job in part), width, part))
        kept.sort(key=lambda entry: entry[0])
        admitted: dict[int, list[Group]] = {}
        self.nodes.clear()
        for _, width, group in kept:
            if self.nodes.take(width):
                admitted.setdefault(width, []).append(group)
        return admitted

    def _pays(self, group: Group) -> bool:
        return self.profiles.best_period(group) <= sum(self.solo[job] for job in group)


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _believed(policy: Settings, stages: np.ndarray[Any, np.dtype[np.float64]]) -> list[Stages]:
    """Return the stage times of every job as the scheduler sees them."""
    if policy.noise:
        rng = np.random.default_rng([policy.noise_seed, len(stages)])
        stages = stages * rng.uniform(1 - policy.noise, 1 + policy.noise, stages.shape)
    return [tuple(row) for row in stages.tolist()]
