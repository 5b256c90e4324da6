"""Tiresias' ten deep-learning models: size, tensor skew, checkpoint cost, effect of placement."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import pandas as pd

from repro.files.tables import ModelTable
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.perf.model_names import with_further_names
from repro.perf.overhead import CheckpointOverhead
from repro.perf.slowdown import Slowdown, tiresias_slowdown

#: Mean seconds to resume a preempted job: the published 57.1 to 62.1 s per preemption (section
#: 5.2.4) minus the mean pause of 10.4 s (Figure 4). Figure 5 plots the time to resume by model, but
#: its bars have no labels.
RESUME_S = 50.0

MODELS = ModelTable(
    "tiresias_models.csv",
    ("label", "largest_ratio", "model", "pause_s", "random_speed", "size_mb", "source"),
)


@dataclass(frozen=True)
class SpreadSlowdown:
    """Performance model of Tiresias, Figure 3: rate 1 if consolidated, by model if spread.

    ``relative_speed`` has the rate of a spread gang by model; an unlisted model has rate 1. A gang
    is consolidated on the fewest machines that hold it. The paper measured 8 workers; we assume the
    same factor for other gang sizes. Tiresias, NSDI 2019, section 2.2, Figure 3.
    """

    relative_speed: Mapping[str, float]
    gpus_per_node: int

    def speed(self, model: str | None, gpus: float, machines: int) -> float:
        """Rate of a gang on a number of machines."""
        needed = math.ceil(gpus / self.gpus_per_node)
        return self._slowdown.speed(model, more_nodes=machines > needed, more_racks=False)

    @cached_property
    def _slowdown(self) -> Slowdown:
        """The same rates for gangs on any cluster."""
        return Slowdown(speed_by_model=self.relative_speed)

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Rate of a single job."""
        job = run.jobs[0]
        return (self.speed(table.models[job], run.gpus, len(nodes)),)


def tiresias_models() -> pd.DataFrame:
    """Table of the published data of the ten models, in the order of the paper.

    The index is the name of the model in traces. Columns: label (name in figures), size_mb,
    tensors, tensors_from_1mb (of at least 1 MB), largest_mb, largest_ratio (largest tensor / size),
    pause_s (seconds to checkpoint), random_speed (rate under random placement, relative to
    consolidated, 8 workers; read off the plot, ±0.01), large_tensors_mb (sum of the tensors of at
    least 1 MB), source. Tiresias, NSDI 2019, Table 6 and Figures 3 and 4.
    """
    return MODELS.frame.set_index("model")


def by_name(column: str) -> dict[str, float]:
    """Column of the table by model, also under the names of `repro.perf.model_names`."""
    return with_further_names("tiresias", MODELS.column(column))


def checkpoint_overhead(resume_s: float = RESUME_S) -> CheckpointOverhead:
    """Preemption cost of the ten models; an unlisted model has their mean pause.

    ``resume_s`` is the time to resume a preempted job (s), equal for all models.
    """
    mean_pause_s = fmean(MODELS.column("pause_s").values())
    return CheckpointOverhead(by_name("pause_s"), resume_s, mean_pause_s)


def spread_slowdown(gpus_per_node: int) -> SpreadSlowdown:
    """Rates of the ten models for a gang on more machines than it needs."""
    return SpreadSlowdown(tiresias_slowdown().speed_by_model, gpus_per_node)
