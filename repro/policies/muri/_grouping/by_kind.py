"""Groups by kind: Algorithm 1 as the paper describes it, in numbers of groups per kind.

Muri, SIGCOMM 2022, Algorithm 1, section 4.2. Every round matches the groups of each bucket. While

    sum over groups of g > GPUs of the cluster,

pairs merge in ascending order of their waste (1 - gamma) g, with g the GPU count of the bucket.

Ties: equal waste goes to the narrower bucket, then to the smaller kinds. Groups of a kind form from
the jobs of smallest row in the trace. Where a kind has too many groups, the newest dissolve.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from repro.model.grouped import Group
from repro.policies.muri._grouping.matchings import Matchings
from repro.policies.muri._grouping.profiles import Kind, Profiles


class GroupsByKind:
    """The present groups, changed as little as possible when jobs arrive and leave.

    Jobs of one profile are interchangeable, so the target is a number of groups per kind. Merging
    ends when the groups fit ``gpus`` GPUs, or after ``rounds`` rounds of matching. ``widths`` has
    the demand (GPUs) of each job, the width of its bucket. ``collapse`` is as in `Matchings`.
    """

    def __init__(
        self,
        profiles: Profiles,
        widths: Sequence[int],
        rounds: int,
        gpus: int,
        *,
        collapse: bool = True,
    ) -> None:
        self._profiles = profiles
        self._matchings = Matchings(profiles, collapse=collapse)
        self._widths = widths
        self._rounds = rounds
        self._gpus = gpus
        #: width -> kind of a single job -> number of jobs
        self._job_counts: dict[int, dict[Kind, int]] = {}
        #: width -> kind -> groups, in order of formation
        self.groups: dict[int, dict[Kind, dict[Group, None]]] = {}
        #: job -> its group
        self.group_of: dict[int, Group] = {}
        #: width -> ungrouped jobs
        self._ungrouped: dict[int, set[int]] = {}

    def jobs(self) -> list[int]:
        """All jobs, ungrouped jobs first."""
        ungrouped = [job for jobs in self._ungrouped.values() for job in sorted(jobs)]
        groups = [group for width in self.groups for group in self.of_width(width)]
        return ungrouped + [job for group in groups for job in group]

    def of_width(self, width: int) -> list[Group]:
        """List the groups of a width."""
        return [group for same_kind in self.groups[width].values() for group in same_kind]

    def job_counts(self) -> dict[int, int]:
        """Count the jobs of each width."""
        return {width: sum(jobs.values()) for width, jobs in self._job_counts.items() if jobs}

    def add(self, jobs: Iterable[int]) -> None:
        """Add jobs. The next `arrange` groups them."""
        for job in jobs:
            width = self._widths[job]
            _change(self._job_counts.setdefault(width, {}), self._profiles.alone[job], 1)
            self._ungrouped.setdefault(width, set()).add(job)

    def remove(self, jobs: Iterable[int]) -> None:
        """Remove jobs. The other members of their groups become ungrouped."""
        for job in jobs:
            width = self._widths[job]
            if job in self.group_of:
                self._dissolve(width, self.group_of[job])
            self._ungrouped[width].remove(job)
            _change(self._job_counts[width], self._profiles.alone[job], -1)

    def arrange(self) -> list[tuple[int, Group]]:
        """Change the groups to the target, and list the new groups as (width, members)."""
        formed: list[tuple[int, Group]] = []
        for width, target in self._target().items():
            groups = self.groups.setdefault(width, {})
            too_many = [kind for kind in groups if len(groups[kind]) > target.get(kind, 0)]
            for kind in too_many:
                for group in list(groups[kind])[target.get(kind, 0) :]:
                    self._dissolve(width, group)
            if self._ungrouped.get(width):
                formed += [(width, group) for group in self._form(width, target)]
        return formed

    def _dissolve(self, width: int, group: Group) -> None:
        """Dissolve a group. Its members become ungrouped."""
        kind = self._profiles.kind_of_group(group)
        same_kind = self.groups[width][kind]
        del same_kind[group]
        if not same_kind:
            del self.groups[width][kind]
        ungrouped = self._ungrouped.setdefault(width, set())
        for job in group:
            del self.group_of[job]
            ungrouped.add(job)

    def _form(self, width: int, target: Mapping[Kind, int]) -> list[Group]:
        """Form the missing groups of a width from ungrouped jobs, smallest row first."""
        # jobs by profile, the smallest row last
        stacks: dict[int, list[int]] = {}
        for job in sorted(self._ungrouped.pop(width), reverse=True):
            stacks.setdefault(self._profiles.of_job[job], []).append(job)
        groups = self.groups[width]
        members = self._profiles.members
        formed: list[Group] = []
        for kind in sorted(target):
            for _ in range(target[kind] - len(groups.get(kind, ()))):
                group = tuple(sorted(stacks[profile].pop() for profile in members[kind]))
                groups.setdefault(kind, {})[group] = None
                for job in group:
                    self.group_of[job] = group
                formed.append(group)
        return formed

    def _target(self) -> dict[int, dict[Kind, int]]:
        """Count the groups that Algorithm 1 forms, by width and kind."""
        buckets = {width: dict(jobs) for width, jobs in self._job_counts.items()}
        demand = sum(width * sum(groups.values()) for width, groups in buckets.items())
        missing = demand - self._gpus
        for _ in range(self._rounds):
            if missing <= 0:
                break
            freed = self._merge_round(buckets, missing)
            if not freed:
                break
            missing -= freed
        return buckets

    def _merge_round(self, buckets: Mapping[int, dict[Kind, int]], missing: int) -> int:
        """Merge matched pairs in ``buckets`` until the missing GPUs are free; count freed GPUs."""
        matchable = {width: groups for width, groups in buckets.items() if sum(groups.values()) > 1}
        matchings = self._matchings.counts(list(matchable.values()))
        by_waste = sorted(
            ((1.0 - gamma) * width, width, kind, other, number, merged_kind)
            for width, pairs in zip(matchable, matchings, strict=True)
            for (gamma, kind, other, merged_kind), number in pairs.items()
        )
        freed = 0
        for _, width, kind, other, number, merged_kind in by_waste:
            merges = min(number, math.ceil((missing - freed) / width))
            if merges <= 0:
                break
            freed += merges * width
            groups = buckets[width]
            _change(groups, kind, -merges)
            _change(groups, other, -merges)
            _change(groups, merged_kind, merges)
        return freed


def _change(counts: dict[Kind, int], kind: Kind, change: int) -> None:
    """Change the count of a kind. A count of 0 is removed."""
    counts[kind] = counts.get(kind, 0) + change
    if not counts[kind]:
        del counts[kind]
