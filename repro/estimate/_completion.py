"""Completing a matrix with gaps: two low-rank factors by alternating regularised least squares."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: Root mean square change of an entry below which the search ends.
_STOP = 1e-3
_SWEEPS = 100


def complete(
    values: Array,
    known: npt.NDArray[np.bool_],
    *,
    rank: int = 10,
    penalty: float = 1e-2,
    seed: int = 0,
) -> Array:
    """Return the matrix with its gaps filled by a product of two factors; known entries stay.

    Parameters
    ----------
    values : ndarray, shape (rows, columns)
        Entries; what stands in a gap does not matter.
    known : ndarray of bool, shape (rows, columns)
        Which entries were measured.
    rank : int
        Columns of each factor.
    penalty : float
        Weight of the squared factors in the fit.
    seed : int
        Seed of the factors the search starts from.

    Returns
    -------
    ndarray, shape (rows, columns)

    References
    ----------
    Salakhutdinov and Mnih, Probabilistic matrix factorization, NIPS 2007; Gavel, OSDI 2020, uses
    rank 10 and penalty 0.01.

    Examples
    --------
    >>> known = np.array([[True, True], [True, False]])
    >>> complete(np.array([[1.0, 2.0], [2.0, 0.0]]), known, rank=1, penalty=1e-6).round(1).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    # the compiler takes longer to import than one completion
    from repro.estimate._ridge import alternate

    left, right = _start(values.shape[0], values.shape[1], rank, seed)
    given = np.where(known, values, 0.0)
    gaps = np.ascontiguousarray(known, dtype=np.bool_)
    product = alternate(given, gaps, left, right, penalty, _STOP, _SWEEPS)
    return np.where(known, values, product)


@lru_cache(maxsize=16)
def _start(rows: int, columns: int, rank: int, seed: int) -> tuple[Array, Array]:
    """Return the factors the search starts from, which it leaves as they are."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, rank)), rng.standard_normal((columns, rank))
