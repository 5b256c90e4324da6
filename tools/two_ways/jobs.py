"""Random jobs, speeds and policies for the pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro import make
from repro.model.policy import Policy
from repro.perf import SpeedUp

#: Speed-up curves: of one that rises and stays, and of one with a jump.
CURVES = SpeedUp({"flat": (1.0, 1.6, 1.9, 2.0, 2.0, 2.1, 2.1, 2.1), "bump": (1.0, 1.2, 2.4, 2.9)})
CLUSTERS = ("1x1", "1x4", "2x4", "1x8", "4x2", "3x4", "2x8", "5x3")
ELASTIC = ("afs", "fifo-elastic", "max-min", "pcs", "reservation", "srsf-elastic", "themis")
LINEAR = ("las-2d", "srsf", "srtf", "tiresias-l")


def trace(
    rng: np.random.Generator, widest: int, *, most: int = 40, ties: bool | None = None
) -> pd.DataFrame:
    """One to ``most`` jobs of at most ``widest`` GPUs, at a load that makes most of them wait.

    Half of the traces have whole seconds with many equal submissions, durations and completions,
    unless ``ties`` says which. Rows are in no order, and ids are not row numbers.
    """
    count = int(rng.integers(1, most + 1))
    is_whole = bool(rng.random() < 0.5) if ties is None else ties
    mean_s = float(rng.choice([3.0, 60.0, 4000.0]))
    duration = mean_s * rng.lognormal(0.0, rng.uniform(0.2, 1.5), count)
    demand = np.minimum(rng.choice([1, 1, 1, 2, 2, 3, 4, 5, 8, 16], count), widest)
    load = rng.uniform(0.5, 4.0)
    gap_s = (duration * demand).mean() / (load * widest)
    submit = np.cumsum(rng.exponential(gap_s, count))
    if rng.random() < 0.2:
        submit[:] = submit[0]
    if is_whole:
        grid_s = float(rng.choice([1.0, 5.0, 60.0]))
        submit = np.floor(submit / grid_s) * grid_s
        duration = np.maximum(grid_s, np.round(duration / grid_s) * grid_s)
    # an origin far from zero costs digits, as in a trace of seconds since 1970
    submit += float(rng.choice([0.0, 0.0, 7.25, 1e5]))
    frame = pd.DataFrame(
        {
            "job_id": 7000 - 3 * np.arange(count),
            "submit_time": submit,
            "duration": duration,
            "num_gpus": demand,
        }
    )
    return frame.iloc[rng.permutation(count)].reset_index(drop=True)


def with_predictions(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """Trace whose durations are predicted with an error."""
    factors = rng.lognormal(0.0, 1.0, len(frame))
    return frame.assign(predicted_duration=frame["duration"] * factors)


def with_models(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """Trace of jobs with the curves of `CURVES` or none, which demand no more GPUs than these."""
    model = rng.choice(np.array(["flat", "bump", None], dtype=object), len(frame))
    longest = np.where(model == "bump", 4, 8)
    return frame.assign(model=model, num_gpus=np.minimum(frame["num_gpus"], longest))


def linear_order(rng: np.random.Generator, scale_s: float) -> Policy:
    """Order whose keys are linear in time. ``scale_s`` is the length of a typical job."""
    name = str(rng.choice(LINEAR))
    settings: dict[str, Any] = {}
    if name == "las-2d":
        settings["quantum"] = float(scale_s * rng.choice([0.05, 0.25, 1.0, 1 / 3]))
    if name == "tiresias-l" and rng.random() < 0.8:
        limits = np.sort(scale_s * rng.uniform(0.1, 8.0, rng.integers(1, 4)))
        settings["thresholds"] = tuple(np.unique(np.round(limits, rng.integers(0, 3))) + 0.01)
    return make(name, **settings)


def elastic(rng: np.random.Generator, name: str, scale_s: float) -> Policy:
    """Policy that divides GPUs by a compiled rule, with random parameters."""
    settings: dict[str, Any] = {}
    if name == "themis":
        settings["lease"] = float(scale_s * rng.uniform(0.1, 2.0))
    if name == "pcs":
        classes = int(rng.integers(2, 5))
        thresholds = np.sort(scale_s * rng.uniform(0.2, 6.0, classes - 1))
        settings = {
            "thresholds": tuple(thresholds.tolist()),
            "weights": tuple(np.sort(rng.uniform(0.5, 9.0, classes))[::-1].tolist()),
            "zeta_min": float(rng.uniform(0.5, 1.0)),
            "delta": float(rng.uniform(0.02, 0.3)),
        }
    return make(name, **settings)
