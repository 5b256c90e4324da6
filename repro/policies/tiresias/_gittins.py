"""Gittins indices of an empirical service distribution (Tiresias, section 3.2.1, Pseudocode 1).

The samples s_1 <= ... <= s_n are total services of past jobs (GPU-seconds), with prefix sums C_k =
s_1 + ... + s_k. For an attained service a let i = #{s <= a}, so that n - i samples are longer.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Array, Floats, Ints


class Index(ABC):
    """Index of a job by its attained service (GPU-seconds), larger first; 0 beyond the last sample.

    It keeps the samples in ascending order and their prefix sums, each as an array and as a list.
    """

    def __init__(self, samples: Array) -> None:
        self.values = np.sort(samples)
        self.n = len(self.values)
        #: C_0, ..., C_n
        self.sums = np.concatenate([[0.0], np.cumsum(self.values)])
        self.value_list: list[float] = self.values.tolist()
        self.sum_list: list[float] = self.sums.tolist()

    @abstractmethod
    def __call__(self, attained: float) -> float:
        """Index at an attained service (GPU-seconds)."""

    def of(self, attained: Floats) -> Floats:
        """Indices at several attained services (GPU-seconds), (jobs,)."""
        return np.array([self(service) for service in attained.tolist()])


class _Hull(NamedTuple):
    """Samples, prefix sums and hull of a `GittinsIndex`."""

    #: (n,): s_1, ..., s_n
    values: Floats
    #: (n + 1,): C_0, ..., C_n
    sums: Floats
    #: (points,): sample of each point; samples equal up to rounding make one point
    unique: Floats
    #: (points,): X of each point
    x: Floats
    #: (points,): rank of the sample of each point
    y: Ints
    #: (points,): next vertex after each point, on the hull of this point and all points after it
    next_vertex: Ints


class GittinsIndex(Index):
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
        self.delta = 0.0 if delta is None else float(delta)
        self._hull = self._with_hull() if delta is None else self._without_hull()

    def _without_hull(self) -> _Hull:
        """Samples for one quantum, which needs no hull."""
        numbers = np.zeros(0)
        ranks = np.zeros(0, np.int64)
        return _Hull(self.values, self.sums, numbers, numbers, ranks, ranks)

    def _with_hull(self) -> _Hull:
        """Link the point of every sample to the next vertex of the hull of the points after it."""
        values = self.values
        ranks = np.arange(1, self.n + 1)
        x_of_samples = self.sums[1:] + values * (self.n - ranks)
        # Equal samples make one point, that of the last.
        last_of_equal = np.flatnonzero(np.append(values[1:] > values[:-1], True))
        # So do samples that differ only by rounding: their x may be equal, or even fall.
        x = np.maximum.accumulate(x_of_samples[last_of_equal])
        rises = np.append(x[1:] > x[:-1], True)
        x = x[rises]
        rows = last_of_equal[rises]
        point_x: list[float] = x.tolist()
        point_y: list[int] = ranks[rows].tolist()
        count = len(point_x)

        def slope(point: int, other: int) -> float:
            """Slope from one point to another."""
            return (point_y[other] - point_y[point]) / (point_x[other] - point_x[point])

        next_vertex = [count] * count
        for point in range(count - 2, -1, -1):
            vertex = point + 1
            following = next_vertex[vertex]
            while following < count and slope(point, following) >= slope(point, vertex):
                vertex = following
                following = next_vertex[vertex]
            next_vertex[point] = vertex
        return _Hull(
            values=values,
            sums=self.sums,
            unique=values[rows],
            x=x,
            y=ranks[rows],
            next_vertex=np.array(next_vertex, np.int64),
        )

    def __call__(self, attained: float) -> float:
        return float(self.of(np.array([attained], dtype=float))[0])

    def of(self, attained: Floats) -> Floats:
        """Indices at several attained services (GPU-seconds), (jobs,)."""
        indices = np.empty(len(attained))
        _gittins(self._hull, self.delta, attained, indices)
        return indices


@njit()
def _gittins(hull: _Hull, delta: float, attained: Floats, indices: Floats) -> None:
    """Fill ``indices`` at several attained services; without a hull for the quantum ``delta``."""
    for row in range(len(attained)):
        i = _count_up_to(hull.values, attained[row])
        if i == len(hull.values):
            indices[row] = 0.0
        elif len(hull.x) == 0:
            indices[row] = _ratio(hull, attained[row], i, delta)
        else:
            indices[row] = _supremum(hull, attained[row], i)


@njit()
def _count_up_to(values: Floats, bound: float) -> int:
    """Number of ascending values up to a bound."""
    low = 0
    high = len(values)
    while low < high:
        middle = (low + high) // 2
        if bound < values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@njit()
def _supremum(hull: _Hull, attained: float, i: int) -> float:
    """Slope of the tangent to the hull, with i = #{s <= attained}."""
    x = hull.sums[i] + attained * (len(hull.values) - i)
    vertex = _count_up_to(hull.unique, attained)
    supremum = 0.0
    while vertex < len(hull.x):
        service = hull.x[vertex] - x
        # the attained service is within a rounding error of the next sample
        if service <= 0.0:
            return math.inf
        slope = (hull.y[vertex] - i) / service
        if slope < supremum:
            break
        supremum = slope
        vertex = hull.next_vertex[vertex]
    return supremum


@njit()
def _ratio(hull: _Hull, attained: float, i: int, delta: float) -> float:
    """Ratio for the quantum ``delta``, with i = #{s <= attained}."""
    n = len(hull.values)
    k = _count_up_to(hull.values, attained + delta)
    # without longer samples the product would be nan for an infinite delta
    beyond = delta * (n - k) if k < n else 0.0
    service = hull.sums[k] - hull.sums[i] - attained * (k - i) + beyond
    # the attained service is within a rounding error of the next sample
    if service <= 0.0:
        return math.inf
    return float((k - i) / service)


class MeanServiceIndex(Index):
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

    def of(self, attained: Floats) -> Floats:
        """Indices at several attained services (GPU-seconds), (jobs,)."""
        i = np.searchsorted(self.values, attained, side="right")
        longer = self.n - i
        service = np.where(longer > 0, self.sums[-1] - self.sums[i], 1.0)
        return longer / service


class TotalServiceIndex(Index):
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


class TotalServiceTable(Index):
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
        self.index = []
        pairs = zip(probabilities.tolist(), expected_services.tolist(), strict=True)
        for probability, service in pairs:
            per_service = _rounded(probability, 5) * 1e6 / service if service > 0 else 0.0
            self.index.append(_rounded(per_service, 4))
        self._entries = np.array([*self.index, 0.0])

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.value_list, attained)
        return self.index[i] if i < len(self.index) else 0.0

    def of(self, attained: Floats) -> Floats:
        """Indices at several attained services (GPU-seconds), (jobs,)."""
        entries: Floats = self._entries[np.searchsorted(self.values, attained, side="right")]
        return entries


def _rounded(value: float, digits: int) -> float:
    """Round a value of 0 or more, halves up, as Python 2 does."""
    step = Decimal(1).scaleb(-digits)
    return float(Decimal(value).quantize(step, rounding=ROUND_HALF_UP))
