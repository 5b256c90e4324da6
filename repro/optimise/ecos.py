"""Shares of GPU types by ECOS, the solver of Gavel's public simulator (extra ``ecos``).

Of many optima ECOS returns where its own path happens to end. The programmes are written as the
simulator hands them over: a row per job, in order of submission, equal jobs not collapsed; of the
unknowns, the shares come type by type, those of a type job by job.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from repro.errors import ParamError
from repro.optimise.centre import Centre, Crowd
from repro.optimise.counted import solves
from repro.typing import Floats, Ints

#: Rows and values of the entries of some unknowns, each of shape (unknowns, entries of each).
Columns = tuple[Ints, Floats]

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
def ecos_level(crowd: Crowd, scale: Floats, floor: Floats | None = None) -> Centre | None:
    """Return ECOS's answer to `central_level`; None if it finds none."""
    each = np.repeat(np.arange(len(crowd.value)), crowd.counts.astype(int))
    jobs, types = len(each), crowd.value.shape[1]
    promised = floor is not None
    floor = np.zeros(len(scale)) if floor is None else floor
    led = (scale[each] > 0) & (floor[each] > -np.inf)
    bound, least = each[led], np.where(led, scale[each], 1.0)
    values, parts, heights = _shares_of(crowd, each)
    matrix = _level_matrix(jobs, types, promised)
    matrix.data = np.empty(matrix.nnz)
    matrix.data[:jobs] = led
    entries = matrix.data[jobs:].reshape(jobs * types, 4 + promised)
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
    first = np.searchsorted(each, np.arange(len(crowd.value)))
    shares = _by_job(answer["x"][1:], crowd, each)[first]
    z = float(answer["x"][0])
    value = np.maximum((crowd.value * shares).sum(axis=1), 1e-300)
    slack, price = np.zeros(len(scale)), np.zeros(len(scale))
    slack[bound] = answer["s"][: len(each)][led] / value[bound]
    price[bound] = answer["z"][: len(each)][led] * value[bound] / max(abs(z), 1e-300)
    return Centre(shares, z, slack, price)


def ecos_point(crowd: Crowd, floor: Floats) -> Floats | None:
    """Return ECOS's shares, one job per row, that give each job its floor; None if it finds none.

    An answer of reduced accuracy counts as none, as in the simulator.
    """
    each = np.arange(len(crowd.value))
    values, parts, heights = _shares_of(crowd, each)
    rows = _rows(*crowd.value.shape)
    last = len(heights) + np.tile(each, crowd.value.shape[1])
    entries = (np.column_stack([rows, last]), np.column_stack([parts, -values.ravel()]))
    tops = np.append(heights, -floor)
    answer = _solve(np.zeros(len(rows)), _assembled([entries], len(tops)), tops)
    if answer is None or answer["info"]["exitFlag"]:
        return None
    return _by_job(answer["x"], crowd, each)


@solves("convex")
def ecos_ratio(crowd: Crowd, left: Floats, due: Floats, spent: Floats) -> Centre | None:
    """Return ECOS's answer to `central_ratio`, one job per row; None if it finds none.

    1 / u_k is an unknown q_k of its own, with u_k q_k >= 1 as a second-order cone.
    """
    jobs = len(crowd.value)
    each = np.arange(jobs)
    values, parts, heights = _shares_of(crowd, each)
    rows = jobs + _rows(*crowd.value.shape)
    # |(u - q, 2)| <= u + q
    cone = jobs + len(heights) + 3 * each
    mine, speed = np.tile(cone, crowd.value.shape[1]), -values.ravel()
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


def worth_as_written(speeds: Floats, widths: Floats, weights: Floats, gpus: Floats) -> Floats:
    """Return sf_i T_ij / (w_i thr_i(X^equal)), shape (jobs, types), rounded as in the simulator.

    The last bit of these values can decide who runs, and with it 0.1 % of average JCT.
    """
    even = gpus / len(speeds)
    equal = (speeds * (even / even.sum())).sum(axis=1)
    scaled: Floats = speeds * ((1.0 / weights) * (1.0 / equal))[:, None] * widths[:, None]
    return scaled


def _shares_of(crowd: Crowd, each: Ints) -> tuple[Floats, Floats, Floats]:
    """Return values, shape (types, jobs), each share's entries in its `_rows`, and their limits.

    ``each`` is the row of each job in the crowd.
    """
    jobs, types = len(each), crowd.value.shape[1]
    values = crowd.usable_value[each].T
    size = jobs * types
    parts = np.ones((size, 3))
    parts[:, 0] = -1.0
    parts[:, 1].reshape(types, jobs)[:] = crowd.widths[each]
    heights = np.ones(size + types + jobs)
    heights[:size] = 0.0
    heights[size : size + types] = crowd.gpus
    return values, parts, heights


@functools.lru_cache(maxsize=1024)
def _rows(jobs: int, types: int) -> Ints:
    """Return the rows of each share: its own, that of its GPU type, that of its job."""
    size = jobs * types
    place, of_type = np.arange(size), np.repeat(np.arange(types), jobs)
    return np.column_stack([place, size + of_type, size + types + np.tile(np.arange(jobs), types)])


def _by_job(found: Floats, crowd: Crowd, each: Ints) -> Floats:
    """Return shares by job and type, none where the job cannot run."""
    shares = np.clip(found.reshape(crowd.value.shape[1], -1).T, 0.0, 1.0)
    shares = np.where(crowd.usable[each], shares, 0.0)
    # an answer of reduced accuracy may promise more time or GPUs than there are
    used = (crowd.widths[each] @ shares / np.maximum(crowd.gpus, 1e-300)).max()
    worst = max(float(shares.sum(axis=1).max()), float(used))
    return shares / worst if worst > 1.0 + ROOM else shares


def _assembled(columns: list[Columns], height: int) -> Any:
    """Return a sparse matrix of columns that keeps their zeros."""
    from scipy.sparse import csc_matrix

    entries = np.repeat([rows.shape[1] for rows, _ in columns], [len(rows) for rows, _ in columns])
    ends = np.append(0, np.cumsum(entries))
    rows = np.concatenate([rows.ravel() for rows, _ in columns])
    parts = np.concatenate([parts.ravel() for _, parts in columns])
    return csc_matrix((parts, rows, ends), shape=(height, len(ends) - 1))


@functools.lru_cache(maxsize=1024)
def _level_matrix(jobs: int, types: int, promised: bool) -> Any:
    """Return the pattern of `ecos_level`'s matrix: a column for the level, one per type and job."""
    each = np.tile(np.arange(jobs), types)
    height = 2 * jobs + jobs * types + types
    rows = np.column_stack([each, jobs + _rows(jobs, types)] + [height + each] * promised)
    level = np.arange(jobs)[None, :]
    columns = [(level, np.ones(level.shape)), (rows, np.ones(rows.shape))]
    return _assembled(columns, height + jobs * promised)


def _solve(cost: Floats, matrix: Any, heights: Floats, cones: int = 0) -> Any:
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
