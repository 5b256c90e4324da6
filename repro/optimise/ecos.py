"""Shares of GPU types by ECOS, the solver of Gavel's public simulator (extra ``ecos``)."""

# Of many optima ECOS returns where its own path happens to end. The programmes are written as the
# simulator hands them over: a row per job, in order of submission, equal jobs not collapsed; of the
# unknowns, the shares come type by type, those of a type job by job.

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from repro.errors import ParamError
from repro.optimise.centre import Centre, Crowd
from repro.optimise.counted import solves
from repro.typing import Floats, Ints

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
    kind = np.repeat(np.arange(len(crowd.value)), crowd.counts.astype(int))
    each = np.arange(len(kind))
    least = np.zeros(len(kind)) if floor is None else floor[kind]
    held = least > -np.inf
    led = (scale[kind] > 0) & held
    unit = np.where(led, scale[kind], 1.0)
    rows, parts, heights, values = _shares(crowd, kind)
    row = np.tile(each, crowd.value.shape[1])
    # a job without a scale has an empty row, which holds whatever z is
    places, entries = [row, len(each) + rows], [np.where(led, -values / unit, 0.0).ravel(), parts]
    tops = [np.where(led, -least / unit, 1.0), heights]
    if floor is not None:
        # the simulator writes the floors down once more by themselves
        places.append(len(each) + len(heights) + row)
        entries.append(np.where(held, -values, 0.0).ravel())
        tops.append(np.where(held, -least, 1.0))
    answer = _solve(-1.0, [([each[None]], [led[None]]), (places, entries)], np.concatenate(tops))
    if answer is None:
        return None
    shares = _by_job(answer["x"][1:], crowd, kind)[np.searchsorted(kind, np.arange(len(scale)))]
    z = float(answer["x"][0])
    value = np.maximum((crowd.value * shares).sum(axis=1), 1e-300)
    slack, price, bound = np.zeros(len(scale)), np.zeros(len(scale)), kind[led]
    slack[bound] = answer["s"][: len(kind)][led] / value[bound]
    price[bound] = answer["z"][: len(kind)][led] * value[bound] / max(abs(z), 1e-300)
    return Centre(shares, z, slack, price)


def ecos_point(crowd: Crowd, floor: Floats) -> Floats | None:
    """Return ECOS's shares, one job per row, that give each job its floor; None if it finds none.

    An answer of reduced accuracy counts as none, as in the simulator.
    """
    each = np.arange(len(crowd.value))
    rows, parts, heights, values = _shares(crowd, each)
    last = len(heights) + np.tile(each, crowd.value.shape[1])
    entries = ([rows, last], [parts, -values.ravel()])
    answer = _solve(0.0, [entries], np.append(heights, -floor))
    if answer is None or answer["info"]["exitFlag"]:
        return None
    return _by_job(answer["x"], crowd, each)


@solves("convex")
def ecos_ratio(crowd: Crowd, left: Floats, due: Floats, spent: Floats) -> Centre | None:
    """Return ECOS's answer to `central_ratio`, one job per row; None if it finds none.

    1 / u_k is an unknown q_k of its own, with u_k q_k >= 1 as a second-order cone.
    """
    jobs = len(crowd.value)
    each, one, zero = np.arange(jobs), np.ones(jobs), np.zeros(jobs)
    rows, parts, heights, values = _shares(crowd, each)
    # |(u - q, 2)| <= u + q
    cone, speed = jobs + len(heights) + 3 * each, -values.ravel()
    mine = np.tile(cone, crowd.value.shape[1])
    columns = [
        ([each[None]], [-one[None]]),
        ([jobs + rows, mine, mine + 1, mine + 2], [parts, speed, speed, 0.0 * speed]),
        ([each, cone, cone + 1, cone + 2], [left / due, -one, one, zero]),
    ]
    tops = np.concatenate([-spent / due, heights, np.tile([0.0, 0.0, 2.0], jobs)])
    answer = _solve(1.0, columns, tops, cones=jobs)
    if answer is None:
        return None
    found = _by_job(answer["x"][1 : 1 + len(rows)], crowd, each)
    return Centre(found, -float(answer["x"][0]), zero, zero)


def worth_as_written(speeds: Floats, widths: Floats, weights: Floats, gpus: Floats) -> Floats:
    """Return sf_i T_ij / (w_i thr_i(X^equal)), shape (jobs, types), rounded as in the simulator.

    The last bit of these values can decide who runs, and with it 0.1 % of average JCT.
    """
    even = gpus / len(speeds)
    equal = (speeds * (even / even.sum())).sum(axis=1)
    scaled: Floats = speeds * ((1.0 / weights) * (1.0 / equal))[:, None] * widths[:, None]
    return scaled


def _shares(crowd: Crowd, kind: Ints) -> tuple[Ints, Floats, Floats, Floats]:
    """Return rows and entries of each share, the rows' limits, and values, shape (types, jobs).

    A share is in its own row (share >= 0), in that of its GPU type and in that of its job, whose
    row of the crowd is ``kind``.
    """
    jobs, types = len(kind), crowd.value.shape[1]
    size, parts = jobs * types, np.ones((jobs * types, 3))
    parts[:, 0], parts[:, 1] = -1.0, np.tile(crowd.widths[kind], types)
    heights = np.concatenate([np.zeros(size), crowd.gpus, np.ones(jobs)])
    of_type, of_job = np.repeat(np.arange(types), jobs), np.tile(np.arange(jobs), types)
    rows = np.column_stack([np.arange(size), size + of_type, size + types + of_job])
    return rows, parts, heights, crowd.usable_value[kind].T


def _by_job(found: Floats, crowd: Crowd, each: Ints) -> Floats:
    """Return shares by job and type, none where the job cannot run."""
    shares = np.clip(found.reshape(crowd.value.shape[1], -1).T, 0.0, 1.0)
    shares = np.where(crowd.usable[each], shares, 0.0)
    # an answer of reduced accuracy may promise more time or GPUs than there are
    used = (crowd.widths[each] @ shares / np.maximum(crowd.gpus, 1e-300)).max()
    worst = max(float(shares.sum(axis=1).max()), float(used))
    return shares / worst if worst > 1.0 + ROOM else shares


def _solve(level: float, columns: list[Any], heights: Floats, cones: int = 0) -> Any:
    """Minimise ``level`` times the first unknown, heights - G x in the cones; None if it fails.

    ``columns`` holds the rows and entries in G of some unknowns after the other, each as lists that
    are put side by side; the last of ``heights`` are those of the second-order ``cones``.
    """
    if not is_installed():
        raise ParamError(
            "lp_backend='ecos' needs the package ecos, which is not installed; "
            "run pip install ecos, or use lp_backend=centre"
        )
    import ecos
    from scipy.sparse import csc_matrix

    rows, parts = (
        [np.column_stack(side) for side in sides] for sides in zip(*columns, strict=True)
    )
    ends = np.cumsum(np.repeat([one.shape[1] for one in rows], [len(one) for one in rows]))
    entries = np.concatenate([one.ravel() for one in parts]).astype(float)
    places = np.concatenate([one.ravel() for one in rows])
    matrix = csc_matrix((entries, places, np.append(0, ends)), shape=(len(heights), len(ends)))
    if not cones:
        # as in the simulator: zeros change the order of elimination, and with it the last bits
        matrix.eliminate_zeros()
    cost = np.zeros(len(ends))
    cost[0] = level
    dims = {"l": len(heights) - 3 * cones, "q": [3] * cones, "e": 0}
    answer = ecos.solve(cost, matrix, heights, dims, verbose=False)
    return answer if answer["info"]["exitFlag"] in _SOLVED else None
