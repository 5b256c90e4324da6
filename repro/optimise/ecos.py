"""Shares of GPU types by ECOS, the solver of Gavel's public simulator (extra ``ecos``).

Of many optima ECOS returns where its own path happens to end. The programmes are written as the
simulator hands them over: a row per job, in order of submission, equal jobs not collapsed; of the
unknowns, the shares come type by type, those of a type job by job.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from repro.errors import ParamError
from repro.optimise.centre import Centre, Crowd
from repro.optimise.counted import solves

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: Rows and values of the entries of some unknowns, each of shape (unknowns, entries of each).
Columns = tuple[Ints, Array]

#: Overshoot that the simulation puts down to rounding anyway.
ROOM = 1e-7
#: ECOS's codes for an optimum, and for one of reduced accuracy.
_SOLVED = (0, 10)


@functools.cache
def is_installed() -> bool:
    """Tell whether the solver's package is there and works."""
    try:
        import ecos  # noqa: F401
    except ImportError:
        return False
    return True


@solves("LP")
def ecos_level(crowd: Crowd, scale: Array, floor: Array | None = None) -> Centre | None:
    """Return ECOS's shares with the largest z in v_k x_k >= scale_k z + floor_k.

    Parameters
    ----------
    crowd, scale, floor
        As for `repro.optimise.centre.central_level`.

    Returns
    -------
    Centre or None
        None if ECOS finds no solution.

    Raises
    ------
    ParamError
        If the package is not installed.
    """
    each = np.repeat(np.arange(len(crowd.worth)), crowd.counts.astype(int))
    jobs, kinds = len(each), crowd.worth.shape[1]
    promised = floor is not None
    floor = np.zeros(len(scale)) if floor is None else floor
    led = (scale[each] > 0) & (floor[each] > -np.inf)
    bound, least = each[led], np.where(led, scale[each], 1.0)
    values, parts, heights = _shares_of(crowd, each)
    matrix = _level_matrix(jobs, kinds, promised)
    matrix.data = np.empty(matrix.nnz)
    matrix.data[:jobs] = led
    entries = matrix.data[jobs:].reshape(jobs * kinds, 4 + promised)
    # a job without a scale has an empty row, which holds whatever z is
    entries[:, 0] = np.where(led, -values / least, 0.0).ravel()
    entries[:, 1:4] = parts
    tops = np.concatenate([np.where(led, -floor[each] / least, 1.0), heights])
    if promised:
        # the simulator writes the floors down once more by themselves
        held = floor[each] > -np.inf
        entries[:, 4] = np.where(held, -values, 0.0).ravel()
        tops = np.append(tops, np.where(held, -floor[each], 1.0))
    cost = np.zeros(matrix.shape[1])
    cost[0] = -1.0
    answer = _solve(cost, matrix, tops)
    if answer is None:
        return None
    first = np.searchsorted(each, np.arange(len(crowd.worth)))
    shares = _by_job(answer["x"][1:], crowd, each)[first]
    z = float(answer["x"][0])
    value = np.maximum((crowd.worth * shares).sum(axis=1), 1e-300)
    slack, price = np.zeros(len(scale)), np.zeros(len(scale))
    slack[bound] = answer["s"][: len(each)][led] / value[bound]
    price[bound] = answer["z"][: len(each)][led] * value[bound] / max(abs(z), 1e-300)
    return Centre(shares, z, slack, price)


def ecos_point(crowd: Crowd, floor: Array) -> Array | None:
    """Return ECOS's shares of all that give every job at least its floor; None if it finds none.

    An answer of reduced accuracy counts as none, as in the simulator.

    Parameters
    ----------
    crowd, floor
        As for `repro.optimise.centre.central_point`, with one job per row.
    """
    each = np.arange(len(crowd.worth))
    values, parts, heights = _shares_of(crowd, each)
    rows = _rows(*crowd.worth.shape)
    last = len(heights) + np.tile(each, crowd.worth.shape[1])
    entries = (np.column_stack([rows, last]), np.column_stack([parts, -values.ravel()]))
    tops = np.append(heights, -floor)
    answer = _solve(np.zeros(len(rows)), _assembled([entries], len(tops)), tops)
    if answer is None or answer["info"]["exitFlag"]:
        return None
    return _by_job(answer["x"], crowd, each)


@solves("convex")
def ecos_ratio(crowd: Crowd, left: Array, due: Array, spent: Array) -> Centre | None:
    """Return ECOS's shares with the least ratio max_k (spent_k + left_k / u_k) / due_k.

    1 / u_k is an unknown q_k of its own, with u_k q_k >= 1 as a second-order cone.

    Parameters
    ----------
    crowd, left, due, spent
        As for `repro.optimise.centre.central_ratio`, with one job per row.

    Returns
    -------
    Centre or None
        Its level is minus the ratio; None if ECOS finds no solution.
    """
    jobs = len(crowd.worth)
    each = np.arange(jobs)
    values, parts, heights = _shares_of(crowd, each)
    rows = jobs + _rows(*crowd.worth.shape)
    # |(u - q, 2)| <= u + q
    cone = jobs + len(heights) + 3 * each
    mine, speed = np.tile(cone, crowd.worth.shape[1]), -values.ravel()
    level = (each[None, :], np.full((1, jobs), -1.0))
    one, zero = np.ones(jobs), np.zeros(len(mine))
    shares = (
        np.column_stack([rows, mine, mine + 1, mine + 2]),
        np.column_stack([parts, speed, speed, zero]),
    )
    inverse = (
        np.column_stack([each, cone, cone + 1, cone + 2]),
        np.column_stack([left / due, -one, one, zero[:jobs]]),
    )
    cost = np.zeros(1 + len(rows) + jobs)
    cost[0] = 1.0
    tops = np.concatenate([-spent / due, heights, np.tile([0.0, 0.0, 2.0], jobs)])
    matrix = _assembled([level, shares, inverse], len(tops))
    answer = _solve(cost, matrix, tops, cones=jobs)
    if answer is None:
        return None
    nothing = np.zeros(jobs)
    found = _by_job(answer["x"][1 : 1 + len(rows)], crowd, each)
    return Centre(found, -float(answer["x"][0]), nothing, nothing)


def worth_as_written(speeds: Array, widths: Array, weights: Array, gpus: Array) -> Array:
    """Return sf_i T_ij / (w_i thr_i(X^equal)) in the simulator's order of operations.

    The last bit of these values can decide who runs, and with it 0.1 % of average JCT.

    Parameters
    ----------
    speeds : ndarray, shape (jobs, GPU types)
        Steps per second.
    widths, weights : ndarray, shape (jobs,)
        GPUs of each job, priority weight.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.
    """
    even = gpus / len(speeds)
    equal = (speeds * (even / even.sum())).sum(axis=1)
    scaled: Array = speeds * ((1.0 / weights) * (1.0 / equal))[:, None] * widths[:, None]
    return scaled


def _shares_of(crowd: Crowd, each: Ints) -> tuple[Array, Array, Array]:
    """Return values by type and job, and what keeps shares within time and GPUs.

    Parameters
    ----------
    crowd : Crowd
        The jobs.
    each : ndarray, shape (jobs,)
        Row of each job.

    Returns
    -------
    values : ndarray, shape (GPU types, jobs)
        Value of all the time on a type.
    parts : ndarray, shape (GPU types * jobs, 3)
        Entries of each share in its `_rows`.
    heights : ndarray
        Limits of these rows.
    """
    jobs, kinds = len(each), crowd.worth.shape[1]
    values = np.where(crowd.usable, crowd.worth, 0.0)[each].T
    size = jobs * kinds
    parts = np.ones((size, 3))
    parts[:, 0] = -1.0
    parts[:, 1].reshape(kinds, jobs)[:] = crowd.widths[each]
    heights = np.ones(size + kinds + jobs)
    heights[:size] = 0.0
    heights[size : size + kinds] = crowd.gpus
    return values, parts, heights


@functools.lru_cache(maxsize=1024)
def _rows(jobs: int, kinds: int) -> Ints:
    """Return the rows of each share: its own, that of its GPU type, that of its job."""
    size = jobs * kinds
    place, kind = np.arange(size), np.repeat(np.arange(kinds), jobs)
    return np.column_stack([place, size + kind, size + kinds + np.tile(np.arange(jobs), kinds)])


def _by_job(found: Array, crowd: Crowd, each: Ints) -> Array:
    """Return shares by job and type, none where the job cannot run."""
    shares = np.clip(found.reshape(crowd.worth.shape[1], -1).T, 0.0, 1.0)
    shares = np.where(crowd.usable[each], shares, 0.0)
    # an answer of reduced accuracy may promise more time or GPUs than there are
    used = (crowd.widths[each] @ shares / np.maximum(crowd.gpus, 1e-300)).max()
    worst = max(float(shares.sum(axis=1).max()), float(used))
    return shares / worst if worst > 1.0 + ROOM else shares


def _assembled(columns: list[Columns], height: int) -> Any:
    """Return a sparse matrix of columns, each with its zeros."""
    from scipy.sparse import csc_matrix

    entries = np.repeat([rows.shape[1] for rows, _ in columns], [len(rows) for rows, _ in columns])
    ends = np.append(0, np.cumsum(entries))
    rows = np.concatenate([rows.ravel() for rows, _ in columns])
    parts = np.concatenate([parts.ravel() for _, parts in columns])
    return csc_matrix((parts, rows, ends), shape=(height, len(ends) - 1))


@functools.lru_cache(maxsize=1024)
def _level_matrix(jobs: int, kinds: int, promised: bool) -> Any:
    """Return the matrix of `ecos_level`, all ones: the level, then shares type by type."""
    each = np.tile(np.arange(jobs), kinds)
    height = 2 * jobs + jobs * kinds + kinds
    rows = np.column_stack([each, jobs + _rows(jobs, kinds)] + [height + each] * promised)
    level = np.arange(jobs)[None, :]
    columns = [(level, np.ones(level.shape)), (rows, np.ones(rows.shape))]
    return _assembled(columns, height + jobs * promised)


def _solve(cost: Array, matrix: Any, heights: Array, cones: int = 0) -> Any:
    """Minimise cost x with heights - G x in the cones, the last ones of second order."""
    if not is_installed():
        raise ParamError(
            "lp_backend='ecos' needs the package ecos, which is not installed; "
            "run pip install ecos, or use lp_backend=centre"
        )
    import ecos

    if not cones and not matrix.data.all():
        # as in the simulator: zeros change the order of elimination, and with it the last bits
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    dims = {"l": len(heights) - 3 * cones, "q": [3] * cones, "e": 0}
    answer = ecos.solve(cost, matrix, heights, dims, verbose=False)
    return answer if answer["info"]["exitFlag"] in _SOLVED else None
