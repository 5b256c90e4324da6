"""Compiled functions: columns of the programme over single jobs and pairs, rows of its answer."""

from typing import Any

import numpy as np

from repro.base.compiled import njit

#: Codes of the pairs on offer, by the names of `repro.solve.pairs.programme.programme`.
OFFERS = {"all": 0, "working": 1, "useful": 2}


def columns(
    values: Any,
    paired: Any,
    counts: Any,
    widths: Any,
    capacity: Any,
    pairs_within_kind: Any,
    offer: int,
) -> Any:
    """Names, rows, coefs, weights and blocks of a `Programme`, and rows of time and value by kind.

    The names of a column are its first kind, second kind and GPU type. The last two results have an
    entry per kind: the row of A with its time, and the row with its value. ``offer`` is a code of
    `OFFERS`.
    """
    # Kinds are sorted by width. The rows of a width are the times of its kinds, then their values.
    order = np.argsort(widths, kind="stable")
    rank = np.argsort(order)
    by_width = widths[order]
    num_narrower = np.searchsorted(by_width, widths)
    num_up_to_width = np.searchsorted(by_width, widths, side="right")
    # Above the time of a kind are two rows per narrower kind, and one per kind of its width that
    # comes before it.
    time_row = num_narrower + rank
    value_row = num_up_to_width + rank
    blocks = 2 * np.append(np.unique(num_narrower), len(widths))
    problem = values, paired, counts, widths, capacity, pairs_within_kind, offer
    return *_columns(problem, order, time_row, value_row), blocks, time_row, value_row


@njit(allocates=True, error_model="numpy")
def _columns(problem: Any, order: Any, time_row: Any, value_row: Any) -> Any:
    """Names (kinds and GPU type), rows, coefs and weights of the columns on offer."""
    values, paired, counts, widths, capacity, pairs_within_kind, offer = problem
    kinds, types = values.shape
    max_columns = types * kinds * (kinds + 3) // 2
    names = np.empty((3, max_columns), dtype=np.int64)
    first_kind = names[0]
    second_kind = names[1]
    gpu_type = names[2]
    rows = np.empty((max_columns, 5), dtype=np.int64)
    coefs = np.zeros((max_columns, 5))
    weights = np.empty(max_columns)
    k = 0
    for j in range(types):
        for a in order:
            if widths[a] > capacity[j] or not (values[a, j] > 0.0 or offer == 0):
                continue
            first_kind[k] = a
            second_kind[k] = -1
            gpu_type[k] = j
            weights[k] = counts[a]
            coefs[k, 1] = 1.0
            coefs[k, 3] = -values[a, j]
            k += 1
    num_single_columns = k
    any_pair_runs = False
    for position in range(kinds):
        a = order[position]
        for j in range(types):
            for b in order[position:]:
                if widths[a] != widths[b]:
                    break
                if a == b and not pairs_within_kind[a]:
                    continue
                value_a = paired[a, b, j]
                value_b = paired[b, a, j]
                can_run = value_a > 0.0 and value_b > 0.0
                if can_run and offer == 2:
                    can_run = value_a / values[a, j] + value_b / values[b, j] > 1.0
                any_pair_runs |= can_run
                if widths[a] > capacity[j] or not (can_run or offer == 0):
                    continue
                first_kind[k] = a
                second_kind[k] = b
                gpu_type[k] = j
                if a == b:
                    coefs[k, 0] = 2.0
                    coefs[k, 2] = -value_a - value_b
                    weights[k] = counts[a] * (counts[a] - 1.0) / 2.0
                else:
                    coefs[k, 0] = 1.0
                    coefs[k, 2] = -value_a
                    coefs[k, 1] = 1.0
                    coefs[k, 3] = -value_b
                    weights[k] = counts[a] * counts[b]
                k += 1
    # If no pair can run, no pair is on offer.
    count = k if any_pair_runs else num_single_columns
    filler_kind = 0
    for k in range(count):
        a = first_kind[k]
        b = second_kind[k]
        if b < 0:
            # A single job is the second member. The coefficients of the first member are 0, so its
            # rows do not matter. They are those of one kind for all single jobs of a width and GPU
            # type. The columns then form few ranges (`find_ranges` in repro.solve.pairs.interior).
            if k == 0 or widths[a] != widths[filler_kind]:
                filler_kind = a
            b = a
            a = filler_kind
        rows[k, 0] = time_row[a]
        rows[k, 1] = time_row[b]
        rows[k, 2] = value_row[a]
        rows[k, 3] = value_row[b]
        rows[k, 4] = 2 * kinds + gpu_type[k]
        coefs[k, 4] = widths[b]
    return names[:, :count], rows[:count], coefs[:count], weights[:count]


@njit(allocates=True)
def spread(jobs: Any, kinds: Any, job_shares: Any, pair_row: Any, pair_shares: Any) -> Any:
    """Members and shares of jobs and pairs, as in `repro.solve.pairs.programme.spread_evenly`.

    ``kinds`` has the kind of each job. ``job_shares`` are the shares of a job by kind.
    ``pair_row`` has the row of two kinds in ``pair_shares``, -1 if they have no shares.
    """
    count = len(jobs)
    types = job_shares.shape[1]
    size = count
    for j in range(count):
        for i in range(j):
            size += pair_row[kinds[i], kinds[j]] >= 0
    members = np.empty((size, 2), dtype=np.int64)
    shares = np.empty((size, types))
    k = 0
    for j in range(count):
        members[k, 0] = jobs[j]
        members[k, 1] = -1
        for c in range(types):
            shares[k, c] = job_shares[kinds[j], c]
        k += 1
        for i in range(j):
            row = pair_row[kinds[i], kinds[j]]
            if row >= 0:
                members[k, 0] = jobs[i]
                members[k, 1] = jobs[j]
                for c in range(types):
                    shares[k, c] = pair_shares[row, c]
                k += 1
    return members, shares
