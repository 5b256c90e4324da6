"""GPU-times of past jobs from the published quantiles of the Microsoft trace."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from repro.files.quantiles import inverse_cdf, table
from repro.trace.synth.registry import positive


def gpu_time_at(u: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the GPU-time (GPU-seconds) below which a share ``u`` of past jobs lies.

    Parameters
    ----------
    u : ndarray
        Between 0 and 1.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> gpu_time_at(np.array([0.0, 0.5])).round().tolist()
    [121.0, 2227.0]
    """
    facts = table("tiresias_gpu_time_quantiles")
    return inverse_cdf(u, facts["level"].to_numpy(float), facts["gpu_time_s"].to_numpy(float))


def history_quantiles(samples: int = 1001) -> npt.NDArray[np.float64]:
    """Return the GPU-time history of the Tiresias simulator, rebuilt from its quantiles.

    Parameters
    ----------
    samples : int
        How many evenly spaced quantiles; the simulator reads 1001.

    Returns
    -------
    ndarray
        Whole GPU-seconds, ascending, from the smallest to the largest published value.

    Raises
    ------
    ParamError
        If ``samples`` is not a whole number above 0.

    References
    ----------
    ``simulator/yarn-gput10000.csv`` of the public Tiresias simulator, whose quantiles are in
    ``traces/tiresias_gpu_time_quantiles.csv``; jobs under 2 minutes had been dropped.

    Examples
    --------
    >>> history = history_quantiles()
    >>> history[[0, 500, 1000]].tolist()
    [121.0, 2227.0, 53294624.0]
    """
    positive("samples", samples, whole=True)
    return np.asarray(np.round(gpu_time_at(np.linspace(0, 1, samples))))
