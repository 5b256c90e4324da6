"""GPU-times of past jobs from the published quantiles of the Microsoft trace."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from repro.files.quantiles import inverse_cdf, table
from repro.trace.synth.registry import positive


def gpu_time_at(u: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the GPU-time (GPU-seconds) below which a share ``u`` of past jobs lies."""
    facts = table("tiresias_gpu_time_quantiles")
    return inverse_cdf(u, facts["level"].to_numpy(float), facts["gpu_time_s"].to_numpy(float))


def history_quantiles(samples: int = 1001) -> npt.NDArray[np.float64]:
    """Return the GPU-time history of the Tiresias simulator, rebuilt from its quantiles."""
    positive("samples", samples, whole=True)
    return np.asarray(np.round(gpu_time_at(np.linspace(0, 1, samples))))
