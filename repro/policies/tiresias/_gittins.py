"""Gittins indices of an empirical service distribution (Tiresias Pseudocode 1)."""

from bisect import bisect_right
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from repro.base.typing import Array

#: Index of a job by its attained service (GPU-seconds), larger first; 0 beyond the last sample.
Index = Callable[[float], float]


class _Samples:
    """Known services in ascending order, and what the first of them add up to."""

    def __init__(self, samples: Array) -> None:
        self.values = np.sort(samples)
        self.n = len(self.values)
        self.sums = np.concatenate([[0.0], np.cumsum(self.values)])
        self.samples: list[float] = self.values.tolist()
        self.prefix: list[float] = self.sums.tolist()


class GittinsIndex(_Samples):
    """G(a) = sup over D of P(S - a <= D | S > a) / E[min(S - a, D) | S > a].

    Built in O(n log n), looked up in O(log n) plus a short walk along a convex hull: with
    X_l = sum_j min(s_j, s_l), the ratio for D = s_l - a is the slope from (C_i + a (n - i), i) to
    (X_l, l), so that the supremum is a tangent to the upper hull of the points behind i.

    ``samples`` are total services of past jobs, ``delta`` a fixed quantum D instead of the
    supremum (GPU-seconds). Tiresias, NSDI 2019, section 3.2.1 and Pseudocode 1.
    """

    def __init__(self, samples: Array, delta: float | None = None) -> None:
        super().__init__(samples)
        self.delta = delta
        if delta is None:
            self._hull(self.values)

    def _hull(self, values: Array) -> None:
        """Link every sample to the next vertex of the upper hull of the points behind it."""
        ranks = np.arange(1, self.n + 1)
        x = self.sums[1:] + values * (self.n - ranks)
        # equal samples make one point: the last of them
        last = np.append(values[1:] > values[:-1], True)
        self.x: list[float] = x[last].tolist()
        self.y: list[int] = ranks[last].tolist()
        self.unique: list[float] = values[last].tolist()
        count = len(self.x)
        self.next = [count] * count
        for i in range(count - 2, -1, -1):
            j = i + 1
            while self.next[j] < count and self._slope(i, self.next[j]) >= self._slope(i, j):
                j = self.next[j]
            self.next[i] = j

    def _slope(self, i: int, j: int) -> float:
        return (self.y[j] - self.y[i]) / (self.x[j] - self.x[i])

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.samples, attained)
        if i == self.n:
            return 0.0
        if self.delta is not None:
            return self._fixed(attained, i, self.delta)
        base = self.prefix[i] + attained * (self.n - i)
        vertex = bisect_right(self.unique, attained)
        best = 0.0
        while vertex < len(self.x):
            slope = (self.y[vertex] - i) / (self.x[vertex] - base)
            if slope < best:
                break
            best = slope
            vertex = self.next[vertex]
        return best

    def _fixed(self, attained: float, i: int, delta: float) -> float:
        """Return the ratio for one quantum; ``i`` samples are no larger than ``attained``."""
        k = bisect_right(self.samples, attained + delta)
        tail = delta * (self.n - k) if k < self.n else 0.0
        served = self.prefix[k] - self.prefix[i] - attained * (k - i) + tail
        return (k - i) / served


class MeanServiceIndex(_Samples):
    """G(a) = 1 / E[S | S > a], an index that drops as a job passes each known service time.

    This, not the literal formula, yields the 2D-Gittins schedule drawn in Tiresias Figure 7.
    """

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.samples, attained)
        n = self.n
        return (n - i) / (self.prefix[n] - self.prefix[i]) if i < n else 0.0


class TotalServiceIndex(_Samples):
    """sup over D of P(S - a <= D | S > a) / E', where E' takes S where it should take S - a.

    The ratio the public simulator computes, without its roundings and with the supremum instead of
    one quantum. Like `MeanServiceIndex`, it drops as a job passes a known service time.
    """

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.samples, attained)
        if i == self.n:
            return 0.0
        ends = np.unique(self.values[i:])
        k = np.searchsorted(self.values, ends, side="right")
        served = self.sums[k] - self.sums[i] + (ends - attained) * (self.n - k)
        return float(((k - i) / served).max())


class TotalServiceTable(_Samples):
    """The public simulator's table: one quantum, expectation of S instead of S - a, rounded.

    For a sample v with a = v - 1: P = share of longer jobs ending within the quantum (5 decimals),
    E = floor of the mean of min(S, quantum) as the simulator forms it, index = 1e6 P / E (4
    decimals); a job reads the entry of the first sample above its attained service.
    """

    def __init__(self, samples: Array, delta: float) -> None:
        super().__init__(samples)
        n = self.n
        values = self.values
        prefix = self.sums
        attained = values - 1
        i = np.searchsorted(values, attained, side="right")
        k = np.where(
            attained + delta > values[-1] - 1,
            n - 1,
            np.searchsorted(values, attained + delta, side="right"),
        )
        mean = np.floor((prefix[k] - prefix[i] + delta * (n - k)) / (n - i))
        self.index = [
            _rounded(_rounded(share, 5) * 1e6 / expected, 4) if expected > 0 else 0.0
            for share, expected in zip(((k - i) / (n - i)).tolist(), mean.tolist(), strict=True)
        ]

    def __call__(self, attained: float) -> float:
        i = bisect_right(self.samples, attained)
        return self.index[i] if i < len(self.index) else 0.0


def _rounded(value: float, digits: int) -> float:
    """Round half away from zero, as the simulator's language does (index and share are >= 0)."""
    step = Decimal(1).scaleb(-digits)
    return float(Decimal(value).quantize(step, rounding=ROUND_HALF_UP))
