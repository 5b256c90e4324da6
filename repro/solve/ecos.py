"""Shares of GPU types by ECOS, the solver of Gavel's public simulator (extra ``ecos``)."""

# Of many optima ECOS returns where its own path happens to end. The programmes are written as the
# simulator hands them over: a row per job, in order of submission, equal jobs not collapsed; of the
# unknowns, the shares come type by type, those of a type job by job.

import functools
from typing import Any

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.solve.counted import SOLVED

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


def ecos_level(
    crowd: Any, scale: Floats, floor: Floats | None = None
) -> tuple[Floats, float, Floats, Floats] | None:
    """Return ECOS's answer to `max_min.central_level` about a `max_min.Crowd`; None if none."""
    SOLVED["LP"] += 1
    kind = np.repeat(np.arange(len(crowd.value)), crowd.counts.astype(int))
    least = np.zeros(len(kind)) if floor is None else floor[kind]
    held = least > -np.inf
    led = (scale[kind] > 0) & held
    unit = np.where(led, scale[kind], 1.0)
    parts, heights, values = _shares(crowd, kind)
    # a job without a scale has an empty row, which holds whatever z is
    entries = [np.where(led, -values / unit, 0.0).ravel(), parts]
    tops = [np.where(led, -least / unit, 1.0), heights]
    if floor is not None:
        # the simulator writes the floors down once more by themselves
        entries.append(np.where(held, -values, 0.0).ravel())
        tops.append(np.where(held, -least, 1.0))
    matrix = _level_matrix(len(kind), len(values), floor is not None)
    answer = _solve(
        -1.0, matrix, [led.astype(float), np.column_stack(entries)], np.concatenate(tops)
    )
    if answer is None:
        return None
    shares = _by_job(answer["x"][1:], crowd, kind)[np.searchsorted(kind, np.arange(len(scale)))]
    z = float(answer["x"][0])
    value = np.maximum((crowd.value * shares).sum(axis=1), 1e-300)
    slack = np.zeros(len(scale))
    price = np.zeros(len(scale))
    bound = kind[led]
    slack[bound] = answer["s"][: len(kind)][led] / value[bound]
    price[bound] = answer["z"][: len(kind)][led] * value[bound] / max(abs(z), 1e-300)
    return shares, z, slack, price


def ecos_sum(crowd: Any) -> Floats | None:
    """ECOS's shares of the highest total value, one job per row; None if it fails."""
    SOLVED["LP"] += 1
    each = np.arange(len(crowd.value))
    parts, heights, values = _shares(crowd, each)
    matrix = _matrix([_rows(*crowd.value.shape)])
    answer = _solve(-values.ravel(), matrix, [parts], heights)
    return None if answer is None else _by_job(answer["x"], crowd, each)


def ecos_point(crowd: Any, floor: Floats) -> Floats | None:
    """Return ECOS's shares, one job per row, that give each job its floor; None if it finds none.

    An answer of reduced accuracy counts as none, as in the simulator.
    """
    each = np.arange(len(crowd.value))
    parts, heights, values = _shares(crowd, each)
    last = len(heights) + np.tile(each, len(values))
    matrix = _matrix([np.column_stack([_rows(*crowd.value.shape), last])])
    entries = np.column_stack([parts, -values.ravel()])
    answer = _solve(0.0, matrix, [entries], np.append(heights, -floor))
    if answer is None or answer["info"]["exitFlag"]:
        return None
    return _by_job(answer["x"], crowd, each)


def ecos_ratio(
    crowd: Any, left: Floats, due: Floats, spent: Floats, zeros: bool = True
) -> tuple[Floats, float] | None:
    """Return ECOS's shares and ratio for `max_min.central_ratio`, one job per row; None if none.

    1 / u_k is an unknown q_k of its own, with u_k q_k >= 1 as a second-order cone; ``zeros`` hands
    over the entries of the matrix that are zero, too.
    """
    SOLVED["convex"] += 1
    jobs = len(crowd.value)
    each = np.arange(jobs)
    one = np.ones(jobs)
    zero = np.zeros(jobs)
    parts, heights, values = _shares(crowd, each)
    # |(u - q, 2)| <= u + q
    cone = jobs + len(heights) + 3 * each
    speed = -values.ravel()
    mine = np.tile(cone, len(values))
    rows = jobs + _rows(*crowd.value.shape)
    shares = [rows, mine, mine + 1, mine + 2]
    inverses = [each, cone, cone + 1, cone + 2]
    matrix = _matrix([each[None], np.column_stack(shares), np.column_stack(inverses)])
    entries = [
        -one,
        np.column_stack([parts, speed, speed, 0.0 * speed]),
        np.column_stack([left / due, -one, one, zero]),
    ]
    tops = np.concatenate([-spent / due, heights, np.tile([0.0, 0.0, 2.0], jobs)])
    answer = _solve(1.0, matrix, entries, tops, cones=jobs, zeros=zeros)
    if answer is None:
        return None
    found = _by_job(answer["x"][1 : 1 + len(rows)], crowd, each)
    return found, float(answer["x"][0])


def worth_as_written(speeds: Floats, widths: Floats, weights: Floats, gpus: Floats) -> Floats:
    """Return sf_i T_ij / (w_i thr_i(X^equal)), shape (jobs, types), rounded as in the simulator.

    The last bit of these values can decide who runs, and with it 0.1 % of average JCT.
    """
    even = gpus / len(speeds)
    equal = (speeds * (even / even.sum())).sum(axis=1)
    scaled: Floats = speeds * ((1.0 / weights) * (1.0 / equal))[:, None] * widths[:, None]
    return scaled


def _shares(crowd: Any, kind: Ints) -> tuple[Floats, Floats, Floats]:
    """Return entries of each share in its `_rows`, limits of these, and values (types, jobs).

    ``kind`` is the row of the crowd of each job.
    """
    jobs = len(kind)
    types = crowd.value.shape[1]
    size = jobs * types
    parts = np.ones((size, 3))
    heights = np.ones(size + types + jobs)
    parts[:, 0] = -1.0
    parts[:, 1] = np.tile(crowd.widths[kind], types)
    heights[:size] = 0.0
    heights[size : size + types] = crowd.gpus
    return parts, heights, crowd.usable_value[kind].T


@functools.lru_cache(maxsize=1024)
def _rows(jobs: int, types: int) -> Ints:
    """Return the rows of each share: its own (share >= 0), that of its GPU type, of its job."""
    size = jobs * types
    of_type = np.repeat(np.arange(types), jobs)
    of_job = np.tile(np.arange(jobs), types)
    return np.column_stack([np.arange(size), size + of_type, size + types + of_job])


@functools.lru_cache(maxsize=1024)
def _level_matrix(jobs: int, types: int, floors: bool) -> Any:
    """Return the places in the matrix of `ecos_level`: z, then the shares type by type."""
    each = np.arange(jobs)
    of_job = np.tile(np.arange(jobs), types)
    last = [2 * jobs + jobs * types + types + of_job] * floors
    return _matrix([each[None], np.column_stack([of_job, jobs + _rows(jobs, types), *last])])


def _matrix(columns: list[Ints]) -> Any:
    """Return a sparse matrix of ones, from the rows of some unknowns after the other."""
    from scipy.sparse import csc_matrix

    ends = np.cumsum(np.repeat([one.shape[1] for one in columns], [len(one) for one in columns]))
    rows = np.concatenate([one.ravel() for one in columns])
    places = (np.ones(len(rows)), rows, np.append(0, ends))
    return csc_matrix(places, shape=(int(rows.max()) + 1, len(ends)))


def _by_job(found: Floats, crowd: Any, each: Ints) -> Floats:
    """Return shares by job and type, none where the job cannot run."""
    shares = np.clip(found.reshape(crowd.value.shape[1], -1).T, 0.0, 1.0)
    shares = np.where(crowd.usable[each], shares, 0.0)
    # an answer of reduced accuracy may promise more time or GPUs than there are
    used = (crowd.widths[each] @ shares / np.maximum(crowd.gpus, 1e-300)).max()
    worst = max(float(shares.sum(axis=1).max()), float(used))
    return shares / worst if worst > 1.0 + ROOM else shares


def _solve(
    goal: float | Floats,
    matrix: Any,
    entries: list[Floats],
    heights: Floats,
    cones: int = 0,
    zeros: bool = False,
) -> Any:
    """Minimise ``goal`` times the unknowns, heights - G x in the cones; None if it fails.

    A number is the coefficient of the first unknown; the others have none. ``entries`` are those of
    G at the places of ``matrix``, column by column; the last of ``heights`` are those of the
    second-order ``cones``.
    """
    if not is_installed():
        raise ParamError(
            "lp_backend='ecos' needs the package ecos, which is not installed; "
            "run pip install ecos, or use lp_backend=centre"
        )
    import ecos

    matrix.data = np.concatenate([one.ravel() for one in entries])
    if not zeros and not matrix.data.all():
        # as in the simulator: zeros change the order of elimination, and with it the last bits
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    cost = np.zeros(matrix.shape[1])
    cost[: np.size(goal)] = goal
    dims = {"l": len(heights) - 3 * cones, "q": [3] * cones, "e": 0}
    answer = ecos.solve(cost, matrix, heights, dims, verbose=False)
    return answer if answer["info"]["exitFlag"] in _SOLVED else None
