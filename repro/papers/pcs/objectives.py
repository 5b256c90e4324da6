"""Objectives of a preference: an average or a percentile of a metric over jobs."""

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.base.errors import ParamError
from repro.model.records import finish_time_unfairness, prediction_errors

#: Metric -> its values by job, and its unit.
_METRICS: dict[str, tuple[Any, str]] = {
    "jct": (lambda jobs: jobs["jct"], "s"),
    "pred_err": (prediction_errors, "pct"),
    "unfairness": (finish_time_unfairness, "pct"),
    "preemptions": (lambda jobs: jobs["preemptions"], ""),
}
#: The metric that needs predictions; its values are never negative.
PREDICTED = "pred_err"
#: The metric that needs fair JCTs.
UNFAIRNESS = "unfairness"


@dataclass(frozen=True)
class Objective:
    """Average or percentile of a metric over all jobs or one group; less is better.

    Parameters
    ----------
    metric : {"jct", "pred_err", "unfairness", "preemptions"}
        JCT (s), prediction error (%), JCT in excess of the fair JCT (%), preemptions of a job.
    measure : "avg" or float
        Average, or a percentile, 0 to 100.
    limit : float, optional
        Largest accepted value.
    among : str
        Only jobs with this value in the column ``prefers``; by default all.

    Raises
    ------
    ParamError
        If metric, measure or limit is not accepted.

    References
    ----------
    PCS, arXiv 2401.10354, section 3.1.

    Examples
    --------
    >>> Objective("pred_err", 99).name
    'p99_pred_err_pct'
    """

    metric: str
    measure: str | float = "avg"
    limit: float | None = None
    among: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str) or self.metric not in _METRICS:
            raise ParamError(f"no metric {self.metric!r:.60}; accepted: {', '.join(_METRICS)}")
        if self.measure != "avg" and not (
            _is_number(self.measure) and 0 <= float(self.measure) <= 100
        ):
            raise ParamError(
                f"{self.metric}: the measure is {self.measure!r}; give avg or a percentile, 0 to "
                f"100"
            )
        if self.limit is not None and not (_is_number(self.limit) and self.limit > 0):
            raise ParamError(f"{self.metric}: the limit is {self.limit!r}; give a number above 0")

    @property
    def name(self) -> str:
        """Name of a column, with the unit."""
        measure = "avg" if self.measure == "avg" else f"p{self.measure:g}"
        among = f"_{self.among}" if self.among else ""
        unit = _METRICS[self.metric][1]
        return f"{measure}_{self.metric}{among}{f'_{unit}' if unit else ''}"

    def of(self, jobs: pd.DataFrame) -> float:
        """Compute the value; a job without a prediction counts as error 0.

        Parameters
        ----------
        jobs : DataFrame
            Records, with the column ``prefers`` for an objective among one group.
        """
        if self.among:
            if self.among not in set(jobs.get("prefers", ())):
                raise ParamError(
                    f"no job prefers {self.among!r}; name it in the trace's column prefers"
                )
            jobs = jobs[jobs["prefers"] == self.among]
        values = _METRICS[self.metric][0](jobs)
        if self.metric == PREDICTED:
            values = values.fillna(0.0)
        if isinstance(self.measure, str):
            return float(values.mean())
        return float(values.quantile(self.measure / 100))


def _is_number(value: object) -> bool:
    """Whether a value is a real number; Boolean values are not numbers."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def parse(wishes: Sequence[Any]) -> tuple[Objective, ...]:
    """Objectives of a preference.

    Parameters
    ----------
    wishes : sequence
        Objectives, each an `Objective`, (metric, measure) or (metric, measure, limit). The first
        is the most important.

    Raises
    ------
    ParamError
        If there is no objective, or an objective is unknown or occurs twice.

    Examples
    --------
    >>> [objective.name for objective in parse([("jct", "avg"), ("pred_err", 99)])]
    ['avg_jct_s', 'p99_pred_err_pct']
    """
    if not isinstance(wishes, Iterable | Objective):
        raise ParamError(
            f"a preference is {wishes!r:.60}; give a list of (metric, measure), such as "
            "[('jct', 'avg')]"
        )
    entries = [wishes] if isinstance(wishes, str | Objective) else list(wishes)
    if not entries:
        raise ParamError("a preference has no objective; give at least one, such as ('jct', 'avg')")
    objectives = []
    for wish in entries:
        if not isinstance(wish, Objective) and not (
            isinstance(wish, Sequence) and not isinstance(wish, str) and 2 <= len(wish) <= 3
        ):
            raise ParamError(
                f"an objective is {wish!r}; give (metric, measure), such as ('pred_err', 99)"
            )
        objectives.append(wish if isinstance(wish, Objective) else Objective(*wish))
    names = [objective.name for objective in objectives]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ParamError(
            f"a preference names {min(repeated)} twice; name each objective once, with one limit"
        )
    return tuple(objectives)
