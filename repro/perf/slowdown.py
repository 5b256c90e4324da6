"""Placement-dependent speed: a gang on more machines than it needs runs slower or faster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from repro.core.decision import Run
from repro.core.jobs import JobTable
from repro.core.records import Nodes


@dataclass(frozen=True)
class SpreadSlowdown:
    """Performance model of Tiresias Figure 3: rate 1 when consolidated, a model's own when spread.

    Tiresias, NSDI 2019, section 2.2, Figure 3 (measured for 8 workers; the same factor is assumed
    for other gang sizes).

    Parameters
    ----------
    relative_speed : mapping of str to float
        Model name -> speed when spread, relative to consolidated. Unlisted models do not care.
    gpus_per_node : int
        GPUs of one machine; a gang is consolidated on ceil(gang / gpus_per_node) machines.
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
