"""Shares of GPU types by an interior-point method, which ends in the centre of the best shares.

Max-min programmes have many optima. Gavel's own solver follows the central path and stops near the
analytic centre of the optimal face; the centre is unique, treats equal jobs equally, and does not
depend on the order of the jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from repro.errors import PolicyError
from repro.optimise.counted import solves

Array = npt.NDArray[np.float64]
Name = Callable[[int], str]

#: Relative accuracy of the level.
ACCURACY = 1e-10


@dataclass(frozen=True)
class Crowd:
    """Equal jobs in rows, and the GPUs they share.

    Parameters
    ----------
    worth : ndarray, shape (rows, GPU types)
        Value to one job of the row of all its time on the GPU type; 0 = cannot run there.
    counts : ndarray, shape (rows,)
        Jobs of each row.
    widths : ndarray, shape (rows,)
        GPUs of a job of each row.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.
    name : callable
        Row number to the words that name its jobs in messages.

    Raises
    ------
    PolicyError
        If a row runs on none of the GPU types.

    Examples
    --------
    >>> crowd = Crowd(np.array([[2.0, 1.0]]), np.array([3]), np.array([1]), np.array([1, 1]))
    >>> crowd.usable.tolist()
    [[True, True]]
    """

    worth: Array
    counts: npt.NDArray[Any]
    widths: npt.NDArray[Any]
    gpus: npt.NDArray[Any]
    name: Name = "row {}".format

    def __post_init__(self) -> None:
        for row in np.flatnonzero(~self.usable.any(axis=1)).tolist():
            raise PolicyError(
                f"{self.name(row)} can run on no GPU type: it needs {self.widths[row]} GPUs of one "
                f"type, the cluster has {self.gpus.tolist()}, and its speeds are "
                f"{self.worth[row].tolist()}"
            )

    @cached_property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which row may use which GPU type, shape (rows, GPU types)."""
        fits: npt.NDArray[np.bool_] = self.widths[:, None] <= self.gpus[None, :]
        return (self.worth > 0) & fits

    @cached_property
    def values(self) -> Array:
        """``worth``, 0 where the row may not use the GPU type, shape (rows, GPU types)."""
        return np.where(self.usable, self.worth, 0.0)

    @cached_property
    def best(self) -> Array:
        """Value to one job of all its time on its best GPU type, shape (rows,)."""
        best: Array = self.values.max(axis=1)
        return best

    @cached_property
    def _sizes(self) -> Array:
        """Jobs, GPUs of all and GPUs of one, shape (3, rows)."""
        counts, widths = self.counts.astype(float), self.widths.astype(float)
        return np.array([counts, counts * widths, widths])

    @cached_property
    def _relative(self) -> Array:
        """Values as parts of the best, and those of idle time, shape (GPU types + 1, rows)."""
        rows, kinds = self.worth.shape
        lines = np.zeros((kinds + 1, rows))
        lines[:kinds] = self.values.T / self.best
        return lines

    def sparse_shares(self) -> Array:
        """Return small shares with room left everywhere, shape (rows, GPU types)."""
        return self._sparse.copy()

    @cached_property
    def _sparse(self) -> Array:
        usable = self.usable
        load = (self.counts * self.widths) @ usable
        fair = np.where(usable, self.gpus / np.maximum(load, 1e-300), np.inf)
        limit = np.minimum(1.0 / usable.sum(axis=1), fair.min(axis=1))
        return np.where(usable, 0.5 * limit[:, None], 0.0)


@dataclass(frozen=True)
class Centre:
    """Central shares.

    Parameters
    ----------
    shares : ndarray, shape (rows, GPU types)
        Share of time of one job of each row on each GPU type.
    level : float
        Largest level z.
    slack : ndarray, shape (rows,)
        Slack of the row's constraint as a share of the row's value.
    price : ndarray, shape (rows,)
        How much the level gains, relative to itself, per relative cut of the row's value.
    """

    shares: Array
    level: float
    slack: Array
    price: Array

    @property
    def tight(self) -> npt.NDArray[np.bool_]:
        """Rows whose constraint holds with equality in all optima (strict complementarity)."""
        return self.slack < self.price


@solves("LP")
def central_level(crowd: Crowd, scale: Array, floor: Array | None = None) -> Centre | None:
    """Return the centre of the shares that maximise z in v_k x_k >= scale_k z + floor_k.

    Parameters
    ----------
    crowd : Crowd
        Rows and GPUs.
    scale : ndarray, shape (rows,)
        What a unit of the level is worth to the row; 0 leaves only the floor.
    floor : ndarray, shape (rows,), optional
        Values guaranteed; -inf for a row without any constraint. Default 0.

    Returns
    -------
    Centre or None
        None if the method did not converge, above all for floors that cannot be met.

    References
    ----------
    Gavel, OSDI 2020, section 4.1; Mehrotra, SIAM J. Optim. 2 (1992) for the method.

    Examples
    --------
    >>> crowd = Crowd(np.array([[4.0, 1.0], [2.0, 1.0]]), np.ones(2), np.ones(2), np.ones(2))
    >>> central_level(crowd, np.ones(2)).shares.round(3)
    array([[0.25, 0.75],
           [0.75, 0.25]])
    """
    rows = len(crowd.worth)
    floor = np.zeros(rows) if floor is None else floor
    start = crowd.sparse_shares()
    value = (crowd.values * start).sum(axis=1)
    led = scale > 0
    unit = float((value[led] / scale[led]).min())
    first = float(((value - floor)[led] / (scale[led] * unit)).min()) - 0.5
    return _run(crowd, scale, floor, start, unit, first)


def central_point(crowd: Crowd, floor: Array, best: Centre) -> Array:
    """Return the centre of all shares that give every row at least its floor.

    Parameters
    ----------
    crowd : Crowd
        Rows and GPUs.
    floor : ndarray, shape (rows,)
        Values guaranteed, positive.
    best : Centre
        Answer of `central_level` for ``scale=floor``; its level must exceed 1.

    Returns
    -------
    ndarray, shape (rows, GPU types)
        Share of time of one job of each row.

    Examples
    --------
    >>> crowd = Crowd(np.array([[1.0]]), np.ones(1), np.ones(1), np.ones(1))
    >>> best = central_level(crowd, np.array([0.5]))
    >>> central_point(crowd, np.array([0.5]), best).round(3)
    array([[0.695]])
    """
    # between the best shares, which use all there is, and shares that leave room everywhere
    small = crowd.sparse_shares()
    part = 0.5 * min(1.0, (best.level - 1.0) / best.level)
    start = (1.0 - part) * best.shares + part * small
    found = _run(crowd, np.zeros(len(floor)), floor, start, 1.0, 0.0, free=False)
    return start if found is None else found.shares


@solves("convex")
def central_ratio(crowd: Crowd, left: Array, due: Array, spent: Array) -> Centre | None:
    """Return the centre of the shares with the least ratio max_k (spent_k + left_k / u_k) / due_k.

    The level of the answer is minus that ratio.

    Parameters
    ----------
    crowd : Crowd
        Rows and GPUs; the value u_k = v_k x_k is a speed (1/s).
    left, due, spent : ndarray, shape (rows,)
        Work left (same unit of work as the speeds), time due (s) and time spent (s).

    Returns
    -------
    Centre or None
        None if the method did not converge.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (finish-time fairness); Themis, NSDI 2020.

    Examples
    --------
    >>> crowd = Crowd(np.array([[2.0]]), np.array([2]), np.ones(1), np.ones(1))
    >>> answer = central_ratio(crowd, np.array([4.0]), np.array([3.0]), np.array([1.0]))
    >>> round(-answer.level, 6)
    1.666667
    """
    start = crowd.sparse_shares()
    value = (crowd.values * start).sum(axis=1)
    worst = float(((spent + left / value) / due).max())
    return _run(crowd, due, spent, start, 1.0, -1.5 * worst, curve=left)


def _run(
    crowd: Crowd,
    scale: Array,
    floor: Array,
    start: Array,
    unit: float,
    level: float,
    free: bool = True,
    curve: Array | None = None,
) -> Centre | None:
    """Normalise every row to a largest value of 1, follow the path, and translate back."""
    # the compiler takes longer to import than most policies to run
    from repro.optimise.interior import follow

    rows, kinds = crowd.worth.shape
    counts, loads, widths = crowd._sizes
    v, top = crowd._relative, crowd.best
    zero, one = np.zeros(rows), np.ones(rows)
    if curve is None:
        s, g, h, linear = scale * (unit / top), floor / top, zero, one
    else:
        # seconds, in units of the time due
        s, g, h, linear = one, floor / scale, curve / (top * scale), zero
    bound = g > -np.inf
    if not bound.all():
        s, g, h = (np.where(bound, part, 0.0) for part in (s, g, h))
    barrier = np.ones((kinds + 3, rows))
    barrier[:kinds] = crowd.usable.T
    # u x >= 1 as a second-order cone weighs half; eliminating its variable leaves these weights
    barrier[kinds + 1] = bound if curve is None else 1.5
    barrier[kinds + 2] = 0.0 if curve is None else 0.5
    slacks = np.empty((kinds + 3, rows))
    slacks[:kinds] = start.T * crowd.usable.T
    slacks[kinds] = 1.0 - start.sum(axis=1)
    slacks[kinds + 2] = u = (v[:kinds] * slacks[:kinds]).sum(axis=0)
    room = linear * u - h / u - s * level - g
    slacks[kinds + 1] = np.where(bound, np.maximum(room, 1e-3 * (1e-3 + np.abs(g))), 0.0)
    total = float(barrier.sum(axis=0) @ counts) + kinds
    z, duals, _, ended = follow(
        v, np.array([counts, loads, counts * s, widths, s, g, linear, h]), barrier,
        crowd.gpus.astype(float), slacks, level, free, ACCURACY / total if free else 1.0,
    )  # fmt: skip
    if not ended:
        return None
    shares = slacks[:kinds].T.copy()
    if free:
        # off the optimal face a share only tends to 0; strict complementarity tells which
        shares[shares * (1.0 + abs(z)) < duals[:kinds].T] = 0.0
        # so that equal priorities of rounds are equal
        shares = np.round(shares, 12)
    u = slacks[kinds + 2]
    price = duals[kinds + 1] * u / (1.0 + abs(z))
    return Centre(shares, float(z) * unit, np.where(bound, slacks[kinds + 1], 1.0) / u, price)
