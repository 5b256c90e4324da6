"""GPU-times of past jobs from the published quantiles of the Microsoft trace."""

from __future__ import annotations

import numpy as np

from repro.files.tables import measured
from repro.trace.synth.draws import inverse_cdf
from repro.typing import Floats


def gpu_time_at(u: Floats) -> Floats:
    """Return the GPU-time (GPU-seconds) below which a share ``u`` of past jobs lies."""
    facts = measured("tiresias_gpu_time_quantiles")
    return inverse_cdf(u, facts["level"].to_numpy(float), facts["gpu_time_s"].to_numpy(float))


def history_quantiles() -> Floats:
    """Return the history of the Tiresias simulator: 1,001 quantiles, whole GPU-seconds, ascending.

    Rebuilt from those of ``simulator/yarn-gput10000.csv``; jobs under 2 minutes had been dropped.
    """
    return np.asarray(np.round(gpu_time_at(np.linspace(0, 1, 1001))))
