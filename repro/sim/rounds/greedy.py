"""The greedy walk of the round mechanism, compiled: it runs at every round boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from repro.compiled import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@njit()
def _before(one: int, other: int, keys: Floats, place: Ints, rows: Ints) -> bool:
    """Tell whether entry ``one`` comes before ``other``."""
    for k in range(3):
        if keys[one, k] != keys[other, k]:
            return bool(keys[one, k] > keys[other, k])
    if place[one] != place[other]:
        return bool(place[one] < place[other])
    return bool(rows[one] < rows[other])


@njit()
def _sink(heap: Ints, top: int, size: int, keys: Floats, place: Ints, rows: Ints) -> None:
    entry = heap[top]
    while True:
        child = 2 * top + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], keys, place, rows):
            child += 1
        if not _before(heap[child], entry, keys, place, rows):
            break
        heap[top] = heap[child]
        top = child
    heap[top] = entry


@njit()
def ranks(x: Floats, time: Floats, total: Floats, counts_rounds: bool) -> Floats:
    """Return the priority of every (row, GPU type).

    Parameters
    ----------
    x : ndarray, shape (rows, GPU types)
        Allocation matrix.
    time : ndarray, shape (rows, GPU types)
        Time received since X was computed (s, or rounds).
    total : ndarray, shape (GPU types,)
        The same, of all rows; used if ``counts_rounds`` is false.
    counts_rounds : bool
        X over rounds received, infinite before the first; otherwise X over the row's part of
        the time of all rows.
    """
    found = np.zeros_like(x)
    for a in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[a, j] <= 0.0:
                continue
            if counts_rounds:
                found[a, j] = x[a, j] / time[a, j] if time[a, j] > 0.0 else np.inf
            else:
                part = time[a, j] / total[j] if total[j] > 0.0 else 0.0
                found[a, j] = x[a, j] / part if part > 0.0 else x[a, j] * 1e9
    return found


@njit()
def _distinct(members: Ints, taken: npt.NDArray[np.bool_]) -> int:
    """Count the jobs of all rows; ``taken`` is scratch, left as it was found, all false."""
    found = 0
    for a in range(members.shape[0]):
        for job in members[a]:
            if job >= 0 and not taken[job]:
                taken[job] = True
                found += 1
    for a in range(members.shape[0]):
        for job in members[a]:
            if job >= 0:
                taken[job] = False
    return found


@njit()
def walk(
    members: Ints,
    widths: Ints,
    able: npt.NDArray[np.bool_],
    rank: Floats,
    owed: Floats,
    x: Floats,
    capacity: Ints,
    order: Ints,
    whole_queue: bool,
    idle_ok: bool,
    taken: npt.NDArray[np.bool_],
) -> tuple[Any, Any]:
    """Choose rows and GPU types greedily by (priority, time owed, share), each job once.

    Parameters
    ----------
    members : ndarray, shape (rows, 2)
        Jobs of each row, -1 for none.
    widths : ndarray, shape (rows,)
        GPUs of each row.
    able : ndarray of bool, shape (rows, GPU types)
        Which entries may be chosen at all.
    rank, owed, x : ndarray, shape (rows, GPU types)
        Priority, deficit (s) and share.
    capacity : ndarray, shape (GPU types,)
        GPUs of each type.
    order : ndarray, shape (GPU types,)
        Types in the order in which they are filled, or in which ties between types end.
    whole_queue : bool
        One queue over all types; otherwise one after the other.
    idle_ok : bool
        Leave GPUs idle rather than give them to entries of priority 0.
    taken : ndarray of bool, shape (jobs,)
        Scratch, all false; left all false.

    Returns
    -------
    rows, kinds : ndarray
        The choice, in the order in which it was made.
    """
    count, kinds = x.shape
    free = capacity.copy()
    rows = np.empty(count, dtype=np.int64)
    types = np.empty(count, dtype=np.int64)
    most = count * kinds if whole_queue else count
    heap = np.empty(most, dtype=np.int64)
    keys = np.empty((most, 3))
    row_of = np.empty(most, dtype=np.int64)
    place = np.empty(most, dtype=np.int64)
    # once nobody is left to be chosen the rest of the queue need not be read
    waiting = _distinct(members, taken)
    chosen = 0
    # entries of priority 0 come after all others, and are mostly not needed
    steps = 1 if whole_queue else kinds
    for turn in range(steps if idle_ok else 2 * steps):
        number, positive = (turn, True) if idle_ok else (turn // 2, turn % 2 == 0)
        left = free.sum() if whole_queue else free[order[number]]
        if left <= 0 or waiting <= 0:
            continue
        size = 0
        for nth in range(kinds if whole_queue else 1):
            at = nth if whole_queue else number
            j = order[at]
            for a in range(count):
                if not able[a, j] or (rank[a, j] > 0.0) != positive:
                    continue
                if taken[members[a, 0]] or (members[a, 1] >= 0 and taken[members[a, 1]]):
                    continue
                keys[size, 0], keys[size, 1], keys[size, 2] = rank[a, j], owed[a, j], x[a, j]
                row_of[size], place[size] = a, at
                heap[size] = size
                size += 1
        for top in range(size // 2 - 1, -1, -1):
            _sink(heap, top, size, keys, place, row_of)
        while size > 0 and left > 0 and waiting > 0:
            entry = heap[0]
            size -= 1
            heap[0] = heap[size]
            _sink(heap, 0, size, keys, place, row_of)
            a, j = row_of[entry], order[place[entry]]
            one, two = members[a, 0], members[a, 1]
            if taken[one] or (two >= 0 and taken[two]) or widths[a] > free[j]:
                continue
            taken[one] = True
            waiting -= 1
            if two >= 0:
                taken[two] = True
                waiting -= 1
            free[j] -= widths[a]
            left -= widths[a]
            rows[chosen], types[chosen] = a, j
            chosen += 1
    for number in range(chosen):
        taken[members[rows[number], 0]] = False
        if members[rows[number], 1] >= 0:
            taken[members[rows[number], 1]] = False
    return rows[:chosen], types[:chosen]
