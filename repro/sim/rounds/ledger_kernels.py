"""Compiled loops over the rows of an allocation matrix: checks, deficits of jobs and pairs.

``members`` has shape (rows, 2), -1 for none; X, time and deficits have shape (rows, GPU types).
"""

from typing import Any

import numpy as np

from repro.compiled import njit


@njit()
def trim(members: Any, x: Any, widths: Any, gpus: Any, tolerance: float) -> tuple[bool, Any]:
    """Tell whether shares are possible, and return them without rounding errors."""
    count, types = x.shape
    used, possible = np.zeros(types), True
    first, last = len(widths), -1
    for a in range(count):
        for job in members[a]:
            if job >= 0:
                first, last = min(first, job), max(last, job)
    spent = np.zeros(max(0, last - first + 1))
    for a in range(count):
        time = 0.0
        for j in range(types):
            possible &= x[a, j] >= -tolerance
            time += x[a, j]
            used[j] += widths[members[a, 0]] * x[a, j]
        for job in members[a]:
            if job >= 0:
                spent[job - first] += time
                possible &= spent[job - first] <= 1.0 + tolerance
                possible &= widths[job] == widths[members[a, 0]]
    trimmed = np.empty((count, types))
    for j in range(types):
        possible &= used[j] <= gpus[j] * (1.0 + tolerance)
        factor = min(1.0, gpus[j] / max(used[j], 1e-300))
        for a in range(count):
            trimmed[a, j] = max(x[a, j], 0.0) * factor
    return possible, trimmed


@njit()
def leave(members: Any, job: int, alive: Any, able: Any) -> None:
    """Mark the rows of a job that has finished."""
    for a in range(len(members)):
        if members[a, 0] == job or members[a, 1] == job:
            alive[a] = False
            able[a, :] = False


@njit()
def settle(
    members: Any, x: Any, time: Any, deficit: Any, prior: float, elapsed: float, alone: Any
) -> Any:  # fmt: skip
    """Write the deficits of jobs alone to ``alone``; return keys of pairs, ascending, and theirs.

    A deficit grows by X times the ``elapsed`` seconds less the time received; every row was taken
    to have received ``prior`` seconds.
    """
    count, types = x.shape
    keys, due = np.empty(count, dtype=np.int64), np.empty((count, types))
    k, ascending = 0, True
    for a in range(count):
        one, two = members[a, 0], members[a, 1]
        for j in range(types):
            value = deficit[a, j] + x[a, j] * elapsed - (time[a, j] - prior)
            if two < 0:
                alone[one, j] = value
            else:
                due[k, j] = value
        if two >= 0:
            keys[k] = max(one, two) * len(alone) + min(one, two)
            ascending &= k == 0 or keys[k - 1] < keys[k]
            k += 1
    if ascending:
        return keys[:k], due[:k]
    order = np.argsort(keys[:k])
    return keys[order], due[order]


@njit()
def deficits(members: Any, alone: Any, keys: Any, due: Any, known: Any, prior: float) -> Any:
    """Return the deficits of rows: jobs alone and pairs, from what `settle` returned.

    A pair of jobs that were not both ``known`` when X was computed before begins with ``prior``
    seconds. Fastest if pairs ascend by (larger, smaller).
    """
    types = alone.shape[1]
    found = np.zeros((len(members), types))
    at = 0
    for a in range(len(members)):
        one, two = members[a, 0], members[a, 1]
        if two < 0:
            for j in range(types):
                found[a, j] = alone[one, j]
            continue
        if not (known[one] and known[two]):
            found[a, :] = prior
            continue
        key = max(one, two) * len(alone) + min(one, two)
        if at > 0 and keys[at - 1] >= key:
            at = np.searchsorted(keys, key)
        while at < len(keys) and keys[at] < key:
            at += 1
        if at < len(keys) and keys[at] == key:
            for j in range(types):
                found[a, j] = due[at, j]
    return found


@njit()
def able(speeds: Any) -> Any:
    """Tell where both members of rows can run, given speeds of shape (rows, 2, GPU types)."""
    found = np.empty((speeds.shape[0], speeds.shape[2]), dtype=np.bool_)
    for a in range(found.shape[0]):
        for j in range(found.shape[1]):
            found[a, j] = speeds[a, 0, j] > 0.0 and speeds[a, 1, j] > 0.0
    return found
