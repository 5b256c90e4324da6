"""Deficits of pairs that are carried from one allocation to the next, compiled."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def settle(
    members: Any, x: Any, time: Any, owed: Any, prior: float, elapsed: float, alone: Any
) -> Any:  # fmt: skip
    """Write what jobs alone are owed to ``alone``; return keys of pairs, ascending, and their due.

    Parameters
    ----------
    members, x, time, owed : ndarray
        As the attributes of `repro.sim.received.Ledger`.
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


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
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
