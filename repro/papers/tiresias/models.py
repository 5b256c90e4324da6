"""Tiresias's ten models: tensor skew over parameter servers, checkpoint cost, resume cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from repro.base.errors import ParamError
from repro.base.extras import needed_for
from repro.base.typing import Flags, Floats
from repro.files.tables import ModelTable


def tensor_sizes() -> dict[str, list[float]]:
    """Sizes (MB) of each published model's tensors of at least 1 MB, in graph order."""
    table = ModelTable("tiresias_tensors.csv", ("model", "size_mb", "times")).frame
    tensors = table.loc[table.index.repeat(table["times"])]
    groups = tensors.groupby("model", sort=False)["size_mb"]
    return {str(model): sizes.tolist() for model, sizes in groups}


def server_skew(tensors: Sequence[float], servers: int) -> float:
    """Largest load of a server over the mean load; tensors are dealt round robin (section 3.3)."""
    if servers < 1 or not tensors:
        raise ParamError(
            f"{len(tensors)} tensors on {servers} parameter servers; need at least one of each"
        )
    loads = [sum(tensors[first::servers]) for first in range(servers)]
    return max(loads) * servers / sum(loads)


def pack_limit(skews: npt.ArrayLike, loses: npt.ArrayLike) -> float:
    """PACKLIMIT from a history of placements: the skew that a linear classifier separates by.

    The classifier is the linear support vector machine without slack. The paper chooses PACKLIMIT
    by a linear classifier (section 3.3) and does not say which.

    Parameters
    ----------
    skews : array_like
        Skew of each job of the history, (jobs,).
    loses : array_like
        Whether the job trained slower when it was spread, (jobs,).

    Raises
    ------
    ParamError
        If every job of the history loses, or none.

    Examples
    --------
    >>> round(pack_limit([0.1, 0.2, 0.6, 0.9], [False, False, True, True]), 3)
    0.4
    """
    loses = np.asarray(loses, dtype=bool)
    losers = int(loses.sum())
    if losers in (0, len(loses)):
        raise ParamError(
            f"history: {losers} of {len(loses)} jobs lose; PACKLIMIT separates jobs that lose from "
            "others: give some of both"
        )
    # slow to load, and no other part of the paper needs it
    with needed_for("the linear classifier of PACKLIMIT"):
        from sklearn.svm import SVC

    classifier = SVC(kernel="linear", C=1e9).fit(np.reshape(skews, (-1, 1)), loses)
    return float(-classifier.intercept_[0] / classifier.coef_[0, 0])


def predicted_to_lose(skews: npt.ArrayLike, loses: npt.ArrayLike) -> Flags:
    """Whether each job is predicted to lose, with PACKLIMIT from all other jobs, (jobs,)."""
    skews = np.asarray(skews, dtype=float)
    loses = np.asarray(loses, dtype=bool)
    others = ~np.eye(len(skews), dtype=bool)
    limits = [pack_limit(skews[rows], loses[rows]) for rows in others]
    return skews > limits


@dataclass(frozen=True)
class Fit:
    """A least-squares fit: intercept, a slope per column, share of variance explained.

    The share is NaN for a constant quantity, which has no variance.
    """

    intercept: float
    slopes: tuple[float, ...]
    r2: float
    #: corrected for the number of columns
    adjusted_r2: float
    #: observed - fitted
    residuals: tuple[float, ...]

    def at(self, *columns: npt.ArrayLike) -> Floats:
        """Fitted values at other points."""
        terms = (slope * np.asarray(x) for slope, x in zip(self.slopes, columns, strict=True))
        return np.asarray(self.intercept + sum(terms), dtype=float)


def linear_fit(observed: npt.ArrayLike, *columns: npt.ArrayLike) -> Fit:
    """Fit a quantity by least squares as a constant plus a multiple of each column."""
    y = np.asarray(observed, dtype=float)
    matrix = np.column_stack([np.ones(len(y)), *(np.asarray(c, dtype=float) for c in columns)])
    solution, *_ = np.linalg.lstsq(matrix, y, rcond=None)
    residuals = y - matrix @ solution
    # the mean of equal floats may differ from them by rounding
    is_constant = bool((y == y[:1]).all())
    variation = float("nan") if is_constant else float(((y - y.mean()) ** 2).sum())
    r2 = 1 - float(residuals @ residuals) / variation
    freedom = len(y) - matrix.shape[1]
    adjusted = 1 - (1 - r2) * (len(y) - 1) / freedom if freedom else float("nan")
    intercept, *slopes = solution.tolist()
    return Fit(intercept, tuple(slopes), r2, adjusted, tuple(residuals.tolist()))
