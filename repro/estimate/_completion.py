"""Completing a matrix with gaps: two low-rank factors by alternating regularised least squares."""

from __future__ import annotations

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
    weights = known.astype(float)
    target = np.where(known, values, 0.0)
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((values.shape[0], rank))
    right = rng.standard_normal((values.shape[1], rank))
    before = left @ right.T
    for _ in range(_SWEEPS):
        left = _fit(right, weights, target, penalty)
        right = _fit(left, weights.T, target.T, penalty)
        product = left @ right.T
        if float(np.sqrt(np.mean((product - before) ** 2))) < _STOP:
            break
        before = product
    return np.where(known, values, product)


def _fit(factor: Array, weights: Array, target: Array, penalty: float) -> Array:
    """Return the best other factor: one small ridge regression per row, all at once."""
    squares = np.einsum("rc,ci,cj->rij", weights, factor, factor)
    squares += penalty * np.eye(factor.shape[1])
    answer: Array = np.linalg.solve(squares, (target @ factor)[:, :, None])[:, :, 0]
    return answer
