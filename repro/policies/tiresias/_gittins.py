"""Gittins indices of an empirical service distribution (Tiresias, section 3.2.1, Pseudocode 1).

The samples s_1 <= ... <= s_n are total services of past jobs (GPU-seconds), with prefix sums C_k =
s_1 + ... + s_k. For an attained service a let i = #{s <= a}, so that n - i samples are longer.
"""

from bisect import bisect_right
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from repro.base.typing import Array

#: Index of a job by its attained service (GPU-seconds), larger first; 0 beyond the last sample.
Index = Callable[[float], float]


class _Samples:
    """Samples in ascending order and their prefix sums, each as an array and as a list."""

    def __init__(self, samples: Array) -> None:
        self.values = np.sort(samples)
        self.n = len(self.values)
        #: C_0, ..., C_n
        self.sums = np.concatenate([[0.0], np.cumsum(self.values)])
        self.value_list: list[float] = self.values.tolist()
        self.sum_list: list[float] = self.sums.tolist()


class GittinsIndex(_Samples):
    """G(a) = sup over D of P(S - a <= D | S > a) / E[min(S - a, D) | S > a].

    Building takes O(n log n), a look-up O(log n) and a short walk along a convex hull. With X_l =
    sum_j min(s_j, s_l), the ratio for D = s_l - a is the slope from (C_i + a (n - i), i) to
    (X_l, l). So the supremum is the slope of a tangent to the upper hull of the points after i.

    Parameters
    ----------
    samples : array
        Total services of past jobs (GPU-seconds).
    delta : float, optional
        One quantum D (GPU-seconds) instead of the supremum.

    Reference: Tiresias, NSDI 2019, section 3.2.1 and Pseudocode 1.

    Examples
    --------
    >>> GittinsIndex(np.array([4.0, 8.0, 12.0]))(0.0)
    0.125
    """

    def __init__(self, samples: Array, delta: float | None = None) -> None:
        super().__init__(samples)
        self.delta = delta
        if delta is None:
            self._build_hull()

    def _build_hull(self) -> None:
        """Link the point of every sample to the next vertex of the hull of the points after it."""
        values = self.values
        ranks = np.arange(1, self.n + 1)
        x = self.sums[1:] + values * (self.n - ranks)
        # Equal samples make one point, that of the last.
        is_last = np.append(values[1:] > values[:-1], True)
        self.x: list[float] = x[is_last].tolist()
        self.y: list[int] = ranks[is_last].tolist()
        self.unique: list[float] = values[is_last].tolist()
        count = len(self.x)
        self.next_vertex = [count] * count
        for point in range(count - 2, -1, -1):
            vertex = point + 1
            following = self.next_vertex[vertex]
            while following < count and self._slope(point, following) >= self._slope(point, vertex):
                vertex = following
                following = self.next_vertex[vertex]
            self.next_vertex[point] = vertex

    def _slope(self, point: int, other: int) -> float:
        """Slope from one point to another."""
        return (self.y[other] - self.y[point]) / (self.x[other] - self.x[point])

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.value_list, attained)
        if i == self.n:
            return 0.0
        if self.delta is not None:
            return self._ratio(attained, i, self.delta)
        x = self.sum_list[i] + attained * (self.n - i)
        vertex = bisect_right(self.unique, attained)
        supremum = 0.0
        while vertex < len(self.x):
            slope = (self.y[vertex] - i) / (self.x[vertex] - x)
            if slope < supremum:
                break
            supremum = slope
            vertex = self.next_vertex[vertex]
        return supremum

    def _ratio(self, attained: float, i: int, delta: float) -> float:
        """Ratio for the quantum ``delta``, with i = #{s <= attained}."""
        k = bisect_right(self.value_list, attained + delta)
        # without longer samples the product would be nan for an infinite delta
        beyond = delta * (self.n - k) if k < self.n else 0.0
        service = self.sum_list[k] - self.sum_list[i] - attained * (k - i) + beyond
        return (k - i) / service


class MeanServiceIndex(_Samples):
    """G(a) = 1 / E[S | S > a], an index that drops as the attained service passes each sample.

    It yields the 2D-Gittins schedule of Tiresias, Figure 7. The literal formula does not.

    Examples
    --------
    >>> MeanServiceIndex(np.array([4.0, 8.0, 12.0]))(4.0)
    0.1
    """

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.value_list, attained)
        if i == self.n:
            return 0.0
        return (self.n - i) / (self.sum_list[self.n] - self.sum_list[i])


class TotalServiceIndex(_Samples):
    """G(a) = sup over D of P(S - a <= D | S > a) / E[S if S - a <= D else D | S > a].

    The public simulator computes this ratio, with roundings and for one quantum. Like
    `MeanServiceIndex`, the index drops as the attained service passes a sample.

    Examples
    --------
    >>> TotalServiceIndex(np.array([4.0, 8.0, 12.0]))(4.0)
    0.1
    """

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.value_list, attained)
        if i == self.n:
            return 0.0
        ends = np.unique(self.values[i:])
        k = np.searchsorted(self.values, ends, side="right")
        service = self.sums[k] - self.sums[i] + (ends - attained) * (self.n - k)
        return float(((k - i) / service).max())


class TotalServiceTable(_Samples):
    """Index table of the public simulator: one quantum D, E of S instead of S - a, rounded.

    For each sample v, with a = v - 1, i = #{s <= a} and k = #{s <= a + D} (n - 1 if a + D is above
    s_n - 1):

        P = (k - i) / (n - i), to 5 decimals
        E = floor((C_k - C_i + D (n - k)) / (n - i))
        G = 1e6 P / E, to 4 decimals; 0 if E is 0

    A job reads the entry of the first sample above its attained service.
    """

    def __init__(self, samples: Array, delta: float) -> None:
        super().__init__(samples)
        n = self.n
        values = self.values
        sums = self.sums
        attained = values - 1
        i = np.searchsorted(values, attained, side="right")
        k = np.where(
            attained + delta > values[-1] - 1,
            n - 1,
            np.searchsorted(values, attained + delta, side="right"),
        )
        probabilities = (k - i) / (n - i)
        expected_services = np.floor((sums[k] - sums[i] + delta * (n - k)) / (n - i))
        self.index = [
            _rounded(_rounded(probability, 5) * 1e6 / service, 4) if service > 0 else 0.0
            for probability, service in zip(
                probabilities.tolist(), expected_services.tolist(), strict=True
            )
        ]

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.value_list, attained)
        return self.index[i] if i < len(self.index) else 0.0


def _rounded(value: float, digits: int) -> float:
    """Round a value of 0 or more, halves up, as Python 2 does."""
    step = Decimal(1).scaleb(-digits)
    return float(Decimal(value).quantize(step, rounding=ROUND_HALF_UP))
