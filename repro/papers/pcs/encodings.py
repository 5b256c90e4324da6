"""Encodings of a PCS configuration as a vector of numbers, for the search."""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.policies.pcs.pcs import Pcs, class_thresholds, decaying_weights

#: Ranges of W, the decay of weights, and of delta, the step by which the efficiency bound falls.
_DECAY = (-3.0, 3.0)
_DELTA = (0.01, 0.9)
#: Number of classes without the heuristics: the whole part of a number in this range.
_CLASSES = (1.0, 5.5)
_MAX_CLASSES = 5
#: Efficiency parameters if every speed-up is linear; they then have no effect.
_LINEAR = {"zeta_min": 0.01, "delta": 0.01}

#: Parameters of the policy ``pcs``.
Configuration = dict[str, Any]


class Encoding(NamedTuple):
    """A box and the configuration of each of its points, None if the policy does not accept it."""

    low: Floats
    high: Floats
    decode: Callable[[Floats], Configuration | None]


def encoding(work: Floats, *, heuristics: bool, linear: bool) -> Encoding:
    """Box and decoder of configurations for jobs of these sizes.

    Parameters
    ----------
    work : array, shape (jobs,)
        Sizes, seconds on one GPU.
    heuristics : bool
        If true, four numbers: T, W, zeta_min, delta. A class ends where the squared coefficient of
        variation of its sizes would exceed T, and weights decay by W. Otherwise thirteen: number of
        classes, five thresholds, five weights, zeta_min, delta.
    linear : bool
        If speed-up is linear, zeta_min and delta have no effect and are left out.

    Notes
    -----
    PCS, arXiv 2401.10354, section 3.3, and its artifact.

    Examples
    --------
    >>> code = encoding(np.array([1.0, 2.0, 50.0]), heuristics=True, linear=True)
    >>> code.decode(np.array([0.5, 1.0]))["thresholds"]
    (2.0,)
    """
    ranges = [] if linear else [(0.0, 1.0), _DELTA]
    if heuristics:
        sizes = np.sort(work)
        number = np.arange(1, len(work) + 1)
        # Upper end of T: 1 + the largest squared coefficient of variation over all prefixes of the
        # sorted sizes.
        largest = (number * np.cumsum(sizes**2) / np.cumsum(sizes) ** 2).max()
        ranges = [(0.001, float(largest)), _DECAY, *ranges]
    else:
        top = max(float(work.max()), 2.0)
        ranges = [_CLASSES, *[(1.0, top)] * _MAX_CLASSES, *[(0.0, 1.0)] * _MAX_CLASSES, *ranges]
    low, high = np.array(ranges).T

    def decode(point: Floats) -> Configuration | None:
        numbers = [float(number) for number in point]
        efficiency = _LINEAR if linear else {"zeta_min": numbers[-2], "delta": numbers[-1]}
        with contextlib.suppress(ParamError):
            classes = _heuristic(work, *numbers[:2]) if heuristics else _explicit(numbers)
            configuration = {**classes, **efficiency}
            # refuses thresholds that round to 0 s, or to the same second
            Pcs(**configuration)
            return configuration
        return None

    return Encoding(low, high, decode)


def partitions(work: Floats, variations: int, decay_step: float) -> list[Configuration]:
    """Configurations at the points of a grid of T and W, without repetitions; speed-up is linear.

    The grid has ``variations`` values of T, and values of W that are ``decay_step`` apart.

    >>> len(partitions(np.array([1.0, 2.0, 50.0]), variations=10, decay_step=3.0))
    7
    """
    box = encoding(work, heuristics=True, linear=True)
    grid = itertools.product(
        np.linspace(box.low[0], box.high[0], variations),
        np.arange(box.low[1], box.high[1] + 1e-9, decay_step),
    )
    decoded = [settings for point in grid if (settings := box.decode(np.array(point)))]
    different = {(settings["thresholds"], settings["weights"]): settings for settings in decoded}
    return list(different.values())


def _heuristic(work: Floats, variation: float, decay: float) -> Configuration:
    """Thresholds that follow from T (``variation``), weights that follow from W (``decay``)."""
    bounds = class_thresholds(work, variation)
    weights = decaying_weights(len(bounds) + 1, decay)
    return {"thresholds": tuple(bounds.tolist()), "weights": tuple(weights.tolist())}


def _explicit(numbers: list[float]) -> Configuration:
    """Thresholds and weights searched one by one; `ParamError` if a class has no weight."""
    classes = int(numbers[0])
    bounds = sorted(numbers[1 : 1 + _MAX_CLASSES][:classes])[:-1]
    searched = np.array(numbers[1 + _MAX_CLASSES : 1 + 2 * _MAX_CLASSES][:classes])
    weights = np.round(searched / searched.sum(), 3) if searched.sum() else searched
    if not (weights > 0).all():
        raise ParamError("a class has no weight")
    return {"thresholds": tuple(bounds), "weights": tuple((weights / weights.sum()).tolist())}
