"""What is known of Tiresias's production trace: sizes, iteration times, intervals, durations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro import paths
from repro.errors import ParamError
from repro.perf.tiresias_models import tiresias_models
from repro.trace.synth.history import gpu_time_at

_ITERATIONS = "tiresias_iterations.csv"
#: Name of the series of all jobs.
ALL = "all jobs"
_PERCENTS = (1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99)


def with_model_size(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with the size of their model.

    Parameters
    ----------
    jobs : DataFrame
        With a column model.

    Returns
    -------
    DataFrame
        A copy with size_mb; NaN for a model that Table 6 does not have.

    References
    ----------
    Tiresias, NSDI 2019, Table 6.

    Examples
    --------
    >>> with_model_size(pd.DataFrame({"model": ["vgg19", "alexnet"]}))["size_mb"].tolist()
    [548.1, 235.9]
    """
    return jobs.assign(size_mb=jobs["model"].str.lower().map(tiresias_models()["size_mb"]))


def iteration_times() -> pd.DataFrame:
    """Return the seconds per iteration of the ten models on 1, 2, 4 and 8 GPUs.

    Returns
    -------
    DataFrame
        model, num_gpus, iteration_s.

    Raises
    ------
    ParamError
        If the checkout's table is missing.

    References
    ----------
    60_job.csv of the public simulator of Tiresias: duration over iterations, the same for all
    jobs of a model and a number of GPUs.

    Examples
    --------
    >>> len(iteration_times())
    40
    """
    path = paths.params_dir() / _ITERATIONS
    if not path.is_file():
        raise ParamError(f"{path}: the table of iteration times is missing; restore it")
    return pd.read_csv(path, comment="#")


def with_iteration_time(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with the seconds per iteration of their model on their GPUs.

    Parameters
    ----------
    jobs : DataFrame
        With columns model and num_gpus.

    Returns
    -------
    DataFrame
        A copy with iteration_s; NaN where none is published (more than 8 GPUs).

    Examples
    --------
    >>> jobs = pd.DataFrame({"model": ["vgg11", "vgg11"], "num_gpus": [8, 16]})
    >>> with_iteration_time(jobs)["iteration_s"].tolist()
    [1.105, nan]
    """
    known = iteration_times().set_index(["model", "num_gpus"])["iteration_s"]
    wanted = pd.MultiIndex.from_arrays([jobs["model"].str.lower(), jobs["num_gpus"]])
    return jobs.assign(iteration_s=known.reindex(wanted).to_numpy())


def all_and_large(jobs: pd.DataFrame, column: str, least_gpus: int, label: str) -> pd.DataFrame:
    """Return a column of all jobs and, below it, of the large ones again.

    Parameters
    ----------
    jobs : DataFrame
        With num_gpus.
    column : str
        What is compared.
    least_gpus : int
        GPUs from which a job is large.
    label : str
        What the large ones are called.

    Returns
    -------
    DataFrame
        jobs (``all jobs`` or the label), num_gpus and the column.

    References
    ----------
    Tiresias, NSDI 2019, Figures 16, 17 and 19.

    Examples
    --------
    >>> frame = pd.DataFrame({"num_gpus": [1, 16], "hours": [0.5, 3.0]})
    >>> all_and_large(frame, "hours", 9, "more than 8 GPUs")["hours"].tolist()
    [0.5, 3.0, 3.0]
    """
    columns = ["num_gpus", column]
    large = jobs.loc[jobs["num_gpus"] >= least_gpus, columns]
    frames = [jobs[columns].assign(jobs=ALL), large.assign(jobs=label)]
    return pd.concat(frames, ignore_index=True)


def intervals(trace: pd.DataFrame) -> pd.DataFrame:
    """Return the time from each submission to the next.

    Parameters
    ----------
    trace : DataFrame
        Sorted by submit_time (s).

    Returns
    -------
    DataFrame
        jobs (``all jobs``), interval_s; one row less than jobs.

    Examples
    --------
    >>> intervals(pd.DataFrame({"submit_time": [0.0, 5.0, 5.0]}))["interval_s"].tolist()
    [5.0, 0.0]
    """
    gaps = np.diff(trace["submit_time"].to_numpy(float))
    return pd.DataFrame({"jobs": ALL, "interval_s": gaps})


def shares(values: pd.Series[float], percents: Sequence[float] = _PERCENTS) -> pd.DataFrame:
    """Return the values below which given shares of the observations lie.

    Parameters
    ----------
    values : Series of float
        Observations.
    percents : sequence of float
        0 to 100; interpolated linearly.

    Returns
    -------
    DataFrame
        percent, value.

    Examples
    --------
    >>> shares(pd.Series([1.0, 2.0, 5.0]), [50])["value"].tolist()
    [2.0]
    """
    return pd.DataFrame({"percent": percents, "value": np.percentile(values, percents)})


def published_gpu_time(levels: Sequence[float]) -> pd.DataFrame:
    """Return points of the GPU-time distribution that the authors published.

    Parameters
    ----------
    levels : sequence of float
        Shares of the jobs, 0 to 1.

    Returns
    -------
    DataFrame
        jobs (``all jobs``), fraction, gpu_s (GPU-seconds).

    References
    ----------
    yarn-gput10000.csv of the public simulator of Tiresias.

    Examples
    --------
    >>> published_gpu_time([0.5])["gpu_s"].round().tolist()
    [2227.0]
    """
    points = np.asarray(levels, dtype=float)
    return pd.DataFrame({"jobs": ALL, "fraction": points, "gpu_s": gpu_time_at(points)})
