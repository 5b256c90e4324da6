"""Columns of the programme over single jobs and pairs, and rows of its answer, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from repro.compiled import njit

#: Pairs offered, by the names of `repro.optimise.pairs.programme.programme`.
OFFERS = {"all": 0, "working": 1, "useful": 2}


@njit(error_model="numpy")
def _runs(values: Any, paired: Any, a: int, b: int, j: int, offer: int) -> bool:
    """Tell whether both of a pair get something, and with offer 2 whether that is worth it."""
    to_a, to_b = paired[a, b, j], paired[b, a, j]
    if not (to_a > 0.0 and to_b > 0.0):
        return False
    return offer < 2 or to_a / values[a, j] + to_b / values[b, j] > 1.0


@njit(error_model="numpy")
def _blocks(widths: Any) -> Any:
    """Return kinds by width, the rows of their time and value, and where each width begins."""
    kinds = len(widths)
    order = np.argsort(widths, kind="mergesort")
    time, value = np.empty(kinds, dtype=np.int64), np.empty(kinds, dtype=np.int64)
    starts = np.empty(kinds + 1, dtype=np.int64)
    count, begin = 0, 0
    while begin < kinds:
        end = begin
        while end < kinds and widths[order[end]] == widths[order[begin]]:
            end += 1
        for place in range(begin, end):
            time[order[place]], value[order[place]] = begin + place, end + place
        starts[count] = 2 * begin
        count, begin = count + 1, end
    starts[count] = 2 * kinds
    return order, time, value, starts[: count + 1]


@njit(error_model="numpy")
def columns(
    values: Any, paired: Any, counts: Any, widths: Any, capacity: Any, within: Any, offer: int
) -> Any:
    """Build the sparse columns of a `Programme` and the offsets of its rows.

    Returned are its first, second, column, rows, coefs, weights and blocks, and the rows of time
    and of value of each kind. ``offer`` is one of `OFFERS`.
    """
    kinds, types = values.shape
    order, time, value, blocks = _blocks(widths)
    most = types * kinds * (kinds + 3) // 2
    names = np.empty((3, most), dtype=np.int64)
    first, second, column = names[0], names[1], names[2]
    rows, coefs = np.empty((most, 5), dtype=np.int64), np.zeros((most, 5))
    weights = np.empty(most)
    k = 0
    for j in range(types):
        for a in order:
            if widths[a] > capacity[j] or not (values[a, j] > 0.0 or offer == 0):
                continue
            first[k], second[k], column[k], weights[k] = a, -1, j, counts[a]
            coefs[k, 1], coefs[k, 3] = 1.0, -values[a, j]
            k += 1
    alone, running = k, False
    for place in range(kinds):
        a = order[place]
        for j in range(types):
            for b in order[place:]:
                if widths[a] != widths[b]:
                    break
                if a == b and not within[a]:
                    continue
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
    lead = 0
    for k in range(count):
        a, b = first[k], second[k]
        if b < 0:
            # the first rows of a job alone have no coefficient: they only keep runs together
            lead = a if k == 0 or widths[a] != widths[lead] else lead
            a, b = lead, a
        rows[k, 0], rows[k, 1], rows[k, 2], rows[k, 3] = time[a], time[b], value[a], value[b]
        rows[k, 4] = 2 * kinds + column[k]
        coefs[k, 4] = widths[b]
    return (
        first[:count],
        second[:count],
        column[:count],
        rows[:count],
        coefs[:count],
        weights[:count],
        blocks,
        time,
        value,
    )


@njit()
def sort_out(
    x: Any, first: Any, second: Any, column: Any, coefs: Any, kinds: int, types: int
) -> Any:  # fmt: skip
    """Return shares of kinds alone, pairs of kinds, and their shares, as `KindShares` has them.

    A column that brings a member nothing was only offered; it is never carried out.
    """
    alone = np.zeros((kinds, types))
    number = np.full((kinds, kinds), -1)
    for k in range(len(x)):
        if second[k] >= 0:
            number[first[k], second[k]] = 0
    pairs = np.argwhere(number == 0)
    for n in range(len(pairs)):
        number[pairs[n, 0], pairs[n, 1]] = n
    together = np.zeros((len(pairs), types))
    for k in range(len(x)):
        a, b = first[k], second[k]
        if b < 0:
            if coefs[k, 3] < 0.0:
                alone[a, column[k]] = x[k]
        elif coefs[k, 2] < 0.0 and (coefs[k, 3] < 0.0 or a == b):
            together[number[a, b], column[k]] = x[k]
    return alone, pairs[:, 0].copy(), pairs[:, 1].copy(), together


@njit()
def spread(jobs: Any, kinds: Any, alone: Any, lookup: Any, each: Any) -> Any:
    """Return a row per job and per pair of jobs with a share: each job after its earlier partners.

    ``alone`` and ``each`` are shares of a job of a kind and of a pair; ``lookup`` holds the row of
    two kinds in ``each``, -1 for no share.
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
