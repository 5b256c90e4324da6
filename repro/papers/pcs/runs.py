"""Simulations of PCS's testbed and of generated workloads, their statistics and points."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.figures.sweep import Case, MeasuredJobs, keep_all_records
from repro.files import public
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy
from repro.model.records import Result, finish_time_unfairness, prediction_errors
from repro.papers.pcs import artifact
from repro.papers.pcs.trials import Costs, TrialJobs

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

_PERCENTILES = (50, 80, 90, 95, 99)
#: Columns of the records of many runs.
_RECORDS = (
    *("submit_time", "end_time", "num_gpus", "duration"),
    *("jct", "predicted_jct", "fair_jct"),
)
#: Models of an app on the testbed, see `testbed`.
DIVISIBLE, TRIALS = "divisible", "trials"
#: Rules of the points of trials.
TRIAL_RULES = "pcs, app by trials"
#: Published numbers that the costs of trials are fitted on.
FITTED_ON = "average JCT of Fig 5a"
#: Names of the traces of the virtual clusters.
_VIRTUAL_CLUSTER = re.compile("pcs-[0-9a-f]{6}")


def job_metrics(result: Result) -> pd.DataFrame:
    """JCT (s), prediction error and unfairness (%) of every job."""
    jobs = result.jobs
    return pd.DataFrame(
        {
            "jct_s": jobs["jct"],
            "pred_err_pct": prediction_errors(jobs),
            "unfairness_pct": finish_time_unfairness(jobs),
        }
    )


def statistics_of(values: pd.Series[float], name: str) -> dict[str, float]:
    """Average, percentiles and maximum of a quantity, and the percentage of zeros."""
    statistics: dict[str, Any] = {
        f"p{percent}": values.quantile(percent / 100) for percent in _PERCENTILES
    }
    # zero up to rounding
    statistics |= {"avg": values.mean(), "max": values.max(), "zero": 100 * (values < 1e-6).mean()}
    return {f"{statistic}_{name}": float(value) for statistic, value in statistics.items()}


def measured(case: Case) -> dict[str, Any]:
    """Measure of a sweep: `statistics_of` of each column of `job_metrics`."""
    statistics: dict[str, Any] = {}
    for name, values in job_metrics(keep_all_records(case)).items():
        statistics |= statistics_of(values, str(name))
    return statistics


def traces(fig: FigureRun, jobs: int | None = None) -> dict[str, pd.DataFrame]:
    """First jobs, by default all, of the virtual clusters of Philly that a figure names."""
    for name in fig.inputs.traces:
        if not public.is_known(f"pcs-{name}"):
            clusters = [name[4:] for name in public.entries() if _VIRTUAL_CLUSTER.fullmatch(name)]
            raise ParamError(
                f"trace {name!r} is no virtual cluster of PCS, so it has no configuration; "
                f"accepted: {', '.join(clusters)}"
            )
    return {name: fig.trace(f"pcs-{name}").iloc[:jobs] for name in fig.inputs.traces}


def are_public(opened: Mapping[Any, pd.DataFrame]) -> bool:
    """Whether traces are the authors', none of them a stand-in."""
    return not any(trace.attrs.get("synthetic") for trace in opened.values())


def shipped(
    fig: FigureRun,
    opened: Mapping[str, pd.DataFrame],
    workers: int | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Records of all jobs under each series of a figure on each trace.

    The index is trace and series. PCS has the configurations that the authors ship for the trace.
    """
    cases = {
        (name, series): Case(
            trace,
            fig.inputs.cluster,
            artifact.policy(series, name),
            fig.inputs.rules,
            settings=settings,
        )
        for series in fig.inputs.series
        for name, trace in opened.items()
    }
    results = fig.sweep(cases, workers)
    records = {run: result.jobs for run, result in results.items()}
    joined: pd.DataFrame = pd.concat(records, names=["trace", "series"]).droplevel(-1)
    return joined


def partitioned(
    fig: FigureRun, jobs: pd.DataFrame, sizes: Sequence[float]
) -> tuple[pd.DataFrame, float]:
    """Records of jobs whose classes by size have GPUs of their own, and utilisation (%).

    GPUs are in proportion to the work of a class, at least one. Each class is first in, first out.
    """
    gpus = Cluster.parse(fig.inputs.cluster).num_gpus
    class_of_job = np.searchsorted(sizes, jobs["service"])
    shares = np.bincount(class_of_job, jobs["service"]) / jobs["service"].sum()
    own = np.maximum((shares * gpus).astype(int), 1)
    own[-1] += gpus - own.sum()
    if own[-1] < 1:
        raise ParamError(f"cluster: {gpus} GPUs are too few for {len(own)} classes; give more")
    parts = [
        fig.simulate(
            jobs[class_of_job == number],
            cluster=f"1x{own[number]}",
            policy="fifo-elastic",
            rules=fig.inputs.rules,
        )
        for number in np.unique(class_of_job)
    ]
    records = pd.concat([part.jobs for part in parts])
    span_s = records["end_time"].max() - records["submit_time"].min()
    held_s = sum(part.meta["held_s"] for part in parts)
    return records, float(100 * held_s / (gpus * span_s))


def has_unknown_configuration(fig: FigureRun, bars: pd.DataFrame) -> pd.Series[bool]:
    """Whether each bar of Fig 7 (x: trace, series) is of PCS and its configuration is not known."""
    is_known = [
        series in fig.inputs.plotted.get(name, {}) or not series.startswith("pcs")
        for name, series in zip(bars["x"], bars["series"], strict=True)
    ]
    return ~pd.Series(is_known, bars.index)


def plotted_policies(
    fig: FigureRun, whole_traces: Mapping[str, pd.DataFrame]
) -> dict[tuple[str, str], Policy]:
    """Policy of each bar of Fig 7, by trace and series.

    The input ``plotted`` has the configuration behind a bar where it is known: the series under
    which it was shipped, or the number of a solution of the search on the ``trained`` first jobs.
    Other bars have the configuration shipped for their series.
    """
    policies = {}
    for series, (name, trace) in itertools.product(fig.inputs.series, whole_traces.items()):
        choice = fig.inputs.plotted.get(name, {}).get(series, series)
        if isinstance(choice, str):
            settings = fig.inputs.settings.get(series, {})
            policies[name, series] = artifact.policy(choice, name, **settings)
        else:
            row = artifact.front(name).loc[choice]
            policies[name, series] = artifact.solution(row, trace.head(fig.inputs.trained))
    return policies


def trial_fits(fig: FigureRun, trace: pd.DataFrame) -> pd.DataFrame:
    """Costs of trials that a figure tries, with average JCTs (s) and misfit, the best first.

    Columns are start_s and epoch_s (inputs ``starts`` and ``epochs``), the series of Fig 5a, and
    misfit: the sum of squared logarithms of average JCT over published average JCT. The cluster is
    the paper's, also if the figure runs on another one.
    """
    published = artifact.published("5a").query("quantity == 'avg_jct_s'")
    average_jct = published.set_index("series")["published"]
    tried = list(itertools.product(fig.inputs.starts, fig.inputs.epochs))
    cases = {
        (*costs, name): _trial_case(
            fig, trace, name, Costs(*costs), fig.file_inputs.cluster, predicts=False
        )
        for name in average_jct.index
        for costs in tried
    }
    outcomes = fig.sweep(cases)
    rows = []
    for costs in tried:
        means = {name: outcomes[*costs, name].jobs["jct"].mean() for name in average_jct.index}
        logarithms = np.log(pd.Series(means) / average_jct)
        row = {"start_s": costs[0], "epoch_s": costs[1], **means}
        rows.append({**row, "misfit": float((logarithms**2).sum())})
    return pd.DataFrame(rows).sort_values("misfit", kind="stable", ignore_index=True)


def _trial_case(
    fig: FigureRun, trace: pd.DataFrame, name: str, costs: Costs, cluster: str, *, predicts: bool
) -> Case:
    """Case of a series of a testbed figure, simulated trial by trial on whole GPUs."""
    settings = dict(fig.inputs.series[name])
    if name.startswith("pcs-"):
        settings["turn"] = fig.inputs.turn
    policy = artifact.policy(name, "themis1-scaled", **settings)
    measure = TrialJobs(costs, predicts)
    return Case(trace, cluster, policy, "pcs", measure=measure)


def testbed(fig: FigureRun, trace: pd.DataFrame) -> pd.DataFrame:
    """Records of all jobs under each series of a figure, by two models.

    Column ``model`` names the model. In ``divisible``, an app is one divisible job without costs,
    as the authors simulate it. In ``trials``, an app is its trials (`repro.papers.pcs.trials`),
    with the best costs of `trial_fits`. Columns ``start_s`` and ``epoch_s`` are the costs.
    """
    best = trial_fits(fig, trace).iloc[0]
    costs = Costs(float(best["start_s"]), float(best["epoch_s"]))
    frames = []
    for name, settings in fig.inputs.series.items():
        policy = artifact.policy(name, "themis1-scaled", **settings)
        result = fig.simulate(trace, policy=policy, cluster=fig.inputs.cluster, rules="pcs")
        jobs = result.jobs[list(_RECORDS)]
        frames.append(jobs.assign(series=name, model=DIVISIBLE, start_s=0.0, epoch_s=0.0))
    cases = {
        name: _trial_case(fig, trace, name, costs, fig.inputs.cluster, predicts=True)
        for name in fig.inputs.series
    }
    for name, result in fig.sweep(cases).items():
        jobs = result.jobs[list(_RECORDS)]
        frames.append(jobs.assign(series=name, model=TRIALS, **dataclasses.asdict(costs)))
    return pd.concat(frames, ignore_index=True)


def generated(
    fig: FigureRun, changes: Mapping[Any, Mapping[str, Any]] | None = None, **settings: Any
) -> pd.DataFrame:
    """Records of all jobs under each series on each seed of a figure's workloads.

    The input ``workloads`` has, by label, the seeds of a workload, its ``options`` (see the
    generator pcs-workload), its ``configurations`` of PCS, and ``settings`` of series. The index is
    workload (label), seed, x and series. x is a key of ``changes``, whose values are settings for
    all policies, ``jobs`` or ``load``. Further ``settings`` are those of the simulations.
    """
    inputs = fig.inputs
    num_gpus = Cluster.parse(inputs.cluster).num_gpus
    cases = {}
    for (x, change), label in itertools.product((changes or {0: {}}).items(), inputs.workloads):
        workload = inputs.workloads[label]
        for seed, name in itertools.product(workload["seeds"], inputs.series):
            own_settings = workload.get("settings", {}).get(name, {})
            policy_settings = {**inputs.series[name], **own_settings, **change}
            options = {
                **workload["options"],
                "num_gpus": num_gpus,
                "jobs": policy_settings.pop("jobs", inputs.jobs),
                "load": policy_settings.pop("load", inputs.get("load")),
            }
            policy = artifact.policy(name, workload["configurations"], **policy_settings)
            cases[label, seed, x, name] = Case(
                "pcs-workload",
                inputs.cluster,
                policy,
                "pcs",
                seed,
                options,
                settings,
                measure=MeasuredJobs(),
            )
    # Themis takes longest, so it starts first
    order = sorted(cases, key=lambda label: label[-1] != "themis")
    results = fig.sweep({label: cases[label] for label in order}, inputs.workers)
    records = {label: results[label].jobs[list(_RECORDS)] for label in cases}
    keys = ["workload", "seed", "x", "series"]
    joined: pd.DataFrame = pd.concat(records, names=keys).droplevel(-1)
    return joined


def sampled_ranges(errors: pd.Series[float], share: float, rng: Generator, draws: int) -> Floats:
    """Range of the mean and of the 99th percentile over random samples of some errors, (2, 2).

    A sample has each error with probability ``share``. Rows are the mean and the percentile,
    columns the ends of the range that 95 % of the samples have.
    """
    values = errors.to_numpy(float)
    samples = [values[rng.random(len(values)) < share] for _ in range(draws)]
    if not all(map(len, samples)):
        raise ParamError(
            f"a random sample of {100 * share:g} % of {len(values)} errors is empty; give a larger "
            "share"
        )
    statistics = [(sample.mean(), np.percentile(sample, 99)) for sample in samples]
    ends: Floats = np.percentile(statistics, [2.5, 97.5], axis=0)
    return ends.T


def panels_of(jobs: pd.DataFrame) -> list[tuple[str, str]]:
    """Model and title of each panel of a testbed figure, from the records of `testbed`."""
    costs = jobs[jobs["model"] == TRIALS].iloc[0]
    words = f"start {costs['start_s']:g} s, report every {costs['epoch_s']:g} s"
    return [(DIVISIBLE, "(a) simulated without costs"), (TRIALS, f"(b) trials: {words}")]


def summary(jobs: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """`statistics_of` of a quantity by ``model`` and series."""
    groups = jobs.groupby(["model", "series"], sort=False)[quantity]
    statistics = {key: statistics_of(values, quantity) for key, values in groups}
    return pd.DataFrame(statistics).T.rename_axis(["model", "series"])


def points(
    ours: pd.DataFrame,
    published: pd.DataFrame,
    unit: str | Mapping[str, str],
    comparable: bool = True,
) -> pd.DataFrame:
    """Points of the quantities (columns) that two tables by series have in common."""
    values = published[[name for name in ours if name in published]].melt(
        ignore_index=False, var_name="quantity", value_name="published"
    )
    table = values.dropna().rename_axis("series").reset_index().assign(x=None, certainty="artifact")
    keys = zip(table["series"], table["quantity"], strict=True)
    table["ours"] = [ours.loc[key] if comparable else None for key in keys]
    return table.assign(unit=unit if isinstance(unit, str) else table["quantity"].map(unit))


def points_by_model(
    table: pd.DataFrame, published: pd.DataFrame, unit: str | Mapping[str, str], comparable: bool
) -> pd.DataFrame:
    """All `points` for each ``model`` of a `summary`; only trials are judged.

    The costs of the trials are fitted on the average JCTs of Fig 5a. Points of average JCTs are
    marked as fitted. Other points of the trials have `FITTED_ON` in the column ``fitted_on``.
    """
    frames = []
    for model in (DIVISIBLE, TRIALS):
        rows = table[table.index.get_level_values("model") == model].droplevel("model")
        frame = points(rows, published, unit, comparable)
        if model == DIVISIBLE:
            frames.append(frame.assign(aside=True, rules="pcs"))
            continue
        is_fitted = frame["quantity"] == "avg_jct_s"
        fitted_on = pd.Series(FITTED_ON, frame.index).mask(is_fitted)
        frames.append(frame.assign(fitted=is_fitted, fitted_on=fitted_on, rules=TRIAL_RULES))
    return pd.concat(frames, ignore_index=True)


def app_jct(trials: pd.DataFrame) -> pd.Series[float]:
    """JCT of each job of trials: from its submission to the end of its last trial (s).

    Examples
    --------
    >>> trials = pd.DataFrame(
    ...     {"app": [0, 0, 1], "submit_time": [0.0, 0.0, 5.0], "end_time": [9.0, 7.0, 8.0]}
    ... )
    >>> app_jct(trials).tolist()
    [9.0, 3.0]
    """
    apps = trials.groupby("app")
    jct: pd.Series[float] = apps["end_time"].max() - apps["submit_time"].min()
    return jct


def contention(jobs: pd.DataFrame) -> Floats:
    """Mean number of jobs in the system from each job's arrival to its end, (jobs,) (N in PCS).

    The mean is over events. The first event is the arrival of the job, which counts itself. Every
    other event counts the jobs just before it.
    """
    start, end = (jobs[name].to_numpy(float) for name in ("submit_time", "end_time"))
    change = np.append(np.ones(len(start)), -np.ones(len(end)))
    order = np.lexsort((change, np.append(start, end)))
    times = np.append(start, end)[order]
    before = np.cumsum(change[order]) - change[order]
    # positions of each job's arrival and end among the events
    first = np.argsort(order)[: len(start)]
    last = np.searchsorted(times, end)
    total = np.cumsum(before)
    return np.asarray((before[first] + 1 + total[last] - total[first]) / (1 + last - first))
