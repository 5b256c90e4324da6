"""The largest level of max-min programmes, by the solver asked for; water filling over levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from repro.policies._centre import Centre, Crowd, central_level
from repro.policies._maxmin import vertex_centre, vertex_level

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
#: Relative slack given to floors: one that is just met would leave no interior.
ROOM = 1e-7
#: Gains of normalised throughput below this are rounding errors.
LEAST = 1e-6
Backend = Literal["centre", "highs"]
Filling = Literal["exact", "published"]


def level_shares(
    crowd: Crowd, scale: Array, backend: Backend = "centre", floor: Array | None = None
) -> Centre:
    """Return shares with the largest z in v_k x_k >= scale_k z + floor_k.

    Parameters
    ----------
    crowd : Crowd
        Rows and GPUs.
    scale, floor : ndarray, shape (rows,)
        As for `central_level`.
    backend : {"centre", "highs"}
        The analytic centre of the best shares, or the best with the largest sum of values; the
        second also steps in where the first does not converge.

    Raises
    ------
    PolicyError
        If the floors cannot be met.
    """
    if floor is not None:
        floor = floor * (1.0 - ROOM)
    if backend == "centre":
        answer = central_level(crowd, scale, floor)
        if answer is not None:
            return answer
    if floor is None:
        nothing = np.zeros(len(scale))
        return Centre(*vertex_level(crowd, scale), nothing, nothing)
    return vertex_centre(crowd, scale, floor)


def fill(
    crowd: Crowd,
    weigh: Callable[[Flags], Array],
    water_filling: Filling = "exact",
    backend: Backend = "centre",
) -> Array:
    """Return shares by water filling: raise the least level, fix who cannot rise, go on.

    Parameters
    ----------
    crowd : Crowd
        Rows of normalised throughput, and GPUs.
    weigh : callable
        Flags of the rows that are fixed to the weight of every other row: what it gains of a
        unit of level, per job; 0 = it waits. Where all are 0, the filling ends.
    water_filling : {"exact", "published"}
        ``published``: every row that rose counts as fixed, as in the figures Gavel's authors
        published, where the search for bottlenecks failed.
    backend : {"centre", "highs"}
        As for `level_shares`.

    Returns
    -------
    ndarray, shape (rows, GPU types)
        Share of time of one job of each row.

    References
    ----------
    Gavel, OSDI 2020, section 4.3.

    Examples
    --------
    Two jobs can only use the first GPU; the third has one of its own.

    >>> from repro.policies._centre import Crowd
    >>> values = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> crowd = Crowd(values, np.ones(3), np.ones(3), np.ones(2))
    >>> fill(crowd, lambda fixed: np.where(fixed, 0.0, 1.0)).round(6).tolist()
    [[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]]
    """
    rows = len(crowd.worth)
    fixed, reached = np.zeros(rows, dtype=bool), np.zeros(rows)
    shares = crowd.sparse_shares()
    while not fixed.all():
        weight = weigh(fixed)
        rises = weight > 0
        if not rises.any():
            break
        # a row that waits is promised nothing
        floor = np.where(rises | (reached > 0), reached, -np.inf)
        answer = level_shares(crowd, weight, backend, floor)
        gain = weight * answer.level
        if gain.max() > LEAST:
            shares = answer.shares
            # what is promised from now on is what these shares give, rounding errors included
            value = (crowd.worth * shares).sum(axis=1)
            reached = np.where(rises, np.minimum(reached + gain, value), reached)
        stuck = rises & (answer.tight | (answer.slack < LEAST) | (water_filling == "published"))
        if not stuck.any():
            stuck = rises & (answer.slack == answer.slack[rises].min())
        fixed |= stuck
    return shares
