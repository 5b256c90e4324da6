"""Columns of the programme over single jobs and pairs, and rows of its answer, compiled."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

#: Pairs offered, by the names of `repro.policies._pairs.programme`.
OFFERS = {"all": 0, "working": 1, "useful": 2}


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def _runs(values: Any, paired: Any, a: int, b: int, j: int, offer: int) -> bool:
    """Tell whether both of a pair get something, and with offer 2 whether that is worth it."""
    to_a, to_b = paired[a, b, j], paired[b, a, j]
    if not (to_a > 0.0 and to_b > 0.0):
        return False
    return offer < 2 or to_a / values[a, j] + to_b / values[b, j] > 1.0


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
def columns(
    values: Any, paired: Any, counts: Any, widths: Any, capacity: Any, within: Any, offer: int
) -> Any:
    """Return first, second, column, rows, coefs and weights, as `Programme` describes them.

    Parameters
    ----------
    values, paired, counts, widths, capacity, within
        As for `repro.policies._pairs.programme`.
    offer : int
        Of `OFFERS`.
    """
    types, kinds = values.shape
    most = kinds * types * (types + 3) // 2
    names = np.empty((3, most), dtype=np.int64)
    first, second, column = names[0], names[1], names[2]
    rows, coefs = np.empty((most, 5), dtype=np.int64), np.zeros((most, 5))
    weights = np.empty(most)
    k = 0
    for a in range(types):
        for j in range(kinds):
            if widths[a] > capacity[j] or not (values[a, j] > 0.0 or offer == 0):
                continue
            first[k], second[k], column[k], weights[k] = a, -1, j, counts[a]
            coefs[k, 0], coefs[k, 2] = 1.0, -values[a, j]
            k += 1
    alone, running = k, False
    for a in range(types):
        for b in range(a, types):
            if widths[a] != widths[b] or (a == b and not within[a]):
                continue
            for j in range(kinds):
                runs = _runs(values, paired, a, b, j, offer)
                running |= runs
                if widths[a] > capacity[j] or not (runs or offer == 0):
                    continue
                first[k], second[k], column[k] = a, b, j
                if a == b:
                    coefs[k, 0], coefs[k, 2] = 2.0, -paired[a, b, j] - paired[b, a, j]
                    weights[k] = counts[a] * (counts[a] - 1.0) / 2.0
                else:
                    coefs[k, 0], coefs[k, 2] = 1.0, -paired[a, b, j]
                    coefs[k, 1], coefs[k, 3] = 1.0, -paired[b, a, j]
                    weights[k] = counts[a] * counts[b]
                k += 1
    # where no pair runs, none is offered
    count = k if running else alone
    for k in range(count):
        mate = second[k] if second[k] >= 0 else first[k]
        rows[k, 0], rows[k, 1] = first[k], mate
        rows[k, 2], rows[k, 3] = types + first[k], types + mate
        rows[k, 4] = 2 * types + column[k]
        coefs[k, 4] = widths[first[k]]
    return (
        first[:count],
        second[:count],
        column[:count],
        rows[:count],
        coefs[:count],
        weights[:count],
    )


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def sort_out(
    x: Any, first: Any, second: Any, column: Any, coefs: Any, types: int, kinds: int
) -> Any:  # fmt: skip
    """Return the shares of types alone, pairs of types, and their shares, as `TypeShares` has them.

    A column that brings a member nothing was only offered; it is never carried out.
    """
    alone = np.zeros((types, kinds))
    pairs, together = np.empty((2, len(x)), dtype=np.int64), np.zeros((len(x), kinds))
    last = -1
    for k in range(len(x)):
        a, b = first[k], second[k]
        carried = coefs[k, 2] < 0.0 and (coefs[k, 3] < 0.0 or b < 0 or a == b)
        if b < 0:
            if carried:
                alone[a, column[k]] = x[k]
            continue
        # columns come sorted by pair
        if last < 0 or pairs[0, last] != a or pairs[1, last] != b:
            last += 1
            pairs[0, last], pairs[1, last] = a, b
        if carried:
            together[last, column[k]] = x[k]
    count = last + 1
    return alone, pairs[0, :count], pairs[1, :count], together[:count]


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def spread(jobs: Any, kinds: Any, alone: Any, lookup: Any, each: Any) -> Any:
    """Return a row per job and per pair of jobs with a share: each job after its earlier partners.

    Parameters
    ----------
    jobs, kinds : ndarray of int, shape (jobs,)
        Row number and type.
    alone : ndarray, shape (types, GPU types)
        Share of a job alone.
    lookup : ndarray of int, shape (types, types)
        Row of ``each`` of two types; -1 for no share.
    each : ndarray, shape (pairs, GPU types)
        Share of a pair.
    """
    count, columns = len(jobs), alone.shape[1]
    size = count
    for j in range(count):
        for i in range(j):
            size += lookup[kinds[i], kinds[j]] >= 0
    members, fractions = np.empty((size, 2), dtype=np.int64), np.empty((size, columns))
    k = 0
    for j in range(count):
        members[k, 0], members[k, 1] = jobs[j], -1
        for c in range(columns):
            fractions[k, c] = alone[kinds[j], c]
        k += 1
        for i in range(j):
            number = lookup[kinds[i], kinds[j]]
            if number >= 0:
                members[k, 0], members[k, 1] = jobs[i], jobs[j]
                for c in range(columns):
                    fractions[k, c] = each[number, c]
                k += 1
    return members, fractions
