"""Muri's Algorithm 1: which jobs may get GPUs, what merging is worth, and which groups form."""

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sortedcontainers import SortedList

from repro.base.typing import Floats, Ints
from repro.model.cluster.spec import Cluster
from repro.model.grouped import Group
from repro.perf.stages import Interleaving, Stages
from repro.placement.first_fit import FirstFit
from repro.solve.matching import (
    RESOLUTION,
    KindMatcher,
    below_diagonal,
    best_pairs,
    counted_pairs,
    first_pairs,
)

#: Value, rank among equal values, row.
Entry = tuple[float, int, int]
#: Profiles of the members of a group, ascending, as digits of one number.
Kind = int
#: Kinds of nodes, in order.
Line = tuple[Kind, ...]
#: Gamma of merging two kinds, the kinds, ascending, and what they become (0: too large a group).
Pair = tuple[float, Kind, Kind, Kind]
#: Groups in order of priority, and their kinds.
Nodes = tuple[list[Group], list[Kind]]
#: With whom a group merged, what they became, and its kind.
Mates = dict[Group, tuple[Group, Group, Kind]]
#: The groups of a line, the line after its pairs merged, and who merged with whom.
Merging = tuple[list[Group], Nodes, Mates]

#: Up to this many nodes are matched one by one: among equal totals the solver then finds, along the
#: list, what that of the simulator would (nearly). More are matched by kind.
NODE_BY_NODE = 32
#: Matchings kept.
_MEMORY = 1 << 14


class Candidates:
    """Jobs of each GPU count in order of priority; priorities stand still while a job waits.

    Among equal priorities the earlier row comes first; with ``wide_first``, as in the simulator's
    list, wider jobs do, and those that arrived just now come last.
    """

    def __init__(
        self, widths: Sequence[int], cluster: Cluster, max_group: int, wide_first: bool
    ) -> None:
        self._nodes = FirstFit(cluster, set(widths))
        self._num_gpus = cluster.num_gpus
        #: GPUs of every job
        self.widths = np.array(widths, dtype=np.int64)
        self._width_of = widths
        self._max_group = max_group
        self._wide_first = wide_first
        self._lines: dict[int, SortedList[Entry]] = {}
        #: entries of the jobs that wait
        self.waiting: dict[int, Entry] = {}
        #: of each job: its rank among equal values, and its value at the last event if it ran
        self._rank = np.arange(len(widths))
        self._last = np.full(len(widths), np.nan)
        #: ranks given out so far lie between these
        self._ahead = 0
        self._behind = 1 << 40

    def add(self, jobs: Iterable[int], values: Iterable[float]) -> None:
        """Put jobs in line."""
        for job, value in zip(jobs, values, strict=True):
            entry = self.waiting[job] = (value, int(self._rank[job]), job)
            self._lines.setdefault(self._width_of[job], SortedList()).add(entry)

    def remove(self, jobs: Iterable[int]) -> None:
        """Take jobs out of the line."""
        for job in jobs:
            entry = self.waiting.pop(job)
            self._lines[self._width_of[job]].remove(entry)
            self._last[job] = entry[0]

    def ranked(self, rows: Ints, values: Floats) -> dict[int, list[Entry]]:
        """Return the running jobs of each width with their values now, best first."""
        lanes: dict[int, list[Entry]] = {w: [] for w in dict.fromkeys(self.widths[rows].tolist())}
        ranks = self._rank[rows]
        last = self._last[rows]
        # a list sorted in place keeps the order of equal values: a job whose value rose to that of
        # others stays ahead of them, one whose value fell to it comes behind
        last = np.where(np.isnan(last), values, last) if self._wide_first else values
        order = np.lexsort((ranks, last, values))
        rows = rows[order]
        values = values[order]
        ranks = ranks[order]
        change = values - last[order]
        place = np.arange(len(rows))
        self._ahead -= len(rows)
        moved = np.where(change > 0, self._ahead, self._behind) + place
        ranks = self._rank[rows] = np.where(change == 0, ranks, moved)
        self._last[rows] = values
        self._behind += len(rows)
        entries = zip(values.tolist(), ranks.tolist(), rows.tolist(), strict=True)
        for width, entry in zip(self.widths[rows].tolist(), entries, strict=True):
            lanes[width].append(entry)
        return lanes

    def choose(self, running: Mapping[int, list[Entry]], fresh: range) -> dict[int, list[Entry]]:
        """Return the jobs that may get GPUs, by width, best first; ``fresh`` arrived just now.

        In order of priority, a job for whose gang the empty cluster has a place left takes it for
        itself and the next ones of its width, ``max_group`` in all.
        """
        size = self._max_group
        lanes = {}
        for width in running.keys() | self._lines.keys():
            ahead = itertools.islice(self._lines.get(width, ()), size * (self._num_gpus // width))
            if line := sorted([*running.get(width, ()), *ahead]):
                lanes[width] = line
        width_of = self._width_of
        # every size-th job of a line takes a place, which the next ones of its width share
        leaders = (line[::size] for line in lanes.values())
        ranked = heapq.merge(*leaders, key=self._order(fresh))
        placed = self._nodes.scan(ranked, lambda entry: width_of[entry[2]])
        places = Counter([width_of[job] for _, _, job in placed])
        return {width: lanes[width][: size * number] for width, number in places.items()}

    def _order(self, fresh: range) -> Callable[[Entry], Any] | None:
        """Sort key of entries of all widths; None: entries sort as they are."""
        if not self._wide_first:
            return None
        width_of = self._width_of

        def key(entry: Entry) -> tuple[float, bool, int, int]:
            value, rank, job = entry
            if job in fresh:
                return value, True, 0, rank
            return value, False, -width_of[job], rank

        return key


class Profiles:
    """The stage times of every job, as the scheduler believes them (Muri, section 4.2).

    Jobs of equal stage times have one profile. With ``merged`` storage and CPU are one stage;
    ``collapse`` matches kinds of groups with their numbers instead of group by group.
    """

    def __init__(
        self,
        stages: Sequence[Stages],
        *,
        merged: bool,
        perf: Interleaving,
        max_group: int,
        collapse: bool,
    ) -> None:
        self._merged = merged
        self._perf = perf
        self._max_group = max_group
        self._collapse = collapse
        numbers: dict[Stages, int] = {}
        #: profile of each job
        self.of_job = [numbers.setdefault(times, len(numbers)) for times in stages]
        self._stages = list(numbers)
        #: kinds by profiles, profiles by kind
        self._kinds: dict[tuple[int, ...], Kind] = {}
        self.members: dict[Kind, tuple[int, ...]] = {}
        #: kind of each job alone
        self.alone: list[Kind] = [self.kind((number,)) for number in self.of_job]
        #: two kinds that met, either one first
        self.met: defaultdict[Kind, dict[Kind, Pair]] = defaultdict(dict)
        #: row of each kind of a short line in the table of gamma in whole numbers; -1: not known
        self._row: defaultdict[Kind, int] = defaultdict(itertools.count().__next__)
        self._values = np.full((64, 64), -1)
        self._matchers: dict[Line, KindMatcher] = {}
        #: matchings of lines, and of numbers per kind
        self._solved: dict[tuple[Any, ...], Any] = {}

    def kind(self, profiles: tuple[int, ...]) -> Kind:
        """Return the kind of a group; kinds compare as their profiles, ascending, do."""
        if profiles not in self._kinds:
            number = 0
            digits = itertools.chain(profiles, itertools.repeat(-1))
            for digit in itertools.islice(digits, self._max_group):
                number = number * (len(self._stages) + 1) + digit + 1
            self._kinds[profiles] = number
            self.members[number] = profiles
        return self._kinds[profiles]

    def best_period(self, jobs: Group) -> float:
        """Return the period of a group in its best order (s), whatever order it will run in."""
        group = [self._stages[self.of_job[job]] for job in jobs]
        return replace(self._perf, ordering="best").period(group, self._merged)

    def weights(self, line: Sequence[Kind]) -> Floats:
        """Return the efficiency gamma (Eq 4) of merging every two kinds of a line of kinds.

        A table of shape (kinds, kinds); 0 where the group would be too large.
        """
        self._learn([line])
        return np.array([[self.met[one][other][0] for other in line] for one in line])

    def _learn(self, lines: Iterable[Iterable[Kind]]) -> None:
        """Let all kinds of each line have met."""
        met = self.met
        members = self.members
        new = {
            (min(one, other), max(one, other))
            for present in map(set, lines)
            for one in present
            for other in present - met[one].keys()
        }
        if not new:
            return
        merged = {(a, b): tuple(sorted(members[a] + members[b])) for a, b in new}
        fitting = [profiles for profiles in merged.values() if len(profiles) <= self._max_group]
        groups = [[self._stages[number] for number in profiles] for profiles in fitting]
        found = dict(zip(fitting, self._perf.efficiencies(groups, self._merged), strict=True))
        for (one, other), profiles in merged.items():
            gamma = found.get(profiles, 0.0)
            both = self.kind(profiles) if profiles in found else 0
            met[one][other] = met[other][one] = (gamma, one, other, both)

    def matched(self, counts: Sequence[Mapping[Kind, int]]) -> list[dict[Pair, int]]:
        """Return maximum-weight matchings of so many nodes of every kind: how often which pair."""
        if len(self._solved) > _MEMORY:
            self._solved.clear()
        # kinds, ascending, and numbers
        lines = [tuple(sorted(nodes)) for nodes in counts]
        keys = [
            (line, tuple(map(nodes.__getitem__, line)))
            for line, nodes in zip(lines, counts, strict=True)
        ]
        new = [key for key in keys if key not in self._solved]
        self._learn(line for line, _ in new if line not in self._matchers)
        for line, number in new:
            if not self._collapse or 2 * len(line) > sum(number):
                numbers = counted_pairs(self.weights(line), number)
            else:
                if line not in self._matchers:
                    self._matchers[line] = KindMatcher(self.weights(line))
                numbers = self._matchers[line].pairs(number)
            answer = {self.met[line[a]][line[b]]: times for a, b, times in numbers}
            self._solved[line, number] = answer
        return [self._solved[key] for key in keys]

    def in_line(self, kinds: Line, again: Sequence[tuple[int, int]]) -> list[int]:
        """Return the partner of each place in a line of nodes matched at maximum weight, or itself.

        Of equal nodes those of ``again`` are paired first, then the others in the line's order.
        """
        few = len(kinds) <= NODE_BY_NODE
        if self._collapse and not few and 2 * len(set(kinds)) <= len(kinds):
            return self._kind_by_kind(kinds, again)
        partner: list[int] | None = self._solved.get(kinds)
        if partner is None:
            pairs = self._first_pairs(kinds) if few else best_pairs(self.weights(kinds))
            if len(self._solved) > _MEMORY:
                self._solved.clear()
            partner = self._solved[kinds] = [*range(len(kinds))]
            for one, other in pairs:
                partner[one] = other
                partner[other] = one
        return partner

    def _first_pairs(self, kinds: Line) -> list[tuple[int, int]]:
        """Return the pairs that the solver finds first."""
        rows = np.array([*map(self._row.__getitem__, kinds)])
        if len(self._row) > len(self._values):
            self._values = np.pad(self._values, (0, len(self._values)), constant_values=-1)
        later, earlier = below_diagonal(len(kinds))
        a, b = rows[later], rows[earlier]
        values = self._values[a, b]
        if values.min(initial=0) < 0:
            self._learn([kinds])
            new = np.flatnonzero(values < 0)
            a, b = a[new], b[new]
            met = zip(later[new].tolist(), earlier[new].tolist(), strict=True)
            gamma = np.array([self.met[kinds[one]][kinds[other]][0] for one, other in met])
            values[new] = self._values[a, b] = self._values[b, a] = np.rint(gamma / RESOLUTION)
        return first_pairs(len(kinds), values)

    def _kind_by_kind(self, kinds: Line, again: Sequence[tuple[int, int]]) -> list[int]:
        """Return partners in the numbers per kind that weigh most."""
        counts = Counter(kinds)
        left = self.matched([counts])[0].copy()
        met = self.met
        partner = [*range(len(kinds))]
        for one, other in again:
            pair = met[kinds[one]][kinds[other]]
            if left.get(pair):
                left[pair] -= 1
                partner[one] = other
                partner[other] = one
        queues: dict[Kind, list[int]] = {kind: [] for kind in counts}
        # the earliest place last
        for place in range(len(kinds) - 1, -1, -1):
            if partner[place] == place:
                queues[kinds[place]].append(place)
        for (_, a, b, _), times in left.items():
            for _ in range(times):
                one = queues[a].pop()
                other = queues[b].pop()
                partner[one] = other
                partner[other] = one
        return partner


class GroupsByKind:
    """The groups that exist, kept near the best ones as jobs come and go.

    Which jobs of a profile share a group does not matter, so the groups wanted are numbers per
    kind, and only groups too many of a kind are taken apart. Merging ends when the groups need no
    more than ``gpus`` GPUs, or after so many rounds of matching.
    """

    def __init__(self, profiles: Profiles, widths: Sequence[int], rounds: int, gpus: int) -> None:
        self._profiles = profiles
        self._widths = widths
        self._rounds = rounds
        self._gpus = gpus
        #: width -> kind of a job alone -> jobs to be grouped
        self._counts: dict[int, dict[Kind, int]] = {}
        #: width -> kind -> groups, in order of formation
        self.groups: dict[int, dict[Kind, dict[Group, None]]] = {}
        self.group_of: dict[int, Group] = {}
        self._loose: dict[int, set[int]] = {}

    def jobs(self) -> list[int]:
        """Return all jobs."""
        loose = [job for jobs in self._loose.values() for job in sorted(jobs)]
        groups = [group for width in self.groups for group in self.of_width(width)]
        return loose + [job for group in groups for job in group]

    def of_width(self, width: int) -> list[Group]:
        """Return the groups of a width."""
        return [group for same in self.groups[width].values() for group in same]

    def numbers(self) -> dict[int, int]:
        """Return how many jobs of each width there are."""
        return {width: sum(counts.values()) for width, counts in self._counts.items() if counts}

    def add(self, jobs: Iterable[int]) -> None:
        """Add jobs; `arrange` finds them groups."""
        for job in jobs:
            width = self._widths[job]
            _count(self._counts.setdefault(width, {}), self._profiles.alone[job], 1)
            self._loose.setdefault(width, set()).add(job)

    def remove(self, jobs: Iterable[int]) -> None:
        """Remove jobs; the rest of their groups is free for others."""
        for job in jobs:
            width = self._widths[job]
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
        kind = self._profiles.kind(tuple(sorted(self._profiles.of_job[job] for job in group)))
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
        members = self._profiles.members
        found: list[Group] = []
        for kind in sorted(wanted):
            for _ in range(wanted[kind] - len(groups.get(kind, ()))):
                group = tuple(sorted(pool[profile].pop() for profile in members[kind]))
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
        nodes = {width: dict(counts) for width, counts in self._counts.items()}
        lack = sum(width * sum(counts.values()) for width, counts in nodes.items()) - self._gpus
        for _ in range(self._rounds):
            if lack <= 0:
                break
            before = lack
            several = {w: counts for w, counts in nodes.items() if sum(counts.values()) > 1}
            found = self._profiles.matched(list(several.values()))
            waste = [
                ((1.0 - gamma) * width, width, one, other, number, both)
                for width, pairs in zip(several, found, strict=True)
                for (gamma, one, other, both), number in pairs.items()
            ]
            for _, width, one, other, number, both in sorted(waste):
                merged = min(number, -(-lack // width))
                counts = nodes[width]
                if merged <= 0:
                    break
                lack -= merged * width
                for kind, change in ((one, -merged), (other, -merged), (both, merged)):
                    _count(counts, kind, change)
            if lack == before:
                break
        return nodes


def _count(counts: dict[Kind, int], kind: Kind, change: int) -> None:
    """Change the number of groups of a kind; a kind of none goes."""
    counts[kind] = counts.get(kind, 0) + change
    if not counts[kind]:
        del counts[kind]


class GroupsByList:
    """Groups as the simulator forms them, candidates merged in order of priority until they fit.

    Buckets map widths to candidates.
    """

    def __init__(self, profiles: Profiles, max_group: int, rounds: int) -> None:
        self._profiles = profiles
        self._max_group = max_group
        self._rounds = rounds
        self._alone: list[Group] = [(job,) for job in range(len(profiles.alone))]
        #: whom each group was merged with to what at the last decision, and at this one
        self._mates: Mates = {}
        self._merged_now: Mates = {}
        #: lines that merged whole then and now, by width and round: line, result, who with whom
        self._before: dict[tuple[int, int], Merging] = {}
        self._now: dict[tuple[int, int], Merging] = {}
        #: by width: the jobs of the last decision, and what `_line` made of them
        self._lines: dict[int, tuple[list[int], Nodes]] = {}

    def match(self, buckets: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Return the groups of each bucket; merging ends when they need no more than ``gpus``."""
        lines = {width: self._line(width, jobs) for width, jobs in buckets.items()}
        lack = sum(width * len(jobs) for width, jobs in buckets.items()) - gpus
        self._mates = self._merged_now
        self._merged_now = {}
        self._before = self._now
        self._now = {}
        for turn, width in itertools.product(range(self._rounds), buckets):
            if lack > 0:
                lines[width], lack = self._merged(lines[width], (width, turn), lack)
        return {width: groups for width, (groups, _) in lines.items()}

    def _line(self, width: int, jobs: list[int]) -> Nodes:
        """Return the jobs of a width as groups of one, and their kinds."""
        before = self._lines.get(width)
        if before is None or before[0] != jobs:
            alone = self._alone.__getitem__
            kind = self._profiles.alone.__getitem__
            before = self._lines[width] = jobs, ([*map(alone, jobs)], [*map(kind, jobs)])
        return before[1]

    def _merged(self, line: Nodes, turn: tuple[int, int], lack: int) -> tuple[Nodes, int]:
        """Merge matched nodes of one bucket while GPUs lack; return how many still do, too."""
        groups, kinds = line
        width = turn[0]
        before = self._before.get(turn)
        if before and before[0] == groups:
            less = width * (len(groups) - len(before[1][0]))
            if lack > less - width:
                # the same line merges as it did
                self._now[turn] = before
                self._merged_now |= before[2]
                return before[1], lack - less
        mates = self._mates
        again: list[tuple[int, int]] = []
        if len(groups) > NODE_BY_NODE:
            # of equal nodes those merged last time are merged again
            place_of = dict(zip(groups, range(len(groups)), strict=True))
            again = [
                (place, place_of[known[0]])
                for place, group in enumerate(groups)
                if (known := mates.get(group)) and known[0] in place_of
            ]
        partner = self._profiles.in_line(tuple(kinds), again)
        merged: list[Group] = []
        become: list[Kind] = []
        together: Mates = {}
        whole = True
        for place, other in enumerate(partner):
            if other == place:
                merged.append(groups[place])
                become.append(kinds[place])
            # a pair stands where its later node does
            elif other < place and lack > 0:
                mate = groups[other]
                group = groups[place]
                known = mates.get(mate)
                if known is None or known[0] != group:
                    pair = self._profiles.met[kinds[other]][kinds[place]]
                    known = group, mate + group, pair[3]
                together[mate] = known
                merged.append(known[1])
                become.append(known[2])
                lack -= width
            elif other < place:
                merged += groups[other], groups[place]
                become += kinds[other], kinds[place]
                whole = False
        self._merged_now |= together
        if whole:
            self._now[turn] = groups, (merged, become), together
        return (merged, become), lack

    def blocks(self, buckets: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Return groups of neighbours in the order of priority, merged while GPUs lack."""
        lack = sum(width * len(jobs) for width, jobs in buckets.items()) - gpus
        groups: dict[int, list[Group]] = {}
        for width, jobs in buckets.items():
            found = groups[width] = []
            for begin in range(0, len(jobs), self._max_group):
                block = jobs[begin : begin + self._max_group]
                joined = max(0, min(len(block) - 1, -(-lack // width)))
                lack -= width * joined
                found += [(job,) for job in block[joined + 1 :]]
                found.append(tuple(block[: joined + 1]))
        return groups
