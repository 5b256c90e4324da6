"""From shares of kinds to rows of jobs and pairs: members (-1 = no second), shares by GPU type."""

import numpy as np

from repro.optimise.pairs.programme import KindShares
from repro.typing import Floats, Ints

#: Smaller shares of time are left out.
FLOOR = 1e-6


def spread_evenly(
    jobs: Ints, kinds: Ints, counts: Floats, given: KindShares
) -> tuple[Ints, Floats]:
    """Return one row per job and per pair of jobs, equal for all pairs of the same kinds.

    Each job (row numbers ``jobs``, in the order in which rows are wanted, of kind ``kinds[i]``)
    comes after the pairs of those before it, and before its own pairs with them.
    """
    from repro.optimise.pairs.columns import spread

    size = len(given.alone)
    pairs = np.where(
        given.first == given.second,
        counts[given.first] * (counts[given.first] - 1) / 2,
        counts[given.first] * counts[given.second],
    )
    each = given.together / pairs[:, None]
    each[each < FLOOR] = 0.0
    lookup = np.full((size, size), -1)
    used = np.flatnonzero(each.any(axis=1))
    lookup[given.first[used], given.second[used]] = used
    lookup[given.second[used], given.first[used]] = used
    members, fractions = spread(jobs, kinds, given.alone / counts[:, None], lookup, each)
    return members, fractions


def _facing(left: Floats, right: Floats, start: float, span: float) -> tuple[Ints, Ints, Floats]:
    """Return which interval of ``left`` at t faces which of ``right`` at t + start, and how long.

    The intervals of each, of these lengths, lie end to end on [0, 1]; t runs over [0, span].
    """
    a, b = np.cumsum(left)[:-1], np.cumsum(right)[:-1] - start
    cuts = np.unique(np.concatenate([a[a < span], b[(b > 0) & (b < span)], [0.0, span]]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    return np.searchsorted(a, middle), np.searchsorted(b, middle), np.diff(cuts)


def spread_thinly(jobs: Ints, kinds: Ints, parts: Floats, given: KindShares) -> tuple[Ints, Floats]:
    """Return few rows in which each job has its part of the shares of its kind.

    The jobs of two kinds are laid along two circles of length one, each with an arc of the length
    of its part; those that face each other make the pairs. A kind paired with itself faces itself
    half way round. There are at most as many pairs as jobs of both kinds. The parts of a kind add
    up to one, and none exceeds one half in a kind that is paired with itself.
    """
    order = np.argsort(kinds, kind="stable")
    ends = np.searchsorted(kinds[order], np.arange(len(given.alone) + 1))
    members = [np.stack([jobs, np.full(len(jobs), -1)], axis=1)]
    fractions = [given.alone[kinds] * parts[:, None]]
    for a, b, together in zip(given.first, given.second, given.together, strict=True):
        if together.max() < FLOOR:
            continue
        left, right = order[ends[a] : ends[a + 1]], order[ends[b] : ends[b + 1]]
        if a == b:
            i, j, length = _facing(parts[left], parts[left], 0.5, 0.5)
            length = 2 * length
        else:
            i, j, length = _facing(parts[left], parts[right], 0.0, 1.0)
        kept = (length > 1e-9) & (left[i] != right[j])
        members.append(np.stack([jobs[left[i[kept]]], jobs[right[j[kept]]]], axis=1))
        fractions.append(length[kept, None] * together)
    all_members, all_fractions = np.concatenate(members), np.concatenate(fractions)
    all_members = np.where(all_members[:, 1:] < 0, all_members, np.sort(all_members, axis=1))
    return all_members, np.where(all_fractions < FLOOR, 0.0, all_fractions)
