"""Compiled loops over the rows of an allocation matrix: checks, speeds, deficits, newcomers."""

from __future__ import annotations

from typing import Any

import numpy as np

from repro.compiled import njit


@njit()
def trim(members: Any, x: Any, widths: Any, gpus: Any, tolerance: float) -> tuple[bool, Any]:
    """Tell whether shares are possible, and return them without rounding errors.

    Parameters
    ----------
    members : ndarray, shape (rows, 2)
        Jobs of each row, -1 for none.
    x : ndarray, shape (rows, GPU types)
        Shares of time.
    widths : ndarray, shape (jobs,)
        GPUs of each job.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.
    tolerance : float
        Relative overshoot that is a rounding error.
    """
    count, kinds = x.shape
    used, possible = np.zeros(kinds), True
    first, last = len(widths), -1
    for a in range(count):
        for job in members[a]:
            if job >= 0:
                first, last = min(first, job), max(last, job)
    spent = np.zeros(max(0, last - first + 1))
    for a in range(count):
        time = 0.0
        for j in range(kinds):
            possible &= x[a, j] >= -tolerance
            time += x[a, j]
            used[j] += widths[members[a, 0]] * x[a, j]
        for job in members[a]:
            if job >= 0:
                spent[job - first] += time
                possible &= spent[job - first] <= 1.0 + tolerance
                possible &= widths[job] == widths[members[a, 0]]
    trimmed = np.empty((count, kinds))
    for j in range(kinds):
        possible &= used[j] <= gpus[j] * (1.0 + tolerance)
        factor = min(1.0, gpus[j] / max(used[j], 1e-300))
        for a in range(count):
            trimmed[a, j] = max(x[a, j], 0.0) * factor
    return possible, trimmed


@njit()
def speeds(members: Any, codes: Any, known: Any, table: Any) -> tuple[bool, Any]:
    """Tell whether the speeds of all rows are known, and return them.

    Parameters
    ----------
    members : ndarray, shape (rows, 2)
        Jobs of each row, -1 for none.
    codes : ndarray, shape (jobs,)
        Number of the kind of each job.
    known : ndarray of bool, shape (kinds of jobs, kinds of jobs + 1)
        By kind of the one, and of the other plus 1, 0 for none: which speeds are known.
    table : ndarray, shape (kinds of jobs, kinds of jobs + 1, 2, GPU types)
        Those speeds.
    """
    kinds = table.shape[3]
    found = np.empty((len(members), 2, kinds))
    for a in range(len(members)):
        one, two = codes[members[a, 0]], 0
        if members[a, 1] >= 0:
            two = codes[members[a, 1]] + 1
        if not known[one, two]:
            return False, found
        for member in range(2):
            for j in range(kinds):
                found[a, member, j] = table[one, two, member, j]
    return True, found


@njit()
def able(speeds: Any) -> Any:
    """Return the GPU types on which all members of each row can run."""
    found = np.empty((len(speeds), speeds.shape[2]), dtype=np.bool_)
    for a in range(len(speeds)):
        for j in range(speeds.shape[2]):
            found[a, j] = speeds[a, 0, j] > 0.0 and speeds[a, 1, j] > 0.0
    return found


@njit()
def leave(members: Any, job: int, alive: Any, able: Any) -> None:
    """Mark the rows of a job that has finished."""
    for a in range(len(members)):
        if members[a, 0] == job or members[a, 1] == job:
            alive[a] = False
            able[a, :] = False


@njit()
def join(
    members: Any, x: Any, time: Any, owed: Any, speeds: Any, able: Any, alive: Any, allocated: Any,
    rows: Any, paces: Any, alone: Any, prior: float,
) -> Any:  # fmt: skip
    """Return the attributes of `repro.sim.rounds.ledger.Ledger` with rows added that have no share.

    Parameters
    ----------
    members, x, time, owed, speeds, able, alive, allocated : ndarray
        Those attributes.
    rows, paces : ndarray
        More of ``members`` and ``speeds``.
    alone : ndarray, shape (jobs, GPU types)
        Deficits of jobs alone (s).
    prior : float
        Time every row is taken to have received (s).
    """
    old, count, kinds = len(members), len(members) + len(rows), x.shape[1]
    new_members, new_speeds = np.empty((count, 2), members.dtype), np.empty((count, 2, kinds))
    new_x, new_owed = np.zeros((count, kinds)), np.zeros((count, kinds))
    new_time, new_able = np.empty((count, kinds)), np.empty((count, kinds), np.bool_)
    new_alive, new_allocated = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    for a in range(old):
        new_alive[a], new_allocated[a] = alive[a], allocated[a]
        new_members[a, 0], new_members[a, 1] = members[a, 0], members[a, 1]
        for j in range(kinds):
            new_x[a, j], new_time[a, j], new_owed[a, j] = x[a, j], time[a, j], owed[a, j]
            new_able[a, j] = able[a, j]
            new_speeds[a, 0, j], new_speeds[a, 1, j] = speeds[a, 0, j], speeds[a, 1, j]
    for n in range(len(rows)):
        a = old + n
        new_members[a, 0], new_members[a, 1] = rows[n, 0], rows[n, 1]
        for j in range(kinds):
            new_time[a, j] = prior
            if rows[n, 1] < 0:
                new_owed[a, j] = alone[rows[n, 0], j]
            new_able[a, j] = paces[n, 0, j] > 0.0 and paces[n, 1, j] > 0.0
            new_speeds[a, 0, j], new_speeds[a, 1, j] = paces[n, 0, j], paces[n, 1, j]
    return (
        new_members, new_x, new_time, new_owed, new_speeds, new_able, new_alive, new_allocated
    )  # fmt: skip


@njit()
def settle(
    members: Any, x: Any, time: Any, owed: Any, prior: float, elapsed: float, alone: Any
) -> Any:  # fmt: skip
    """Write what jobs alone are owed to ``alone``; return keys of pairs, ascending, and their due.

    Parameters
    ----------
    members, x, time, owed : ndarray
        As the attributes of `repro.sim.rounds.ledger.Ledger`.
    prior : float
        Time every row was taken to have received (s).
    elapsed : float
        Seconds since X was computed.
    alone : ndarray, shape (jobs, GPU types)
        Deficits of jobs alone (s).
    """
    count, kinds = x.shape
    keys, due = np.empty(count, dtype=np.int64), np.empty((count, kinds))
    k, ascending = 0, True
    for a in range(count):
        one, two = members[a, 0], members[a, 1]
        for j in range(kinds):
            value = owed[a, j] + x[a, j] * elapsed - (time[a, j] - prior)
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
    """Return what rows are owed: jobs alone and pairs, of which new ones are owed ``prior``.

    Parameters
    ----------
    members : ndarray, shape (rows, 2)
        Jobs of each row; fastest in ascending order of (larger, smaller) of pairs.
    alone, keys, due : ndarray
        As for `settle`.
    known : ndarray of bool, shape (jobs,)
        Jobs that were there when X was computed before.
    prior : float
        Time every row is taken to have received (s); not so pairs, before X is computed first.
    """
    kinds = alone.shape[1]
    owed = np.zeros((len(members), kinds))
    at = 0
    for a in range(len(members)):
        one, two = members[a, 0], members[a, 1]
        if two < 0:
            for j in range(kinds):
                owed[a, j] = alone[one, j]
            continue
        if not (known[one] and known[two]):
            owed[a, :] = prior
            continue
        key = max(one, two) * len(alone) + min(one, two)
        if at > 0 and keys[at - 1] >= key:
            at = np.searchsorted(keys, key)
        while at < len(keys) and keys[at] < key:
            at += 1
        if at < len(keys) and keys[at] == key:
            for j in range(kinds):
                owed[a, j] = due[at, j]
    return owed
