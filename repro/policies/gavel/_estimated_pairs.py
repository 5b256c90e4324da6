"""What a scheduler believes of pairs of jobs in one run: estimates, and the truth once seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from repro.core.view import View
from repro.errors import ParamError
from repro.estimate.throughput import PairEstimator
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel._pair_types import PairTypes

Array = npt.NDArray[np.float64]


class Believed:
    """Estimated speeds of pairs of one-GPU jobs; gangs are known as they are.

    Out of memory is known beforehand: a pair that cannot run is never taken for one that can.

    Parameters
    ----------
    view : View
        The run; the policy needs "throughput".
    profiled : float
        Part of the entries measured for a new job.
    references : int
        Reference models.
    artifact_index : bool
        As for `PairEstimator`.

    Raises
    ------
    ParamError
        If the run has no throughput table.
    """

    def __init__(self, view: View, profiled: float, references: int, artifact_index: bool) -> None:
        from repro.perf.synthetic_throughputs import job_types

        table = view.throughputs
        if not isinstance(table, ThroughputTable):
            raise ParamError(
                "profiled: the run has no throughput table to profile; give --throughputs or a "
                "trace that names one, or leave profiled out"
            )
        kinds = tuple(str(kind) for kind in view.gpu_types)
        known = {model for model, gang in table.rows if gang == 1}
        drawn = [one.name for one in job_types() if one.name in known]
        self._view = view
        self._kinds: dict[int, tuple[str, str] | None] = {}
        self._learnt: set[tuple[int, int, str | None]] = set()
        self._estimator = PairEstimator(
            table,
            kinds,
            fraction=profiled,
            references=references,
            seed=view.seed,
            artifact_index=artifact_index,
            models=drawn if len(drawn) == len(known) else sorted(known),
        )

    def kind(self, job: int) -> tuple[str, str] | None:
        """Return what is believed of a job: model and nearest reference; None for a gang."""
        if job not in self._kinds:
            model, gang = self._view.kind(job)
            self._kinds[job] = self._estimator.kind(job, str(model)) if gang == 1 else None
        return self._kinds[job]

    def speeds(self, one: int, other: int) -> Array:
        """Return the believed steps per second of two jobs on the same GPUs."""
        true = self._view.pair_speeds(one, other)
        a, b = self.kind(one), self.kind(other)
        if a is None or b is None:
            return true
        return np.where(true > 0, self._estimator.pair_speeds(a, b), 0.0)

    def learn(self, types: PairTypes, one: int, other: int, gpu_type: str | None) -> bool:
        """Take note that two jobs have shared GPUs; tell whether that changed what is believed."""
        seen = types.number(one), types.number(other), gpu_type
        if seen in self._learnt:
            return False
        self._learnt.add(seen)
        a, b = self.kind(one), self.kind(other)
        if a is None or b is None:
            return False
        self._estimator.observe(a, b, gpu_type)
        return types.learn(one, other)
