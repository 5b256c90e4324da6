"""The analytic centre of the best shares of GPU types, for kinds of equal jobs."""

# Max-min programmes have many optima. Gavel's own solver follows the central path and stops near
# the analytic centre of the optimal face; the centre is unique, treats equal jobs equally, and does
# not depend on the order of the jobs.

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from repro.errors import PolicyError
from repro.optimise.counted import solves
from repro.typing import Flags, Floats

#: Relative accuracy of the level.
ACCURACY = 1e-10


@dataclass(frozen=True)
class Crowd:
    """Kinds of equal jobs, and the GPUs they share; PolicyError if a kind runs on none of them."""

    value: Floats  #: of all its time to one job, shape (kinds, types); 0 = cannot run there
    counts: npt.NDArray[Any]  #: jobs of each kind
    widths: npt.NDArray[Any]  #: GPUs of one job of each kind
    gpus: npt.NDArray[Any]  #: GPUs of each type
    name: Callable[[int], str] = "row {}".format  #: words for the jobs of a kind in messages

    def __post_init__(self) -> None:
        for row in np.flatnonzero(~self.usable.any(axis=1)).tolist():
            raise PolicyError(
                f"{self.name(row)} can run on no GPU type: it needs {self.widths[row]} GPUs of one "
                f"type, the cluster has {self.gpus.tolist()}, and its speeds are "
                f"{self.value[row].tolist()}"
            )

    @cached_property
    def usable(self) -> Flags:
        """Which kind may use which GPU type, shape (kinds, types)."""
        fits: Flags = self.widths[:, None] <= self.gpus[None, :]
        return (self.value > 0) & fits

    @cached_property
    def usable_value(self) -> Floats:
        """``value``, 0 where the kind may not use the GPU type, shape (kinds, types)."""
        return np.where(self.usable, self.value, 0.0)

    @cached_property
    def best_value(self) -> Floats:
        """Value to one job of all its time on its best GPU type, shape (kinds,)."""
        best: Floats = self.usable_value.max(axis=1)
        return best

    @cached_property
    def small_shares(self) -> Floats:
        """Half of what an equal division would give, shape (kinds, types): all have room."""
        usable = self.usable
        load = (self.counts * self.widths) @ usable
        fair = np.where(usable, self.gpus / np.maximum(load, 1e-300), np.inf)
        limit = np.minimum(1.0 / usable.sum(axis=1), fair.min(axis=1))
        return np.where(usable, 0.5 * limit[:, None], 0.0)

    @cached_property
    def _relative(self) -> Floats:
        """Values as parts of the best, and those of idle time, shape (types + 1, kinds)."""
        kinds, types = self.value.shape
        lines = np.zeros((types + 1, kinds))
        lines[:types] = self.usable_value.T / self.best_value
        return lines


@dataclass(frozen=True)
class Centre:
    """Central shares, and what bounds the level."""

    shares: Floats  #: of the time of one job of each kind, shape (kinds, types)
    level: float  #: largest z
    slack: Floats  #: of each kind's constraint, as a share of the kind's value
    price: Floats  #: relative gain of the level per relative cut of the kind's value

    @property
    def tight(self) -> Flags:
        """Kinds whose constraint holds with equality in all optima (strict complementarity)."""
        return self.slack < self.price


@solves("LP")
def central_level(crowd: Crowd, scale: Floats, floor: Floats | None = None) -> Centre | None:
    """Return the centre of the shares that maximise z in v_k x_k >= scale_k z + floor_k.

    A kind of scale 0 has only its floor, one of floor -inf no constraint. None if the method did
    not converge, above all for floors that cannot be met (Gavel, OSDI 2020, section 4.1).
    """
    floor = np.zeros(len(crowd.value)) if floor is None else floor
    start = crowd.small_shares
    value = (crowd.usable_value * start).sum(axis=1)
    led = scale > 0
    unit = float((value[led] / scale[led]).min())
    first = float(((value - floor)[led] / (scale[led] * unit)).min()) - 0.5
    return _run(crowd, scale, floor, start, first, unit)


def central_point(crowd: Crowd, floor: Floats, best: Centre) -> Floats:
    """Return the centre of all shares that give every kind at least its floor, which is positive.

    ``best`` is the answer of `central_level` for ``scale=floor``; its level must exceed 1.
    """
    # between the best shares, which use all there is, and shares that leave room everywhere
    part = 0.5 * min(1.0, (best.level - 1.0) / best.level)
    start = (1.0 - part) * best.shares + part * crowd.small_shares
    found = _run(crowd, np.zeros(len(floor)), floor, start, 0.0)
    return start if found is None else found.shares


@solves("convex")
def central_ratio(crowd: Crowd, left: Floats, due: Floats, spent: Floats) -> Centre | None:
    """Return the centre of the shares with the least ratio max_k (spent_k + left_k / u_k) / due_k.

    u_k = v_k x_k is the speed (1/s) at which the work ``left`` is done; the level is minus the
    ratio; None if the method did not find it (Gavel, OSDI 2020, section 4.2; Themis, NSDI 2020).
    """
    start = crowd.small_shares
    value = (crowd.usable_value * start).sum(axis=1)
    worst = float(((spent + left / value) / due).max())
    found = _run(crowd, due, spent, start, -1.5 * worst, curve=left)
    if found is None:
        return None
    # next to no speed, if it is all a job needs, may come out wrong in relative terms
    speed = np.maximum((crowd.usable_value * found.shares).sum(axis=1), 1e-300)
    reached = ((spent + left / speed) / due).max() <= -found.level * (1 + 1e-6)
    return found if reached else None


def _run(
    crowd: Crowd,
    scale: Floats,
    floor: Floats,
    start: Floats,
    level: float,
    unit: float = 1.0,
    curve: Floats | None = None,
) -> Centre | None:
    """Normalise every row to a largest value of 1, follow the path, and translate back."""
    from repro.optimise.interior import Kinds, follow

    kinds, types = crowd.value.shape
    free = bool(scale.any())  # else only a point amid the floors is asked for
    counts, widths = crowd.counts.astype(float), crowd.widths.astype(float)
    v, top = crowd._relative, crowd.best_value
    zero, one = np.zeros(kinds), np.ones(kinds)
    if curve is None:
        s, g, h, linear = scale * (unit / top), floor / top, zero, one
    else:
        # seconds, in units of the time due
        s, g, h, linear = one, floor / scale, curve / (top * scale), zero
    bound = g > -np.inf
    if not bound.all():
        s, g, h = (np.where(bound, part, 0.0) for part in (s, g, h))
    barrier = np.ones((types + 3, kinds))
    barrier[:types] = crowd.usable.T
    # u x >= 1 as a second-order cone weighs half; eliminating its variable leaves these weights
    barrier[types + 1] = bound if curve is None else 1.5
    barrier[types + 2] = 0.0 if curve is None else 0.5
    slacks = np.empty((types + 3, kinds))
    slacks[:types] = start.T * crowd.usable.T
    slacks[types] = 1.0 - start.sum(axis=1)
    slacks[types + 2] = u = (v[:types] * slacks[:types]).sum(axis=0)
    room = linear * u - h / u - s * level - g
    slacks[types + 1] = np.where(bound, np.maximum(room, 1e-3 * (1e-3 + np.abs(g))), 0.0)
    total = float(barrier.sum(axis=0) @ counts) + types
    # in the order of COUNT to INVERSE
    job = np.array([counts, counts * widths, counts * s, widths, s, g, linear, h])
    each = Kinds(v, job, barrier, crowd.gpus.astype(float))
    end = ACCURACY / total if free else 1.0
    z, duals, _, ended = follow(each, slacks, level, free, end)
    if not ended:
        return None
    shares = slacks[:types].T.copy()
    if free:
        # off the optimal face a share only tends to 0; strict complementarity tells which
        shares[shares * (1.0 + abs(z)) < duals[:types].T] = 0.0
        # so that equal priorities of rounds are equal
        shares = np.round(shares, 12)
        if curve is not None:
            # a job that needs next to no time would lose it to both
            lost = (v[:types].T * shares).sum(axis=1) < (1.0 - 1e-6) * slacks[types + 2]
            shares[lost] = slacks[:types].T[lost]
    u = slacks[types + 2]
    price = duals[types + 1] * u / (1.0 + abs(z))
    return Centre(shares, float(z) * unit, np.where(bound, slacks[types + 1], 1.0) / u, price)
