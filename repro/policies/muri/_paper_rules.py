"""Muri as its paper describes it: groups by kind, changed no more than jobs come and go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from repro.core.decision import Run, RunSet
from repro.core.view import View
from repro.policies.muri._candidates import Entry
from repro.policies.muri._groups_by_kind import Kinds
from repro.policies.muri._profiles import Group
from repro.policies.muri._session import Session, Settings


class KindSession(Session):
    """One run of a Muri policy that merges the best pairs first; see `Session`.

    While all jobs together fit the cluster, a decision costs what the jobs that came and went
    cost; only when jobs have to wait are all of them ranked.
    """

    def __init__(self, policy: Settings, view: View) -> None:
        super().__init__(policy, view)
        self.kinds = Kinds(self.profiles, self.rounds, view.cluster.num_gpus)
        self._waiting = 0

    def __call__(self, view: View) -> RunSet:
        """Pick candidates, arrange them in groups, say what changes."""
        for job in view.finished:
            self.kinds.remove(job, view.gpus(job))
        fresh = range(self.seen, view.arrived)
        self.seen = view.arrived
        if self.policy.autopack:
            return self._autopacked(view, fresh)
        left: list[int] = []
        if self._waiting or not self._room(view, fresh):
            left = self._select(view, fresh)
        else:
            for job in fresh:
                self.kinds.add(job, view.gpus(job))
        found = self.kinds.arrange()
        required = sum(
            width * sum(map(len, groups.values())) for width, groups in self.kinds.groups.items()
        )
        if not self.all_fit(self.kinds.groups, required):
            gone = self._without_nodes(view)
            left += gone
            found = [(width, group) for width, group in found if group[0] in self.kinds.group_of]
        stop = [job for job in left if view.is_running(job)]
        return RunSet([Run(group, width) for width, group in found], stop=stop, keep=True)

    def _room(self, view: View, fresh: Iterable[int]) -> bool:
        """Tell whether all jobs, as many to a group as there may be, fit the cluster."""
        numbers = {width: self.kinds.number(width) for width in self.kinds.widths()}
        for job in fresh:
            numbers[view.gpus(job)] = numbers.get(view.gpus(job), 0) + 1
        most = self.policy.max_group
        return self.all_fit(numbers, sum(-(-n // most) * width for width, n in numbers.items()))

    def _entries(self, view: View) -> dict[int, list[Entry]]:
        """Return the entries of the jobs that hold GPUs, by width."""
        return {width: self._ranked(view, width, jobs) for width, jobs in self.kinds.jobs().items()}

    def _ranked(self, view: View, width: int, jobs: list[int]) -> list[Entry]:
        seconds = [view.run_seconds(job) for job in jobs]
        return self.lanes.ranked(jobs, self.policy.values(view, width, jobs, seconds))

    def _select(self, view: View, fresh: range) -> list[int]:
        """Choose the candidates among all jobs; return those that lose their GPUs."""
        for job in fresh:
            self._wait(job, view.gpus(job), self.first[job])
        running = self._entries(view)
        left: list[int] = []
        for width, line in self.lanes.candidates(running, fresh).items():
            chosen = {job for _, _, job in line}
            for value, _, job in running.pop(width, ()):
                if job in chosen:
                    chosen.remove(job)
                else:
                    left.append(self._drop(job, width, value))
            for job in sorted(chosen):
                self.lanes.remove(job, width)
                self._waiting -= 1
                self.kinds.add(job, width)
        for width, others in running.items():
            left += [self._drop(job, width, value) for value, _, job in others]
        return left

    def _drop(self, job: int, width: int, value: float) -> int:
        self.kinds.remove(job, width)
        self._wait(job, width, value)
        return job

    def _wait(self, job: int, width: int, value: float) -> None:
        self.lanes.add(job, width, value)
        self._waiting += 1

    def _without_nodes(self, view: View) -> list[int]:
        """Take the groups that no nodes are left for apart; their jobs wait."""
        entries = self._entries(view)
        self.nodes.clear()
        gone: list[int] = []
        for width in sorted(self.kinds.groups, reverse=True):
            line = entries.get(width, [])
            groups = self._groups(width)
            kept = set(self.fitting(groups, width, [job for _, _, job in line]))
            lost = {job for group in groups if group not in kept for job in group}
            gone += [self._drop(job, width, value) for value, _, job in line if job in lost]
        return gone

    def _groups(self, width: int) -> Sequence[Group]:
        return [group for same in self.kinds.groups[width].values() for group in same]

    def _autopacked(self, view: View, fresh: range) -> RunSet:
        """Choose, group and repack all jobs anew: whoever was split may be grouped again."""
        self._select(view, fresh)
        self.kinds.arrange()
        packed = self.repacked(
            {width: self._groups(width) for width in self.kinds.groups}, self._entries(view)
        )
        return RunSet([Run(g, width) for width, groups in packed.items() for g in groups], "exact")
