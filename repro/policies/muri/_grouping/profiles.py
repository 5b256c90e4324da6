"""Profiles: stage times of jobs, kinds of groups, and the efficiency of every merge.

Muri, SIGCOMM 2022, section 4.2. A profile is the vector t_i^0, ..., t_i^{k-1} of a job i. The kind
of a group is the multiset of the profiles of its members. The weight of merging two groups is the
interleaving efficiency of all their members (Eq 4):

    gamma = sum_i sum_j t_i^j / (k T)
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from repro.base.typing import Floats
from repro.model.grouped import Group
from repro.perf.stages import Interleaving, Stages

#: Profiles of the members of a group, ascending, as digits of one number.
Kind = int
#: (gamma, kind, kind, merged kind) of merging two kinds, which are in ascending order. Gamma and
#: merged kind are 0 if the merged group is too large.
Merge = tuple[float, Kind, Kind, Kind]


class Profiles:
    """The stage times of every job, as the scheduler knows them.

    Jobs of equal stage times have one profile. With ``three_stages``, storage and CPU are one
    stage.
    """

    def __init__(
        self, stages: Sequence[Stages], *, three_stages: bool, perf: Interleaving, max_group: int
    ) -> None:
        self._three_stages = three_stages
        self._perf = perf
        self._max_group = max_group
        numbers: dict[Stages, int] = {}
        #: profile of each job
        self.of_job = [numbers.setdefault(times, len(numbers)) for times in stages]
        self._stages = list(numbers)
        self._kind_of: dict[tuple[int, ...], Kind] = {}
        #: kind -> profiles of the members
        self.members: dict[Kind, tuple[int, ...]] = {}
        #: kind of each job as a group of one
        self.alone: list[Kind] = [self.kind((number,)) for number in self.of_job]
        #: kind -> other kind -> their merge; both orders of the two kinds
        self.merges: defaultdict[Kind, dict[Kind, Merge]] = defaultdict(dict)

    def kind(self, profiles: tuple[int, ...]) -> Kind:
        """Kind of a group by its ascending profiles. Kinds sort as these tuples do."""
        if profiles not in self._kind_of:
            number = 0
            digits = itertools.chain(profiles, itertools.repeat(-1))
            for digit in itertools.islice(digits, self._max_group):
                number = number * (len(self._stages) + 1) + digit + 1
            self._kind_of[profiles] = number
            self.members[number] = profiles
        return self._kind_of[profiles]

    def kind_of_group(self, group: Group) -> Kind:
        """Kind of a group of jobs."""
        return self.kind(tuple(sorted(self.of_job[job] for job in group)))

    def best_period(self, jobs: Group) -> float:
        """Period of a group in its best ordering (s), whatever the ordering of the policy."""
        members = [self._stages[self.of_job[job]] for job in jobs]
        return replace(self._perf, ordering="best").period(members, self._three_stages)

    def weights(self, kinds: Sequence[Kind]) -> Floats:
        """Gamma of merging every two kinds, (kinds, kinds); 0 if the group would be too large."""
        self.compute_merges([kinds])
        return np.array([[self.merges[row][column][0] for column in kinds] for row in kinds])

    def compute_merges(self, kind_sets: Iterable[Iterable[Kind]]) -> None:
        """Compute the merges of every two kinds of each set."""
        merges = self.merges
        members = self.members
        new_pairs = {
            (min(kind, other), max(kind, other))
            for kinds in map(set, kind_sets)
            for kind in kinds
            for other in kinds - merges[kind].keys()
        }
        if not new_pairs:
            return
        joined = {(a, b): tuple(sorted(members[a] + members[b])) for a, b in new_pairs}
        allowed = [profiles for profiles in joined.values() if len(profiles) <= self._max_group]
        stage_times = [[self._stages[number] for number in profiles] for profiles in allowed]
        gammas = self._perf.efficiencies(stage_times, self._three_stages)
        gamma_of = dict(zip(allowed, gammas, strict=True))
        for (kind, other), profiles in joined.items():
            merge = (0.0, kind, other, 0)
            if profiles in gamma_of:
                merge = (gamma_of[profiles], kind, other, self.kind(profiles))
            merges[kind][other] = merge
            merges[other][kind] = merge
