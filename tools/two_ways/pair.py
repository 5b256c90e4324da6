"""A pair of ways to one result, and the comparison of two records."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from repro import Result

#: Difference of the two ways in one case; None: the case is set aside.
Difference = float | None


@dataclass(frozen=True)
class Pair:
    """Two ways to one result.

    Parameters
    ----------
    name : str
        Name in tables, tests and commands.
    first, second : str
        The two ways.
    bound : float
        Largest difference that is accepted; 0: the results are equal to the last bit.
    unit : str
        Unit of the difference, such as ``s``, ``relative`` or ``share`` (of time).
    compare : callable
        Function of generators, one for each case, that yields the difference of each case.
    quick : int
        Cases in the normal test suite.
    long : int
        Cases in the nightly suite, and by default in the table.
    aside : str
        Reason for which cases may be set aside; empty: none is.
    needs : tuple of str
        Optional packages that the pair needs.
    """

    name: str
    first: str
    second: str
    bound: float
    unit: str
    compare: Callable[[Sequence[np.random.Generator]], Iterator[Difference]]
    quick: int = 4
    long: int = 1000
    aside: str = ""
    needs: tuple[str, ...] = ()

    @property
    def statement(self) -> str:
        """What holds in every case."""
        return f"at most {self.bound:g} {self.unit}" if self.bound else "last bit"

    def accepts(self, difference: Difference) -> bool:
        """Whether a case keeps the statement. A case that is set aside needs a reason."""
        if difference is None:
            return bool(self.aside)
        return difference <= self.bound

    def differences(self, seed: int, cases: Sequence[int]) -> Iterator[Difference]:
        """Difference of each case, by number."""
        return self.compare([generator(self.name, seed, case) for case in cases])


def generator(name: str, seed: int, case: int) -> np.random.Generator:
    """Generator of a case: the same case is the same whatever else runs."""
    return np.random.default_rng([zlib.crc32(name.encode()), seed, case])


def one_by_one(
    compare: Callable[[np.random.Generator], Difference],
) -> Callable[[Sequence[np.random.Generator]], Iterator[Difference]]:
    """Comparison of many cases from the comparison of one."""

    def compare_all(generators: Sequence[np.random.Generator]) -> Iterator[Difference]:
        return map(compare, generators)

    return compare_all


def between(first: Any, second: Any) -> float:
    """Largest difference of two numbers or arrays; infinite if the shapes or gaps differ.

    >>> between([1.0, float("nan")], [1.5, float("nan")])
    0.5
    >>> between([1.0], [float("nan")])
    inf
    """
    one = np.asarray(first, float)
    other = np.asarray(second, float)
    if one.shape != other.shape:
        return np.inf
    is_equal = (one == other) | (np.isnan(one) & np.isnan(other))
    distances = np.abs(one[~is_equal] - other[~is_equal])
    # a gap on one side only
    distances[np.isnan(distances)] = np.inf
    return float(distances.max(initial=0.0))


def relative(first: Any, second: Any) -> float:
    """Largest difference of two numbers or arrays, relative to the larger of two entries.

    >>> relative([2.0, 0.0], [1.0, 0.0])
    0.5
    """
    one = np.asarray(first, float)
    other = np.asarray(second, float)
    if one.shape != other.shape:
        return np.inf
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), 1e-300)
    return between(one / size, other / size)


def frames(first: pd.DataFrame, second: pd.DataFrame, *, rtol: bool = False) -> float:
    """Largest difference of the numbers of two frames; infinite if anything else differs."""
    if list(first.columns) != list(second.columns) or len(first) != len(second):
        return np.inf
    largest = 0.0
    measure = relative if rtol else between
    for name in first.columns:
        one, other = first[name], second[name]
        if pd.api.types.is_numeric_dtype(one) and pd.api.types.is_numeric_dtype(other):
            largest = max(largest, measure(one, other))
        elif not one.reset_index(drop=True).equals(other.reset_index(drop=True)):
            return np.inf
    return largest


def records(first: Result, second: Result, *, rtol: bool = False) -> float:
    """Largest difference of the jobs and intervals of two runs."""
    return max(
        frames(first.jobs, second.jobs, rtol=rtol),
        frames(_in_order(first), _in_order(second), rtol=rtol),
    )


def _in_order(result: Result) -> pd.DataFrame:
    """Intervals by job and start: their order in the records is no part of a result."""
    return result.intervals.sort_values(["job_id", "start"], ignore_index=True)
