"""Tiresias's ten models: tensor skew over parameter servers, checkpoint cost, resume cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro import paths
from repro.errors import ParamError

_TENSORS = "tiresias_tensors.csv"


def tensor_sizes() -> dict[str, list[float]]:
    """Return the sizes of the tensors of at least 1 MB, in the order of the model's graph.

    Returns
    -------
    dict
        Model to sizes in MB; a model whose tensors are not published is left out.

    Raises
    ------
    ParamError
        If the checkout's table is missing.

    References
    ----------
    models.py of the public simulator of Tiresias.

    Examples
    --------
    >>> tensor_sizes()["vgg11"]
    [1.1, 2.3, 4.5, 9.0, 9.0, 9.0, 392.0, 64.0, 15.6]
    """
    path = paths.params_dir() / _TENSORS
    if not path.is_file():
        raise ParamError(f"{path}: the table of tensors is missing; restore it from the checkout")
    table = pd.read_csv(path, comment="#")
    whole = table.loc[table.index.repeat(table["times"])]
    groups = whole.groupby("model", sort=False)["size_mb"]
    return {str(model): sizes.tolist() for model, sizes in groups}


def server_skew(tensors: Sequence[float], servers: int) -> float:
    """Return the most loaded parameter server's bytes over the mean, tensors dealt round robin.

    Parameters
    ----------
    tensors : sequence of float
        Sizes (MB), in order.
    servers : int
        Number of parameter servers.

    Returns
    -------
    float
        1 when all servers hold the same, up to ``servers`` when one holds everything.

    Raises
    ------
    ParamError
        If there is no tensor or no server.

    References
    ----------
    Tiresias, NSDI 2019, section 3.3: the skew its profiler sees; the formula is not published.

    Examples
    --------
    >>> server_skew([6.0, 1.0, 1.0], 2), server_skew([2.0, 2.0], 2)
    (1.75, 1.0)
    """
    if servers < 1 or not tensors:
        raise ParamError(
            f"{len(tensors)} tensors on {servers} parameter servers; need at least one of each"
        )
    held = [sum(tensors[first::servers]) for first in range(servers)]
    return max(held) * servers / sum(held)


@dataclass(frozen=True)
class Fit:
    """A least-squares fit.

    Parameters
    ----------
    intercept : float
        Constant term, in units of the fitted quantity.
    slopes : tuple of float
        One per explaining column.
    r2, adjusted_r2 : float
        Share of the variance explained, as it is and corrected for the number of columns.
    residuals : tuple of float
        Observed less fitted.
    """

    intercept: float
    slopes: tuple[float, ...]
    r2: float
    adjusted_r2: float
    residuals: tuple[float, ...]

    def at(self, *columns: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the fitted values at other points."""
        terms = (slope * np.asarray(x) for slope, x in zip(self.slopes, columns, strict=True))
        return np.asarray(self.intercept + sum(terms), dtype=float)


def linear_fit(observed: npt.ArrayLike, *columns: npt.ArrayLike) -> Fit:
    """Fit a quantity by least squares as a constant plus a multiple of each column.

    Parameters
    ----------
    observed : array_like
        What is explained.
    *columns : array_like
        What explains it.

    Returns
    -------
    Fit

    Examples
    --------
    >>> fit = linear_fit([1.0, 3.0, 5.0], [0, 1, 2])
    >>> round(fit.intercept, 6), round(fit.slopes[0], 6), round(fit.r2, 6)
    (1.0, 2.0, 1.0)
    """
    y = np.asarray(observed, dtype=float)
    matrix = np.column_stack([np.ones(len(y)), *(np.asarray(c, dtype=float) for c in columns)])
    solution, *_ = np.linalg.lstsq(matrix, y, rcond=None)
    residuals = y - matrix @ solution
    r2 = 1 - float(residuals @ residuals) / float(((y - y.mean()) ** 2).sum())
    spare = len(y) - matrix.shape[1]
    adjusted = 1 - (1 - r2) * (len(y) - 1) / spare if spare else float("nan")
    intercept, *slopes = solution.tolist()
    return Fit(intercept, tuple(slopes), r2, adjusted, tuple(residuals.tolist()))


def implied_resume(costs: Mapping[str, Sequence[float]], mean_pause: float) -> pd.DataFrame:
    """Return what resuming one job must have cost on average, from totals over all preemptions.

    Parameters
    ----------
    costs : mapping
        Policy to (number of preemptions, seconds they cost in total).
    mean_pause : float
        Mean seconds to pause a job.

    Returns
    -------
    DataFrame
        policy, per_preemption (s), resume (s).

    References
    ----------
    Tiresias, NSDI 2019, section 5.2.4; assumes that the total is pauses plus resumes and that
    every model is preempted equally often.

    Examples
    --------
    >>> implied_resume({"a": (2, 120.0)}, 10.0)["resume"].tolist()
    [50.0]
    """
    rows = [(name, total / count) for name, (count, total) in costs.items()]
    table = pd.DataFrame(rows, columns=["policy", "per_preemption"])
    return table.assign(resume=table["per_preemption"] - mean_pause)


def resume_parts(
    models: pd.DataFrame,
    pause: Fit,
    *,
    workers: Sequence[int],
    mean_resume: float,
    node_gpus: int,
    read_mb_s: float,
) -> pd.DataFrame:
    """Return a model of the seconds to resume, part by part.

    Restoring is taken to cost per tensor what saving costs (``pause``). The workers of one machine
    read the checkpoint over one link. What is left of the mean, the same for every job, is called
    building and warming up: nothing published tells the two apart.

    Parameters
    ----------
    models : DataFrame
        Columns model, label, size_mb and tensors.
    pause : Fit
        Seconds to pause by number of tensors.
    workers : sequence of int
        Numbers of workers.
    mean_resume : float
        Mean over all models and numbers of workers (s).
    node_gpus : int
        Workers that share one machine's link, at most.
    read_mb_s : float
        Bandwidth of that link (MB/s).

    Returns
    -------
    DataFrame
        model, label, workers, part, seconds.

    Examples
    --------
    >>> two = pd.DataFrame({"model": ["a", "b"], "label": ["A", "B"], "size_mb": [10.0, 20.0],
    ...                     "tensors": [10, 20]})
    >>> rows = resume_parts(two, linear_fit([1, 2], [10, 20]), workers=[1], mean_resume=50.0,
    ...                     node_gpus=4, read_mb_s=10.0)
    >>> round(float(rows["seconds"].sum()) / 2, 6)
    50.0
    """
    grid = models[["model", "label", "size_mb", "tensors"]].merge(
        pd.DataFrame({"workers": list(workers)}), how="cross"
    )
    restore = pause.at(grid["tensors"])
    readers = grid["workers"].clip(upper=node_gpus).to_numpy(float)
    read = grid["size_mb"].to_numpy(float) * readers / read_mb_s
    rest = mean_resume - float(np.mean(restore + read))
    keys = grid[["model", "label", "workers"]]
    build = np.full(len(grid), rest)
    parts = {"build and warm up": build, "restore tensors": restore, "read checkpoint": read}
    frames = [keys.assign(part=name, seconds=seconds) for name, seconds in parts.items()]
    return pd.concat(frames, ignore_index=True)


def loss_curve(
    rng: np.random.Generator,
    epochs: int,
    *,
    start: float,
    end: float,
    rate: float,
    noise: float,
    spikes: int = 0,
    spike: float = 0.0,
) -> pd.DataFrame:
    """Draw an invented curve of training loss; it shows a kind of curve, not a measured one.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of noise and spikes.
    epochs : int
        Number of points.
    start, end : float
        Loss before training and the level it tends to, normalised to 0..1.
    rate : float
        How fast it gets there, per epoch.
    noise : float
        Standard deviation of the jitter.
    spikes : int
        Number of sudden jumps.
    spike : float
        Largest jump.

    Returns
    -------
    DataFrame
        epoch (from 1), loss (0 to 1).

    References
    ----------
    Tiresias, NSDI 2019, section 2.2, Figure 2.

    Examples
    --------
    >>> curve = loss_curve(np.random.default_rng(0), 5, start=1.0, end=0.2, rate=0.5, noise=0.0)
    >>> curve["loss"].round(3).tolist()
    [1.0, 0.685, 0.494, 0.379, 0.308]
    """
    number = np.arange(epochs)
    loss = end + (start - end) * np.exp(-rate * number) + rng.normal(0.0, noise, epochs)
    where = rng.choice(epochs, size=spikes, replace=False)
    loss[where] += spike * rng.random(spikes)
    return pd.DataFrame({"epoch": number + 1, "loss": loss.clip(0.0, 1.0)})
