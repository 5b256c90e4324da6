"""Ten deep-learning models of Tiresias: size, tensor skew, checkpoint cost, placement effect."""

from __future__ import annotations

from statistics import fmean

import pandas as pd

from repro.files.tables import ModelTable
from repro.perf.overhead import CheckpointOverhead
from repro.perf.slowdown import SpreadSlowdown

#: Mean seconds to resume a preempted job: the published cost of 57.1 to 62.1 s per preemption
#: (section 5.2.4) less the mean pause of 10.4 s (Figure 4); the bars of Figure 5 have no labels.
RESUME_S = 50.0

MODELS = ModelTable(
    "tiresias_models.csv",
    ("label", "largest_ratio", "model", "pause_s", "random_speed", "size_mb", "source"),
)


def model_profiles() -> pd.DataFrame:
    """Return what the paper prints about its ten models, one row each, in the paper's order.

    Columns: model and label (name in traces and in figures), size_mb, tensors, tensors_from_1mb (of
    at least 1 MB), largest_mb, largest_ratio (largest tensor / size), pause_s (seconds to
    checkpoint), random_speed (speed under random placement / consolidated, 8 workers; read off the
    plot, ±0.01), large_tensors_mb (sum of the tensors of at least 1 MB), source. Tiresias, NSDI
    2019, Table 6, Figures 3 and 4.
    """
    return MODELS.frame


def tiresias_models() -> pd.DataFrame:
    """Return :func:`model_profiles` indexed by model name."""
    return MODELS.frame.set_index("model")


def checkpoint_overhead() -> CheckpointOverhead:
    """Return the preemption cost of the ten models; an unlisted one costs their mean pause."""
    pauses = MODELS.column("pause_s")
    return CheckpointOverhead(pauses, RESUME_S, fmean(pauses.values()))


def spread_slowdown(gpus_per_node: int) -> SpreadSlowdown:
    """Return the speed of the ten models when a gang is on more machines than it needs."""
    return SpreadSlowdown(MODELS.column("random_speed"), gpus_per_node)
