"""Estimated speeds of pairs of jobs in one run, measured once a pair has run."""

from __future__ import annotations

import numpy as np

from repro.core.view import View
from repro.errors import ParamError
from repro.estimate.throughput import PairEstimator
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable
from repro.typing import Floats


class EstimatedPairs:
    """Estimated speeds of pairs of one-GPU jobs; those of gangs, and what runs at all, are known.

    Parameters as for `GavelLasSS`.
    """

    def __init__(self, view: View, profiled: float, references: int, artifact_index: bool) -> None:
        table = view.throughputs
        if not isinstance(table, ThroughputTable):
            raise ParamError(
                "profiled: the run has no throughput table to profile; give --throughputs or a "
                "trace that names one, or leave profiled out"
            )
        known = {model for model, gang in table.rows if gang == 1}
        drawn = [one.name for one in job_types() if one.name in known]
        self._view = view
        self._likeness: dict[int, tuple[str, str] | None] = {}
        self._estimator = PairEstimator(
            table,
            tuple(map(str, view.gpu_types)),
            fraction=profiled,
            references=references,
            seed=view.seed,
            artifact_index=artifact_index,
            models=drawn if len(drawn) == len(known) else sorted(known),
        )

    def likeness(self, job: int) -> tuple[str, str] | None:
        """Return what decides the estimates of a job, its model and the nearest reference model.

        None for a gang.
        """
        if job not in self._likeness:
            model, gang = self._view.kind(job)
            self._likeness[job] = self._estimator.kind(job, str(model)) if gang == 1 else None
        return self._likeness[job]

    def speeds(self, one: int, other: int) -> Floats:
        """Return the estimated steps per second of two jobs on the same GPUs, 0 = out of memory."""
        true = self._view.pair_speeds(one, other)
        a, b = self.likeness(one), self.likeness(other)
        if a is None or b is None:
            return true
        return np.where(true > 0, self._estimator.pair_speeds(a, b), 0.0)

    def observe(self, one: int, other: int, gpu_type: str | None) -> bool:
        """Measure two jobs that have shared GPUs; tell whether their speeds were estimates."""
        a, b = self.likeness(one), self.likeness(other)
        if a is None or b is None:
            return False
        self._estimator.observe(a, b, gpu_type)
        return True
