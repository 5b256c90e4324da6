"""Jobs that run on more or fewer GPUs than they ask for: speed-up curves (PCS, AFS, Themis)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from repro.core.decision import Run
from repro.core.jobs import JobTable
from repro.core.records import Nodes
from repro.errors import ParamError


@dataclass(frozen=True)
class SpeedUp:
    """Performance model of elastic jobs: speed S(g)/S(D) on g GPUs, D the GPUs asked for.

    Parameters
    ----------
    curves : mapping of str to tuple of float
        Model to S(1), S(2), …; S(1) is 1. A model without a curve scales linearly.

    References
    ----------
    PCS, arXiv 2401.10354, demand functions: between whole numbers of GPUs S is interpolated
    linearly, beyond D it stays S(D).

    Examples
    --------
    >>> SpeedUp({"vgg": (1.0, 1.5, 1.8)}).speed("vgg", 2.5), SpeedUp().speed(None, 2.5)
    (1.65, 2.5)
    """

    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def speed(self, model: str | None, gpus: float) -> float:
        """Return S(gpus): speed relative to one GPU."""
        curve = None if model is None else self.curves.get(model)
        if curve is None:
            return gpus
        below = min(math.floor(gpus), len(curve))
        low = curve[below - 1] if below else 0.0
        if below == len(curve):
            return low
        return low + (gpus - below) * (curve[below] - low)

    def of(self, table: JobTable, job: int, gpus: float) -> float:
        """Return the speed of a job of the trace on ``gpus``, capped at what it asks for."""
        model, asked = table.models[job] if self.curves else None, table.gpus[job]
        curve = None if model is None else self.curves.get(model)
        if curve is not None and asked > len(curve):
            raise ParamError(
                f"job {table.ids[job]!r} asks for {asked} GPUs but the speed-up curve of {model!r} "
                f"ends at {len(curve)}; give a longer curve or drop the job"
            )
        return self.speed(model, min(gpus, asked))

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return S(g)/S(D) for the one job of the run."""
        if len(run.jobs) > 1:
            raise ParamError("speed-up curves know no groups; use a performance model that does")
        job = run.jobs[0]
        return [self.of(table, job, run.gpus) / self.of(table, job, table.gpus[job])]
