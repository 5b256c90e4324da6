"""The two ways in which PCS's search writes a configuration as numbers."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.policies.pcs.pcs import class_thresholds, decaying_weights

#: Range of W, by which weights decay, and of delta, by which the bound of efficiency falls.
_DECAY = (-3.0, 3.0)
_DELTA = (0.01, 0.9)
#: Classes without the heuristics: the whole part of 1 to 5.5.
_CLASSES = (1.0, 5.5)
_MOST = 5
#: What stands for efficiency where every job's speed-up is linear and nothing depends on it.
_LINEAR = {"zeta_min": 0.01, "delta": 0.01}

#: Parameters of the policy ``pcs``; None: a class would have no weight.
Configuration = dict[str, Any]


class Encoding(NamedTuple):
    """A box and what its points mean."""

    low: Floats
    high: Floats
    decode: Callable[[Floats], Configuration | None]


def encoding(work: Floats, *, heuristics: bool, linear: bool) -> Encoding:
    """Return how configurations for jobs of these sizes are searched.

    Parameters
    ----------
    work : array, shape (jobs,)
        Sizes, seconds on one GPU.
    heuristics : bool
        Four numbers, T, W, zeta_min and delta: classes are cut where sizes vary by more than T,
        their weights decay by W. Else thirteen: how many classes, five thresholds, five weights,
        zeta_min, delta.
    linear : bool
        Speed-up is linear, so zeta_min and delta have no meaning; they are left out.

    Notes
    -----
    PCS, arXiv 2401.10354, section 3.3, and its artifact.

    Examples
    --------
    >>> how = encoding(np.array([1.0, 2.0, 50.0]), heuristics=True, linear=True)
    >>> how.decode(np.array([0.5, 1.0]))["thresholds"]
    (2.0,)
    """
    ranges = [] if linear else [(0.0, 1.0), _DELTA]
    if heuristics:
        sizes = np.sort(work)
        number = np.arange(1, len(work) + 1)
        # 1 + the largest squared coefficient of variation of the smallest jobs, however many
        most = (number * np.cumsum(sizes**2) / np.cumsum(sizes) ** 2).max()
        ranges = [(0.001, float(most)), _DECAY, *ranges]
    else:
        top = max(float(work.max()), 2.0)
        ranges = [_CLASSES, *[(1.0, top)] * _MOST, *[(0.0, 1.0)] * _MOST, *ranges]
    low, high = np.array(ranges).T

    def decode(point: Floats) -> Configuration | None:
        numbers = [float(number) for number in point]
        rest = _LINEAR if linear else {"zeta_min": numbers[-2], "delta": numbers[-1]}
        with contextlib.suppress(ParamError):
            cut = _cut(work, *numbers[:2]) if heuristics else _chosen(numbers)
            return {**cut, **rest}
        return None

    return Encoding(low, high, decode)


def _cut(work: Floats, variation: float, decay: float) -> Configuration:
    """Return classes cut by T, weights decaying by W."""
    bounds = class_thresholds(work, variation)
    weights = decaying_weights(len(bounds) + 1, decay)
    return {"thresholds": tuple(bounds.tolist()), "weights": tuple(weights.tolist())}


def _chosen(numbers: list[float]) -> Configuration:
    """Return classes of thresholds and weights that were searched themselves."""
    classes = int(numbers[0])
    bounds = sorted(numbers[1 : 1 + _MOST][:classes])[:-1]
    shares = np.array(numbers[1 + _MOST : 1 + 2 * _MOST][:classes])
    weights = np.round(shares / shares.sum(), 3) if shares.sum() else shares
    if not (weights > 0).all():
        raise ParamError("a class has no weight")
    return {"thresholds": tuple(bounds), "weights": tuple((weights / weights.sum()).tolist())}
