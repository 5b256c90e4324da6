"""The largest level of max-min programmes, by the solver asked for; water filling over levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repro.optimise.centre import Centre, Crowd, central_level
from repro.optimise.ecos import ecos_level
from repro.optimise.vertex import vertex_centre, vertex_level

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
#: Relative slack given to floors: one that is just met would leave no interior.
ROOM = 1e-7
#: Gains of normalised throughput below this are rounding errors.
LEAST = 1e-6
Backend = Literal["centre", "highs", "ecos"]
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
    backend : {"centre", "highs", "ecos"}
        The analytic centre of the best shares; the best with the largest sum of values, which also
        steps in where the others do not converge; or those of Gavel's own solver.

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
    if backend == "ecos":
        answer = ecos_level(crowd, scale, floor)
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
    steady: bool = False,
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
    backend : {"centre", "highs", "ecos"}
        As for `level_shares`.
    steady : bool
        Rows keep their weight until they are fixed. Those that end with the whole time on their
        best GPU type are then found by bisection instead of one by one.

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

    >>> from repro.optimise.centre import Crowd
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
        if steady and water_filling == "exact" and not fixed.all():
            shares, reached, fixed = _full_time(crowd, weigh(fixed), shares, reached, fixed)
    return shares


def _full_time(
    crowd: Crowd, weight: Array, shares: Array, reached: Array, fixed: Flags
) -> tuple[Array, Array, Flags]:
    """Let rows rise together as long as only those stop that have all the time of their best GPUs.

    Parameters
    ----------
    crowd, weight
        Rows, and what each gains of a unit of level.
    shares, reached, fixed
        State of the filling.

    Returns
    -------
    shares, reached, fixed
        The state at the last stop of that sort.
    """
    rises = weight > 0
    stops = np.where(rises, (crowd.best - reached) / np.where(rises, weight, 1.0), 0.0)
    levels = np.unique(stops[rises])
    low, high = -1, len(levels) - 1
    while low < high:
        middle = (low + high + 1) // 2
        wanted = reached + weight * np.minimum(stops, levels[middle])
        answer = central_level(crowd, wanted)
        if answer is None or answer.level < 1.0 - ROOM:
            high = middle - 1
            continue
        low, shares = middle, answer.shares
    if low >= 0:
        reached = np.minimum(
            reached + weight * np.minimum(stops, levels[low]), (crowd.worth * shares).sum(axis=1)
        )
        fixed = fixed | (rises & (stops <= levels[low]))
    return shares, reached, fixed


def equal_share(speeds: Array, gpus: Array) -> Array:
    """Return the speed of a job that spends on each GPU type the type's share of all GPUs.

    Parameters
    ----------
    speeds : ndarray, shape (..., GPU types)
        Steps per second.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.

    Examples
    --------
    >>> equal_share(np.array([40.0, 10.0]), np.array([1.0, 1.0])).item()
    25.0
    """
    share: Array = speeds @ gpus / gpus.sum()
    return share


def normalised(
    speeds: Array, counts: Any, widths: Any, gpus: Array, name: Callable[[int], str]
) -> Crowd:
    """Return jobs whose values are throughputs normalised by their equal share.

    Parameters
    ----------
    speeds : ndarray, shape (rows, GPU types)
        Steps per second.
    counts, widths : ndarray, shape (rows,)
        Jobs of each row, GPUs of each job.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.
    name : callable
        Row number to the words that name its jobs in messages.

    Examples
    --------
    >>> crowd = normalised(np.array([[40.0, 10.0]]), np.ones(1), np.ones(1), np.ones(2), str)
    >>> crowd.worth.tolist()
    [[1.6, 0.4]]
    """
    return Crowd(speeds / equal_share(speeds, gpus)[:, None], counts, widths, gpus, name)
