"""Ten deep-learning models of Tiresias: size, tensor skew, checkpoint cost, placement effect."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas as pd

from repro.files.tables import ModelTable
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.perf.overhead import CheckpointOverhead

#: Mean seconds to resume a preempted job: the published cost of 57.1 to 62.1 s per preemption
#: (section 5.2.4) less the mean pause of 10.4 s (Figure 4); the bars of Figure 5 have no labels.
RESUME_S = 50.0

MODELS = ModelTable(
    "tiresias_models.csv",
    ("label", "largest_ratio", "model", "pause_s", "random_speed", "size_mb", "source"),
)


@dataclass(frozen=True)
class SpreadSlowdown:
    """Performance model of Tiresias Figure 3: rate 1 when consolidated, a model's own when spread.

    ``relative_speed`` is that of a model when spread, relative to consolidated (on the fewest
    machines that hold the gang); unlisted models do not care. Tiresias, NSDI 2019, section 2.2,
    Figure 3 (measured for 8 workers; the same factor is assumed for other gang sizes).
    """

    relative_speed: Mapping[str, float]
    gpus_per_node: int

    def speed(self, model: str | None, gpus: float, machines: int) -> float:
        """Return the work per second of a gang on so many machines."""
        needed = math.ceil(gpus / self.gpus_per_node)
        if machines <= needed or model is None:
            return 1.0
        return self.relative_speed.get(model, 1.0)

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Return the rate of the one member of a gang."""
        job = run.jobs[0]
        return (self.speed(table.models[job], run.gpus, len(nodes)),)


def tiresias_models() -> pd.DataFrame:
    """Return what the paper prints about its ten models, by name in traces, in its order.

    Columns: label (name in figures), size_mb, tensors, tensors_from_1mb (of at least 1 MB),
    largest_mb, largest_ratio (largest tensor / size), pause_s (seconds to checkpoint), random_speed
    (speed under random placement / consolidated, 8 workers; read off the plot, ±0.01),
    large_tensors_mb (sum of the tensors of at least 1 MB), source. Tiresias, NSDI 2019, Table 6,
    Figures 3 and 4.
    """
    return MODELS.frame.set_index("model")


def checkpoint_overhead() -> CheckpointOverhead:
    """Return the preemption cost of the ten models; an unlisted one costs their mean pause."""
    pauses = MODELS.column("pause_s")
    return CheckpointOverhead(pauses, RESUME_S, fmean(pauses.values()))


def spread_slowdown(gpus_per_node: int) -> SpreadSlowdown:
    """Return the speed of the ten models when a gang is on more machines than it needs."""
    return SpreadSlowdown(MODELS.column("random_speed"), gpus_per_node)
