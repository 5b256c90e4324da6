"""Groups in list order: Algorithm 1 as the public simulator runs it.

Muri, SIGCOMM 2022, public simulator. Every round matches the groups of each bucket. While

    sum over groups of g > GPUs of the cluster,

matched pairs merge bucket by bucket in list order. The groups of a matched pair, merged or not,
take the position of the later group. Without Blossom, blocks of k neighbours merge in order of
priority.

Ties: see `repro.policies.muri._grouping.matchings`.
"""

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from repro.model.grouped import Group
from repro.policies.muri._grouping.matchings import MAX_ONE_BY_ONE, Matchings
from repro.policies.muri._grouping.profiles import Kind, Profiles

#: Groups of a bucket in list order, and their kinds.
Bucket = tuple[list[Group], list[Kind]]


class GroupMerge(NamedTuple):
    """Merge of a group with the partner that is later in the list."""

    partner: Group
    group: Group  #: members of both
    kind: Kind  #: kind of the merged group


#: Earlier group of a pair -> merge.
Merges = dict[Group, GroupMerge]


class MergeRound(NamedTuple):
    """A round in which all matched pairs of a bucket merged."""

    groups: list[Group]  #: groups before the round
    bucket: Bucket  #: bucket after the round
    merges: Merges


class GroupsByList:
    """Groups of a decision. Merges of the last decision are reused."""

    def __init__(
        self, profiles: Profiles, max_group: int, rounds: int, *, collapse: bool = True
    ) -> None:
        self._profiles = profiles
        self._matchings = Matchings(profiles, collapse=collapse)
        self._max_group = max_group
        self._rounds = rounds
        self._alone: list[Group] = [(job,) for job in range(len(profiles.alone))]
        #: merges of the last decision, and of the present one
        self._old_merges: Merges = {}
        self._new_merges: Merges = {}
        #: (width, number of the round) -> round in which all matched pairs merged, of the last
        #: decision and of the present one
        self._old_rounds: dict[tuple[int, int], MergeRound] = {}
        self._new_rounds: dict[tuple[int, int], MergeRound] = {}
        #: width -> jobs of the last decision, and their bucket
        self._singles: dict[int, tuple[list[int], Bucket]] = {}

    def match(self, candidates: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Group the jobs of each width in rounds of matching, until they fit ``gpus`` GPUs."""
        buckets = {width: self._bucket(width, jobs) for width, jobs in candidates.items()}
        missing = sum(width * len(jobs) for width, jobs in candidates.items()) - gpus
        self._old_merges = self._new_merges
        self._new_merges = {}
        self._old_rounds = self._new_rounds
        self._new_rounds = {}
        for number, width in itertools.product(range(self._rounds), candidates):
            if missing <= 0:
                break
            num_groups = len(buckets[width][0])
            buckets[width] = self._merged(buckets[width], (width, number), missing)
            missing -= width * (num_groups - len(buckets[width][0]))
        return {width: groups for width, (groups, _) in buckets.items()}

    def blocks(self, candidates: Mapping[int, list[int]], gpus: int) -> dict[int, list[Group]]:
        """Group neighbours in order of priority, by width, until they fit ``gpus`` GPUs."""
        missing = sum(width * len(jobs) for width, jobs in candidates.items()) - gpus
        groups: dict[int, list[Group]] = {}
        for width, jobs in candidates.items():
            groups[width] = []
            for begin in range(0, len(jobs), self._max_group):
                block = jobs[begin : begin + self._max_group]
                num_joined = max(0, min(len(block) - 1, math.ceil(missing / width)))
                missing -= width * num_joined
                groups[width] += [(job,) for job in block[num_joined + 1 :]]
                groups[width].append(tuple(block[: num_joined + 1]))
        return groups

    def _bucket(self, width: int, jobs: list[int]) -> Bucket:
        """Bucket of jobs as groups of one."""
        last = self._singles.get(width)
        if last is not None and last[0] == jobs:
            return last[1]
        alone = self._alone.__getitem__
        kind = self._profiles.alone.__getitem__
        bucket = ([*map(alone, jobs)], [*map(kind, jobs)])
        self._singles[width] = jobs, bucket
        return bucket

    def _merged(self, bucket: Bucket, key: tuple[int, int], missing: int) -> Bucket:
        """Bucket after one round; ``key`` is its width and the number of the round."""
        groups, kinds = bucket
        width = key[0]
        old_round = self._old_rounds.get(key)
        if old_round is not None and old_round.groups == groups:
            old_bucket = old_round.bucket
            freed = width * (len(groups) - len(old_bucket[0]))
            # If even the last merge is needed, all pairs of the last decision merge again.
            if missing > freed - width:
                self._new_rounds[key] = old_round
                self._new_merges |= old_round.merges
                return old_bucket
        partner = self._matchings.partners(tuple(kinds), self._repeated(groups))
        max_merges = math.ceil(missing / width)
        merged, merges = self._merge_pairs(bucket, partner, max_merges)
        self._new_merges |= merges
        # A pair counts once, at its later position.
        matched_pairs = sum(map(operator.lt, partner, itertools.count()))
        if len(merges) == matched_pairs:
            self._new_rounds[key] = MergeRound(groups, merged, merges)
        return merged

    def _repeated(self, groups: Sequence[Group]) -> list[tuple[int, int]]:
        """Pairs of positions that merged at the last decision; none if the list is short.

        Short lists are matched one by one, without these pairs.
        """
        if len(groups) <= MAX_ONE_BY_ONE:
            return []
        position_of = dict(zip(groups, range(len(groups)), strict=True))
        repeated = []
        for position, group in enumerate(groups):
            merge = self._old_merges.get(group)
            if merge is not None and merge.partner in position_of:
                repeated.append((position, position_of[merge.partner]))
        return repeated

    def _merge_pairs(
        self, bucket: Bucket, partner: Sequence[int], max_merges: int
    ) -> tuple[Bucket, Merges]:
        """Merge the first ``max_merges`` matched pairs.

        Both groups of a pair, merged or not, take the position of the later group.
        """
        groups, kinds = bucket
        merged_groups: list[Group] = []
        merged_kinds: list[Kind] = []
        merges: Merges = {}
        for position, other in enumerate(partner):
            if other > position:
                continue
            if other == position:
                merged_groups.append(groups[position])
                merged_kinds.append(kinds[position])
            elif len(merges) < max_merges:
                merge = self._merge(bucket, other, position)
                merges[groups[other]] = merge
                merged_groups.append(merge.group)
                merged_kinds.append(merge.kind)
            else:
                merged_groups += groups[other], groups[position]
                merged_kinds += kinds[other], kinds[position]
        return (merged_groups, merged_kinds), merges

    def _merge(self, bucket: Bucket, earlier: int, later: int) -> GroupMerge:
        """Merge of the groups at two positions of a bucket."""
        groups, kinds = bucket
        group = groups[earlier]
        partner = groups[later]
        old_merge = self._old_merges.get(group)
        if old_merge is not None and old_merge.partner == partner:
            return old_merge
        merge = self._profiles.merges[kinds[earlier]][kinds[later]]
        return GroupMerge(partner, group + partner, merge[3])
