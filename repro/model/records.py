"""Records of a run: a row per job, and a row per interval in which a job holds GPUs."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.model.jobs import JobTable
from repro.model.rules import RULES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Nodes = tuple[tuple[int, int], ...]


class Intervals:
    """Intervals in which jobs hold GPUs, as rows of eight numbers.

    A row is job, first job of its group, start, end, GPUs that count against the cluster (divided
    by the number of jobs of the group), all GPUs that the job runs on, rate, and number of the GPU
    type in `types`.
    """

    def __init__(
        self, tracks_nodes: bool, gpu_types: Iterable[str], records_tasks: bool = False
    ) -> None:
        #: intervals of the engine, one after another
        self.rows = array("d")
        #: intervals of compiled functions, (8, intervals)
        self.blocks = list[Floats]()
        #: nodes of each interval; None if the placement does not track nodes
        self.nodes: list[Nodes] | None = [] if tracks_nodes else None
        #: node of each task by interval, parameter servers first; None unless policies choose nodes
        self.tasks: list[tuple[int, ...]] | None = [] if records_tasks else None
        names = [*sorted(gpu_types), None]
        self.types = dict(zip(names, [*range(len(names) - 1), -1], strict=True))

    def frame(self, ids: np.ndarray[Any, Any], clock_start_s: float) -> pd.DataFrame:
        """Frame of `Result.intervals`.

        ``ids`` are job ids by row number, and ``clock_start_s`` is the time of the trace at which
        the clock of the run starts.
        """
        blocks = [np.array(self.rows).reshape(-1, 8).T, *self.blocks]
        job, leader, start, end, gpus, used, rate, gpu_type = np.concatenate(blocks, axis=1)
        spans = pd.DataFrame(
            {
                "job_id": ids[job.astype(np.int64)],
                "start": start + clock_start_s,
                "end": end + clock_start_s,
                "gpus": gpus,
                "used": used,
                "rate": rate,
                "group": ids[leader.astype(np.int64)],
            }
        )
        if self.nodes is not None:
            # intervals of compiled functions have no nodes
            nodes = self.nodes + [()] * (len(spans) - len(self.nodes))
            spans["nodes"] = pd.Series(nodes, dtype=object)
        if self.tasks is not None:
            spans["tasks"] = pd.Series(self.tasks, dtype=object)
        if len(names := list(self.types)) > 1:
            types = [names[number] for number in gpu_type.astype(int).tolist()]
            spans["gpu_type"] = pd.Series(types, dtype=object)
        return spans


@dataclass(frozen=True)
class Result:
    """Records of one run.

    Parameters
    ----------
    jobs : DataFrame
        A row per job, in order of the trace. Times are seconds. Columns: job_id, submit_time,
        start_time, end_time, jct, num_gpus, duration (alone, on the demand), queueing
        (jct - duration), preemptions, promotions, and model if the trace has it.

        Further columns for divisible GPUs: fair_jct (in a fair share of the cluster; PCS, section
        2), predicted_jct (at arrival; NaN without a prediction), predicted_jct_low and
        predicted_jct_high (bounds of the prediction interval, on request), and job_class (from 0,
        under a policy with classes).
    intervals : DataFrame
        A row per interval. If the run ends early (``until``, ``stop_time``), open intervals end
        with it. Columns: job_id, start, end (s), gpus (GPUs that count against the cluster, divided
        by the number of jobs of the group), used (all GPUs that the job runs on), rate (speed
        relative to running alone), group (id of the first job of its group).

        Further columns: nodes (if the placement tracks nodes), tasks (node of each task, parameter
        servers first, if policies choose nodes), gpu_type (if the cluster has types; None
        for several types at once, or no chosen type).
    meta : dict
        policy, settings (of the policy), trace, cluster, num_gpus, rules, placement, overhead_s
        (seconds that jobs spend on starts, saves and restarts, on work that a failure undoes, and
        on checkpoints when they are preempted), held_s (GPU-seconds that all jobs together held;
        None: the sum over the intervals), wall_s (time of the run without compilation),
        predict_interval (on request), rollout_reason (why predictions are rollouts and there is no
        fair_jct; empty if they are not, or nothing is predicted), and three entries of `summary`:
        ignored, notes, stand_in.

    Examples
    --------
    >>> import repro
    >>> from repro.testing import small_trace
    >>> result = repro.simulate(small_trace(), "1x4", "srtf")
    >>> result.jobs[["job_id", "start_time", "end_time", "jct", "queueing"]].head(2)
       job_id  start_time  end_time   jct  queueing
    0       0         0.0      10.0  10.0       0.0
    1       1         1.0       5.0   4.0       0.0
    >>> result.intervals[["job_id", "start", "end", "gpus"]].tail(1)
       job_id  start   end  gpus
    6       2   35.0  46.0   4.0
    """

    jobs: pd.DataFrame
    intervals: pd.DataFrame
    meta: dict[str, Any] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Summary as a table, as JupyterLab shows it."""
        rows = {name: value for name, value in self.summary().items() if value not in ({}, [])}
        shown = {
            name: f"{value:,.6g}" if isinstance(value, float) else str(value)
            for name, value in rows.items()
        }
        return str(pd.DataFrame({"result": shown}).to_html(border=0, justify="left"))

    def plot(self, chart: str = "jct", **window: float) -> Figure:
        """Draw the run.

        Parameters
        ----------
        chart : {"jct", "utilisation", "gantt"}
            Distribution of the JCT, GPUs in use over time, or a bar per interval of a job.
        **window : float
            ``start`` and ``end`` (s) of the part to draw, for ``utilisation`` and ``gantt``.

        Returns
        -------
        matplotlib.figure.Figure
            The picture. Needs the extra ``figures``.

        Raises
        ------
        ParamError
            If the chart is unknown, the run has no intervals, no job runs in the window, or a Gantt
            chart would have more than 40 jobs.

        Examples
        --------
        >>> import repro
        >>> from repro.testing import small_trace
        >>> result = repro.simulate(small_trace(), "2x4", "srtf")
        >>> result.plot("gantt").axes[0].get_xlabel()
        'time (s)'
        """
        # repro.plot is a higher layer and takes a second to import
        charts = importlib.import_module("repro.plot.result_charts")
        figure: Figure = charts.plot_result(self, chart, **window)
        return figure

    def summary(self) -> dict[str, Any]:
        """Headline numbers, as ``repro simulate --json`` prints them.

        Returns
        -------
        dict
            policy, trace, cluster, n_jobs, n_finished, avg_jct, median_jct, p95_jct, p99_jct,
            makespan, avg_queueing (s; percentiles interpolate linearly), preemptions, utilisation
            (GPU-seconds that jobs hold, divided by number of GPUs x time from the first submission
            to the last completion; NaN if a job has not finished), wall_s, ignored (inputs that the
            run did not use), notes (remarks of loader and run about the input), stand_in (data that
            replaces public data). Under the rule set ``muri`` the makespan counts from time 0, and
            p99_jct is not interpolated.

            Predictions add avg_pred_err and p99_pred_err (%), and divisible GPUs avg_unfairness and
            max_unfairness (%).
            Prediction intervals add interval_coverage (fraction of intervals that contain the
            JCT), interval_width (median of width over prediction) and without_interval (predicted
            jobs without an interval).
        """
        jobs = self.jobs
        meta = self.meta
        jct = jobs["jct"].dropna().to_numpy()
        makespan_s = makespan(self)
        # a run without intervals has the sum of its GPU-seconds in `meta`
        held_gpu_s = meta.get("held_s") or float((self.intervals["gpus"] * durations(self)).sum())
        all_finished = len(jct) == len(jobs)
        utilisation = np.nan
        if makespan_s > 0 and held_gpu_s > 0 and all_finished:
            utilisation = held_gpu_s / (meta["num_gpus"] * makespan_s)
        percentiles = np.percentile(jct, [50, 95, 99]) if len(jct) else [np.nan] * 3
        if len(jct) and RULES[meta.get("rules", "paper")].p99_by_index:
            percentiles[2] = percentile_by_index(jct, 0.99)
            # this rule counts the makespan from time 0
            makespan_s = float(jobs["end_time"].max())
        return {
            "policy": meta["policy"],
            "trace": meta["trace"],
            "cluster": meta["cluster"],
            "n_jobs": len(jobs),
            "n_finished": len(jct),
            "avg_jct": float(jct.mean()) if len(jct) else float("nan"),
            "median_jct": float(percentiles[0]),
            "p95_jct": float(percentiles[1]),
            "p99_jct": float(percentiles[2]),
            "makespan": makespan_s,
            "avg_queueing": float(jobs["queueing"].mean()),
            "preemptions": int(jobs["preemptions"].sum()),
            "utilisation": utilisation,
            **_predictability(jobs),
            **(_prediction_intervals(jobs) if "predicted_jct_low" in jobs else {}),
            "wall_s": meta["wall_s"],
            "ignored": meta.get("ignored", {}),
            "notes": meta.get("notes", []),
            "stand_in": meta.get("stand_in", []),
        }


def prediction_errors(jobs: pd.DataFrame) -> pd.Series[float]:
    """Prediction error of each job (%): 100 |JCT - predicted JCT| / predicted JCT (PCS, section 2).

    Parameters
    ----------
    jobs : DataFrame
        Records with jct and predicted_jct (s); NaN without a prediction.
    """
    return 100 * (jobs["jct"] - jobs["predicted_jct"]).abs() / jobs["predicted_jct"]


def finish_time_unfairness(jobs: pd.DataFrame) -> pd.Series[float]:
    """Unfairness of each job (%): max(0, 100 (JCT / fair JCT - 1)) (PCS, section 2).

    Parameters
    ----------
    jobs : DataFrame
        Records with jct and fair_jct (s). The fair JCT is work on one GPU / min(G / N, demand),
        with G GPUs and N the mean number of jobs present over the events of the job's life.
    """
    return percent_over_fair(jobs["jct"], jobs["fair_jct"])


def percent_over_fair(
    jct: pd.Series[float], fair_jct: pd.Series[float] | Floats
) -> pd.Series[float]:
    """Increase of each JCT over the fair JCT (%), at least 0."""
    increase: pd.Series[float] = jct / fair_jct - 1
    return (100 * increase).clip(lower=0)


def _predictability(jobs: pd.DataFrame) -> dict[str, float]:
    """Summary of prediction errors and unfairness (%), as far as the records have them."""
    numbers: dict[str, float] = {}
    if "predicted_jct" in jobs:
        errors = prediction_errors(jobs)
        numbers |= {
            "avg_pred_err": float(errors.mean()),
            "p99_pred_err": float(errors.quantile(0.99)),
        }
    if "fair_jct" in jobs:
        unfairness = finish_time_unfairness(jobs)
        numbers |= {
            "avg_unfairness": float(unfairness.mean()),
            "max_unfairness": float(unfairness.max()),
        }
    return numbers


def _prediction_intervals(jobs: pd.DataFrame) -> dict[str, float]:
    """Summary of the prediction intervals."""
    low, high, predicted = (jobs[f"predicted_jct{end}"] for end in ("_low", "_high", ""))
    # instants are exact to a microsecond
    covered = jobs["jct"].between(low - 1e-6, high + 1e-6)[low.notna() & jobs["jct"].notna()]
    return {
        "interval_coverage": float(covered.mean()),
        "interval_width": float(((high - low) / predicted).median()),
        "without_interval": int((predicted.notna() & low.isna()).sum()),
    }


def percentile_by_index(values: pd.Series[float] | Floats, share: float) -> float:
    """Element floor(share * N) of the ascending list, the percentile of Muri's artifact."""
    data = np.sort(np.asarray(values, dtype=float))
    return float(data[int(share * len(data))])


def durations(result: Result) -> pd.Series[float]:
    """Length of each interval (s)."""
    return result.intervals["end"] - result.intervals["start"]


def makespan(result: Result) -> float:
    """Makespan: last completion minus first submission (s)."""
    return float(result.jobs["end_time"].max() - result.jobs["submit_time"].min())


def collect(
    table: JobTable,
    intervals: Intervals,
    meta: dict[str, Any],
    columns: Mapping[str, np.ndarray[Any, Any]],
) -> Result:
    """Make a `Result` from the job table and the intervals, with jobs in the order of the trace.

    ``columns`` are added to the records of jobs, with an entry per row of the table.
    """
    frame = table.frame
    submit = np.array(table.submit)
    end = np.array(table.end)
    duration = np.array(table.work) * np.array(table.solo)
    start = np.array(table.first_start)
    by_row: dict[str, Any] = {
        "job_id": frame["job_id"].array,
        "submit_time": submit + table.clock_start_s,
        "start_time": np.where(np.isinf(start), np.nan, start) + table.clock_start_s,
        "end_time": end + table.clock_start_s,
        "jct": end - submit,
        "num_gpus": np.array(table.gpus),
        "duration": duration,
        "queueing": end - submit - duration,
        "preemptions": np.array(table.preemptions),
        "promotions": np.array(table.promotions),
    }
    if "model" in frame:
        by_row["model"] = frame["model"].array
    by_row |= columns
    row_of_position = np.argsort(table.positions)
    jobs = pd.DataFrame({name: values[row_of_position] for name, values in by_row.items()})
    spans = intervals.frame(frame["job_id"].to_numpy(), table.clock_start_s)
    return Result(jobs, spans, meta)
