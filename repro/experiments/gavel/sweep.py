"""Gavel's sweeps: one simulation per series, job rate and seed, each remembered on its own."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from repro.core.records import Result
from repro.experiments.gavel.cases import Case, case, digest, measure, own_files, solver_note

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

_SAY_EVERY_S = 10.0


class Point(NamedTuple):
    """A place in a chart and what is simulated for it."""

    series: str
    x: float
    case: Case


def rate_points(inputs: Mapping[str, Any], seed: int = 0) -> list[Point]:
    """Return the points of a sweep over job rates.

    Parameters
    ----------
    inputs : mapping
        trace, options, cluster, seeds, measured, rates (jobs per hour on the paper's cluster),
        scale (the cluster is so many times smaller, and so are the rates simulated), rules,
        rounds, throughputs, and series: label to policy, settings, rules, rounds, cluster,
        options, rates, seeds and ``to`` (the last rate).
    seed : int
        Added to each of ``seeds``.

    Returns
    -------
    list of Point
        The highest rates, which take longest, first.

    Raises
    ------
    ParamError
        If a series sets something else.

    Examples
    --------
    >>> inputs = dict(trace="gavel-single", options={}, cluster="3xv100", seeds=[0], scale=3,
    ...               measured=[4, 9], rates=[0.6, 1.2], rules="gavel", rounds={},
    ...               throughputs="gavel-throughputs", series={"gavel-las": {"to": 1.0}})
    >>> [(p.series, p.x, round(p.case.options["rate"], 9)) for p in rate_points(inputs)]
    [('gavel-las', 0.6, 0.2)]
    """
    points = []
    for label, given in inputs["series"].items():
        known = dict(given)
        last, rates = known.pop("to", math.inf), known.pop("rates", inputs["rates"])
        seeds = known.pop("seeds", inputs["seeds"])
        base = case(inputs, label, known)
        first_job, last_job = inputs["measured"]
        base = replace(base, measured=(int(first_job), int(last_job)))
        points += [
            Point(label, float(rate), _at(base, seed + each, rate=rate / inputs["scale"]))
            for rate in rates
            for each in seeds
            if rate <= last + 1e-9
        ]
    return sorted(points, key=lambda point: -point.x)


def size_points(inputs: Mapping[str, Any], seed: int = 0) -> list[Point]:
    """Return the points of a sweep over numbers of jobs that are all there at time 0.

    Parameters
    ----------
    inputs : mapping
        As for :func:`rate_points`, with ``jobs`` in place of rates and measured jobs; ``scale``
        divides them.
    seed : int
        Added to each of ``seeds``.

    Returns
    -------
    list of Point

    Examples
    --------
    >>> inputs = dict(trace="gavel-static", options={}, cluster="3xv100", seeds=[0], scale=3,
    ...               jobs=[30], rules="gavel", rounds={}, throughputs="gavel-throughputs",
    ...               series={"gavel-las": {}})
    >>> size_points(inputs)[0].case.options
    {'jobs': 10}
    """
    points = [
        Point(label, float(jobs), _at(base, seed + each, jobs=round(jobs / inputs["scale"])))
        for label, given in inputs["series"].items()
        for base in [case(inputs, label, given)]
        for jobs in inputs["jobs"]
        for each in inputs["seeds"]
    ]
    return sorted(points, key=lambda point: -point.x)


def over(jobs: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return the jobs with their finish-time fairness: JCT over that under a reference.

    Parameters
    ----------
    jobs : DataFrame
        From :func:`run_points`.
    reference : str
        Series that is divided by: each job alone on its share of the cluster.

    Returns
    -------
    DataFrame
        With a column ``ftf``, NaN where the reference was not run at the same place and seed.

    References
    ----------
    Gavel, OSDI 2020, section 4.2; Themis, NSDI 2020.

    Examples
    --------
    >>> rows = {"series": ["a", "r"], "x": 1.0, "seed": 0, "job_id": 7, "jct_h": [3.0, 4.0]}
    >>> over(pd.DataFrame(rows), "r")["ftf"].tolist()
    [0.75, 1.0]
    """
    where = ["x", "seed", "job_id"]
    base = jobs.loc[jobs["series"] == reference, [*where, "jct_h"]].set_index(where)["jct_h"]
    under = base.reindex(pd.MultiIndex.from_frame(jobs[where])).to_numpy()
    return jobs.assign(ftf=jobs["jct_h"] / under)


def makespans(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return when the last job of every point and seed ended.

    Examples
    --------
    >>> rows = {"series": "a", "x": 9.0, "seed": [0, 0], "end_h": [3.0, 5.0]}
    >>> makespans(pd.DataFrame(rows))["makespan_h"].tolist()
    [5.0]
    """
    ends = jobs.groupby(["series", "x", "seed"], sort=False)["end_h"].max()
    return ends.rename("makespan_h").reset_index()


def by_weight(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with each series split into ``(low)`` and ``(high)`` priority weights.

    Examples
    --------
    >>> by_weight(pd.DataFrame({"series": "a", "priority_weight": [1.0, 5.0]}))["series"].tolist()
    ['a (low)', 'a (high)']
    """
    part = jobs["priority_weight"].gt(1).map({False: " (low)", True: " (high)"})
    return jobs.assign(series=jobs["series"] + part)


def unfinished(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the points at which measured jobs wait without end, and how many jobs.

    Parameters
    ----------
    jobs : DataFrame
        From :func:`run_points`.

    Returns
    -------
    DataFrame
        series, x, jobs (over all seeds).

    Examples
    --------
    >>> jobs = pd.DataFrame({"series": "a", "x": [1.0, 2.0], "jct_h": [3.0, math.nan]})
    >>> unfinished(jobs).to_numpy().tolist()
    [['a', 2.0, 1]]
    """
    count = jobs["jct_h"].isna().groupby([jobs["series"], jobs["x"]], sort=False).sum()
    return count[count > 0].rename("jobs").reset_index()


def note_traces(fig: FigureRun, points: Iterable[Point]) -> None:
    """Record in a figure which traces and throughput tables its points use.

    Of the traces of a seed, which differ in length and rate, that of one point is recorded.

    Parameters
    ----------
    fig : FigureRun
        The figure.
    points : iterable of Point
        What it simulates.
    """
    points = list(points)
    cases = [point.case for point in points]
    for seed, chosen in {chosen.seed: chosen for chosen in cases}.items():
        fig.trace(chosen.trace, seed=seed, **{"jobs": 1, **chosen.options})
    for name in dict.fromkeys(chosen.throughputs for chosen in cases):
        fig.throughputs(name)
    for path in dict.fromkeys(path for chosen in cases for path in own_files(chosen)):
        fig.file(path)
    if without := {point.series: None for point in points if point.case.solver_replaced}:
        fig.note(solver_note(without))


def _at(base: Case, seed: int, **load: Any) -> Case:
    return replace(base, seed=int(seed), options={**base.options, **load})


def run_points(points: Sequence[Point], workers: int | None = None) -> pd.DataFrame:
    """Simulate the points that are not remembered, in parallel, and return all measured jobs.

    Parameters
    ----------
    points : sequence of Point
        From :func:`rate_points` or :func:`size_points`.
    workers : int, optional
        Processes on this machine; None: as many as CPUs. With the environment variable
        ``REPRO_SCHEDULER`` the workers of that dask scheduler run the points instead.

    Returns
    -------
    DataFrame
        series, x, seed, job_id, submit_h, end_h, jct_h, duration_h, num_gpus, and weight and SLO
        of traces that have them; in the order of ``points``. Hours.
    """
    import joblib

    digests = [digest(point.case) for point in points]
    # Several series may share a case, such as the rounds of six minutes in two figures.
    cases = {name: point.case for name, point in zip(digests, points, strict=True)}
    kept = {name: held for name, case in cases.items() if (held := _held(name)) is not None}
    # queues at high rates make long runs; those that begin first leave no processor idle at the end
    sizes = {name: point.x for name, point in zip(digests, points, strict=True)}
    missing = sorted((name for name in cases if name not in kept), key=sizes.__getitem__)[::-1]
    with _workers(len(missing), workers) as settings:
        parallel = joblib.Parallel(return_as="generator_unordered", **settings)
        tasks = (joblib.delayed(_named)(name, cases[name]) for name in missing)
        for name, result in _told(parallel(tasks) if missing else (), len(kept), len(cases)):
            kept[name] = _keep(name, result)
    frames = [
        kept[name].jobs.assign(series=point.series, x=point.x, seed=point.case.seed)
        for name, point in zip(digests, points, strict=True)
    ]
    table = pd.concat(frames, ignore_index=True)
    order = ["series", "x", "seed"]
    return table[[*order, *(column for column in table if column not in order)]]


class _Missing(Exception):
    """Nothing is remembered under this key."""


def _held(name: str) -> Result | None:
    from repro.figures.cache import remembered

    def absent() -> Result:
        raise _Missing

    try:
        return remembered(name, absent)
    except _Missing:
        return None


def _named(name: str, case: Case) -> tuple[str, Result]:
    from repro.figures.cache import remembered

    return name, remembered(name, lambda: measure(case))


def _keep(name: str, result: Result) -> Result:
    """Remember here what a worker on another machine found."""
    from repro.figures.cache import remembered

    return remembered(name, lambda: result)


@contextlib.contextmanager
def _workers(tasks: int, workers: int | None) -> Iterator[dict[str, Any]]:
    """Give the settings of `joblib.Parallel` and stop what was started for it."""
    import joblib

    from repro.figures.progress import ENV_SCHEDULER

    address = os.environ.get(ENV_SCHEDULER)
    if address and tasks:
        import distributed

        with (
            distributed.Client(address, timeout="10s"),
            joblib.parallel_config(backend="dask"),
        ):
            yield {"n_jobs": -1}
        return
    alone = tasks < 2 or workers == 1
    try:
        yield {"n_jobs": 1 if alone else workers or -1}
    finally:
        if not alone:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True)


def _told(
    results: Iterable[tuple[str, Result]], done: int, total: int
) -> Iterator[tuple[str, Result]]:
    """Pass results on and print how many there are every few seconds."""
    from repro.figures.progress import tell_points

    told = time.monotonic()
    for result in results:
        done += 1
        tell_points(done, total)
        yield result
        if time.monotonic() - told > _SAY_EVERY_S:
            told = time.monotonic()
            print(f"{done} of {total} points", flush=True)
