"""Completing a matrix with gaps: two low-rank factors by alternating regularised least squares."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from repro.typing import Flags, Floats

#: Root mean square change of an entry below which the search ends.
_STOP = 1e-3
_SWEEPS = 100


def complete(
    values: Floats,
    known: Flags,
    *,
    rank: int = 10,
    penalty: float = 1e-2,
    seed: int = 0,
) -> Floats:
    """Return the matrix with its gaps filled by a product of two factors; known entries stay.

    The factors have ``rank`` columns, start at random, and their squares weigh ``penalty`` in the
    fit (Salakhutdinov and Mnih, NIPS 2007; Gavel, OSDI 2020, uses rank 10 and penalty 0.01).
    """
    from repro.estimate._ridge import alternate

    left, right = _start(values.shape[0], values.shape[1], rank, seed)
    given = np.where(known, values, 0.0)
    gaps = np.ascontiguousarray(known, dtype=np.bool_)
    product = alternate(given, gaps, left, right, penalty, _STOP, _SWEEPS)
    return np.where(known, values, product)


@lru_cache(maxsize=16)
def _start(rows: int, columns: int, rank: int, seed: int) -> tuple[Floats, Floats]:
    """Return the factors the search starts from, which it leaves as they are."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, rank)), rng.standard_normal((columns, rank))
