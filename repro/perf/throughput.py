"""Throughput tables: steps per second of each model on each GPU type (Gavel)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from repro.errors import ParamError
from repro.sim.decision import Run
from repro.sim.jobs import JobTable
from repro.sim.records import Nodes

Row = Mapping[str, float]


@dataclass(frozen=True)
class ThroughputTable:
    """Performance model of unequal GPU types: rate = T[model, type] / T[model, reference].

    Policies take the same table as a parameter, so that they see what they are meant to see.

    Parameters
    ----------
    rows : mapping of (str, int) to mapping of str to float
        (model, GPUs of the gang) to steps per second on each GPU type, all GPUs together.
    reference : str
        GPU type on which the durations of the trace were measured.

    References
    ----------
    Gavel, OSDI 2020, section 3.

    Examples
    --------
    >>> table = ThroughputTable.of({"a3c": {"v100": 40.0, "k80": 10.0}}, "v100")
    >>> table.steps_per_s("a3c", 1, "k80")
    10.0
    """

    rows: Mapping[tuple[str, int], Row]
    reference: str

    @classmethod
    def of(cls, single: Mapping[str, Row], reference: str) -> ThroughputTable:
        """Make a table of one-GPU jobs from model → GPU type → steps per second."""
        return cls({(model, 1): dict(row) for model, row in single.items()}, reference)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, reference: str) -> ThroughputTable:
        """Make a table from a tidy frame.

        Parameters
        ----------
        frame : DataFrame
            Columns job_type, scale_factor, gpu_type, steps_per_second.
        reference : str
            GPU type of the durations.
        """
        rows: dict[tuple[str, int], dict[str, float]] = {}
        columns = ["job_type", "scale_factor", "gpu_type", "steps_per_second"]
        for model, width, kind, speed in frame[columns].itertuples(index=False):
            rows.setdefault((str(model), int(width)), {})[str(kind)] = float(speed)
        return cls(rows, reference)

    def steps_per_s(self, model: str | None, gpus: int, gpu_type: str | None) -> float:
        """Return the throughput of a gang of ``gpus`` GPUs of one type (steps per second).

        Raises
        ------
        ParamError
            If the table has no such model, gang size or type.
        """
        row = self.rows.get((str(model), gpus))
        if row is None:
            known = sorted({name for name, _ in self.rows})
            raise ParamError(
                f"the throughput table has no model {model!r} on {gpus} GPUs; it has {known} with "
                f"gangs of {sorted({width for _, width in self.rows})}"
            )
        if gpu_type is None or gpu_type not in row:
            raise ParamError(
                f"the throughput table has no GPU type {gpu_type!r} for {model!r}; it has "
                f"{', '.join(row)}: give a cluster of these types (2xv100,2xk80) and a policy that "
                f"chooses among them"
            )
        return row[gpu_type]

    def speeds(self, model: str | None, gpus: int, gpu_types: Iterable[str | None]) -> list[float]:
        """Return the throughput on each of several types (steps per second)."""
        return [self.steps_per_s(model, gpus, kind) for kind in gpu_types]

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return work per second relative to the reference type; shares of time add up."""
        if len(run.jobs) > 1:
            raise ParamError("a throughput table knows no groups; use a model of shared GPUs")
        job = run.jobs[0]
        model, width = table.models[job], table.gpus[job]
        parts = run.parts or ((run.gpu_type, run.gpus),)
        steps = sum(gpus / width * self.steps_per_s(model, width, kind) for kind, gpus in parts)
        return [steps / self.steps_per_s(model, width, self.reference)]
