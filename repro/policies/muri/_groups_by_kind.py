"""Muri's groups by kind: how many of which, and the fewest changes that get there."""

from collections.abc import Iterator, Mapping

from repro.core.grouped import Group
from repro.policies.muri._profiles import Kind, Profiles


class GroupsByKind:
    """The groups that exist, kept near the best ones as jobs come and go (Algorithm 1).

    Which jobs of a profile share a group does not matter, so the groups wanted are numbers per
    kind, and only groups too many of a kind are taken apart. Merging ends when the groups need no
    more than ``gpus`` GPUs, or after so many rounds of matching.
    """

    def __init__(self, profiles: Profiles, rounds: int, gpus: int) -> None:
        self._profiles, self._rounds, self._gpus = profiles, rounds, gpus
        #: width -> kind of a job alone -> jobs to be grouped
        self._counts: dict[int, dict[Kind, int]] = {}
        #: width -> kind -> groups, in order of formation
        self.groups: dict[int, dict[Kind, dict[Group, None]]] = {}
        self.group_of: dict[int, Group] = {}
        self._loose: dict[int, set[int]] = {}

    def jobs(self) -> dict[int, list[int]]:
        """Return all jobs by width."""
        found = {width: sorted(loose) for width, loose in self._loose.items() if loose}
        for width, groups in self.groups.items():
            grouped = [job for same in groups.values() for group in same for job in group]
            found[width] = found.get(width, []) + grouped
        return found

    def of_width(self, width: int) -> list[Group]:
        """Return the groups of a width."""
        return [group for same in self.groups[width].values() for group in same]

    def numbers(self) -> dict[int, int]:
        """Return how many jobs of each width there are."""
        return {width: sum(counts.values()) for width, counts in self._counts.items() if counts}

    def add(self, job: int, width: int) -> None:
        """Add a job; `arrange` finds it a group."""
        _count(self._counts.setdefault(width, {}), self._profiles.alone[job], 1)
        self._loose.setdefault(width, set()).add(job)

    def remove(self, job: int, width: int) -> None:
        """Remove a job; the rest of its group is free for others."""
        if job in self.group_of:
            self._dissolve(width, self.group_of[job])
        self._loose[width].remove(job)
        _count(self._counts[width], self._profiles.alone[job], -1)

    def arrange(self) -> list[tuple[int, Group]]:
        """Return the groups that are new, as (width, members)."""
        found: list[tuple[int, Group]] = []
        for width, wanted in self._wanted().items():
            groups = self.groups.setdefault(width, {})
            for kind in [kind for kind in groups if len(groups[kind]) > wanted.get(kind, 0)]:
                for group in list(groups[kind])[wanted.get(kind, 0) :]:
                    self._dissolve(width, group)
            if self._loose.get(width):
                found += ((width, group) for group in self._formed(width, wanted))
        return found

    def _dissolve(self, width: int, group: Group) -> None:
        """Take a group apart."""
        kind = tuple(sorted(self._profiles.of_job[job] for job in group))
        same = self.groups[width][kind]
        del same[group]
        if not same:
            del self.groups[width][kind]
        loose = self._loose.setdefault(width, set())
        for job in group:
            del self.group_of[job]
            loose.add(job)

    def _formed(self, width: int, wanted: Mapping[Kind, int]) -> list[Group]:
        """Form the groups that lack from the loose jobs of a width, the earliest first."""
        pool: dict[int, list[int]] = {}
        for job in sorted(self._loose.pop(width), reverse=True):
            pool.setdefault(self._profiles.of_job[job], []).append(job)
        groups = self.groups[width]
        found: list[Group] = []
        for kind in sorted(wanted):
            for _ in range(wanted[kind] - len(groups.get(kind, ()))):
                group = tuple(sorted(pool[profile].pop() for profile in kind))
                groups.setdefault(kind, {})[group] = None
                for job in group:
                    self.group_of[job] = group
                found.append(group)
        return found

    def _wanted(self) -> dict[int, dict[Kind, int]]:
        """Return how many groups of which kind there should be, by width.

        In every round all nodes are matched; the pairs that waste least (the share of the
        resources that stays idle, times GPUs) are merged first, while GPUs lack.
        """
        gamma = self._profiles.gamma
        nodes = {width: dict(counts) for width, counts in self._counts.items()}
        lack = sum(width * sum(counts.values()) for width, counts in nodes.items()) - self._gpus
        for _ in range(self._rounds):
            if lack <= 0:
                break
            before = lack
            pairs = sorted(
                ((1.0 - gamma(one, other)) * width, width, one, other, number)
                for width, counts in nodes.items()
                for one, other, number in self._matched(counts)
            )
            for _, width, one, other, number in pairs:
                merged, counts = min(number, -(-lack // width)), nodes[width]
                if merged <= 0:
                    break
                lack -= merged * width
                both = tuple(sorted(one + other))
                for kind, change in ((one, -merged), (other, -merged), (both, merged)):
                    _count(counts, kind, change)
            if lack == before:
                break
        return nodes

    def _matched(self, counts: Mapping[Kind, int]) -> Iterator[tuple[Kind, Kind, int]]:
        """Return (kind, kind, number) of the pairs of one width."""
        present = tuple(sorted(counts))
        for a, b, number in self._profiles.matched(present, tuple(counts[k] for k in present)):
            yield present[a], present[b], number


def _count(counts: dict[Kind, int], kind: Kind, change: int) -> None:
    """Change the number of groups of a kind; a kind of none goes."""
    counts[kind] = counts.get(kind, 0) + change
    if not counts[kind]:
        del counts[kind]
