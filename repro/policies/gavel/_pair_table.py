"""Speeds of two kinds of jobs on the same GPUs, known or estimated."""

from typing import Literal

import numpy as np

from repro.core.kinds import KindTable
from repro.core.typed_shares import TypedShares
from repro.core.view import View
from repro.errors import ParamError
from repro.estimate.throughput import PairEstimator
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable
from repro.typing import Floats, Ints

Pairs = Literal["all", "working", "useful"]


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
        """Return the model of a job and the reference nearest to it; None for a gang."""
        model, gang = self._view.kind(job)
        return self._estimator.kind(job, str(model)) if gang == 1 else None

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


class PairTable(KindTable):
    """A `KindTable` that also has the speeds of two kinds on the same GPUs, or estimates of them.

    With estimates, jobs that resemble unlike reference models are of different kinds.
    """

    def __init__(
        self, policy: TypedShares, view: View, estimates: EstimatedPairs | None = None
    ) -> None:
        key = plain = policy.key(view)
        if estimates:
            like = estimates.likeness
            key = lambda job: (plain(job), like(job))  # noqa: E731
        super().__init__(view, key, policy.speeds(view), policy.weight(view))
        self._estimates = estimates
        self._pair = estimates.speeds if estimates else view.pair_speeds
        self._paired = np.empty((0, 0, len(view.gpu_types)))
        self._seen: set[tuple[int, int, str | None]] = set()

    def paired(self, numbers: Ints) -> Floats:
        """Return steps per second of a job of kind a that shares its GPUs with one of b, at [a, b].

        Shape (kinds, kinds, GPU types).
        """
        self.learn()
        found: Floats = self._paired[numbers[:, None], numbers]
        return found

    def learn(self) -> None:
        """Look up new kinds, alone and beside all others."""
        super().learn()
        known, size = len(self._paired), len(self.keys)
        if size > known:
            paired = np.zeros((size, size, self._paired.shape[2]))
            paired[:known, :known] = self._paired
            for b in range(known, size):
                for a in range(b + 1):
                    paired[a, b], paired[b, a] = self._pair(self.examples[a], self.examples[b])
            self._paired = paired

    def observe(self, one: int, other: int, gpu_type: str | None) -> bool:
        """Note that two jobs have shared GPUs; tell whether that changed the speeds of pairs."""
        a, b = self.numbers([one, other]).tolist()
        if not self._estimates or (a, b, gpu_type) in self._seen:
            return False
        self._seen.add((a, b, gpu_type))
        if not self._estimates.observe(one, other, gpu_type) or max(a, b) >= len(self._paired):
            return False
        before = self._paired[[a, b], [b, a]]
        self._paired[a, b], self._paired[b, a] = self._pair(one, other)
        return not np.array_equal(before, self._paired[[a, b], [b, a]])
