"""Muri as its simulator runs it: at every event all jobs are ranked, grouped and placed anew."""

from __future__ import annotations

from collections.abc import Mapping

from repro.core.decision import Run, RunSet
from repro.core.view import View
from repro.policies.muri._candidates import Entry
from repro.policies.muri._groups_by_list import Grouping
from repro.policies.muri._profiles import Group
from repro.policies.muri._session import Session, Settings


class ListSession(Session):
    """One run of a Muri policy that merges in the order of its lists; see `Session`."""

    def __init__(self, policy: Settings, view: View) -> None:
        super().__init__(policy, view)
        self.grouping = Grouping(self.profiles, policy.max_group, self.rounds)
        self.last = 0.0
        #: seconds on GPUs of every job that ever held some
        self.seconds: dict[int, float] = {}
        #: jobs that hold GPUs, by width
        self.held: dict[int, set[int]] = {}
        self.runs: dict[Group, Run] = {}

    def __call__(self, view: View) -> RunSet:
        """Rank, pick candidates, group them, place the groups."""
        running = self._running(view)
        fresh = range(self.seen, view.arrived)
        for job in fresh:
            self.lanes.add(job, view.gpus(job), self.first[job])
        self.seen, self.last = view.arrived, view.now
        entries = self.lanes.candidates(running, fresh)
        buckets = {width: [entry[2] for entry in line] for width, line in entries.items()}
        arrange = self.grouping.match if self.policy.blossom else self.grouping.blocks
        groups = arrange(buckets, view.cluster.num_gpus)
        if self.policy.autopack:
            groups = self.repacked(groups, entries)
        runs = self._placed(groups, buckets, running)
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

    def _placed(
        self,
        groups: Mapping[int, list[Group]],
        buckets: Mapping[int, list[int]],
        running: Mapping[int, list[Entry]],
    ) -> list[Run]:
        """Place the widest groups first; keep account of who holds GPUs and who waits."""
        known, self.runs = self.runs, {}
        every = self.all_fit(groups, sum(width * len(found) for width, found in groups.items()))
        before, self.held = self.held, {width: set() for width in running.keys() | buckets.keys()}
        self.nodes.clear()
        for width in sorted(groups, reverse=True):
            found = groups[width] if every else self.fitting(groups[width], width, buckets[width])
            held = self.held[width]
            for group in found:
                members = tuple(sorted(group))
                self.runs[members] = known.get(members) or Run(members, width)
                held.update(members)
        for width, held in self.held.items():
            for job in held - before.get(width, set()):
                self.lanes.remove(job, width)
                self.seconds.setdefault(job, 0.0)
            for value, _, job in running.get(width, ()):
                if job not in held:
                    self.lanes.add(job, width, value)
        return list(self.runs.values())
