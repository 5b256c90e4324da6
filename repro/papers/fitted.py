"""Factors that are fitted on a named part of the published numbers of a testbed."""

from collections.abc import Iterable

import numpy as np


def fitted_factor(published: Iterable[float], ours: Iterable[float]) -> float:
    """Factor on our numbers that brings them closest to the published ones.

    It minimises the sum of the squared log ratios, so it is the geometric mean of published / ours.
    All numbers are positive.

    Parameters
    ----------
    published : iterable of float
        Published numbers that the factor is fitted on.
    ours : iterable of float
        Our numbers, in the same order.

    Returns
    -------
    float
        The factor.

    Raises
    ------
    ValueError
        If there are no numbers, or not equally many of both.

    Examples
    --------
    >>> round(fitted_factor([90.0, 40.0], [100.0, 40.0]), 4)
    0.9487
    """
    pairs = np.array(list(zip(published, ours, strict=True)), dtype=float)
    if not pairs.size:
        raise ValueError("no published number to fit a factor on")
    ratios = np.log(pairs[:, 0]) - np.log(pairs[:, 1])
    return float(np.exp(ratios.mean()))
