"""Speeds of two kinds of jobs on the same GPUs, known or estimated."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.model.typed_shares import KindTable, TypedShares
from repro.model.view import View
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.estimator import PairEstimator

Pairs = Literal["all", "working", "useful"]
#: What users of policies that share GPUs are told where no speeds of pairs are given.
ADVICE = (
    "without speeds of pairs nobody shares GPUs; give a throughput table "
    "(--throughputs gavel-throughputs) and a cluster of GPU types"
)


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
        self._estimates = estimates
        self._paired = np.empty((0, 0, len(view.gpu_types)))
        self._seen: set[tuple[int, int, str | None]] = set()
        super().__init__(policy, view, estimates.likeness if estimates else None)

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
        known = len(self._paired)
        size = len(self.keys)
        if size == known:
            return
        if self._estimates is None:
            codes = self._view.kind_codes[self.examples]
            pairs = self._view.pairs[codes[:, None], codes]
            # both speeds are those of the pair in the order in which its kinds were seen
            upper = np.tri(size, dtype=np.bool_).T[:, :, None]
            self._paired = np.where(upper, pairs[:, :, 0], pairs[:, :, 1].swapaxes(0, 1))
            return
        paired = np.zeros((size, size, self._paired.shape[2]))
        paired[:known, :known] = self._paired
        for b in range(known, size):
            for a in range(b + 1):
                one = self.examples[a]
                other = self.examples[b]
                paired[a, b], paired[b, a] = self._estimates.speeds(one, other)
        self._paired = paired

    def observe(self, together: Sequence[tuple[int, int, str | None]]) -> bool:
        """Note that pairs of jobs have shared GPUs; tell whether that changed speeds of pairs."""
        changed = False
        if self._estimates is None:
            return changed
        for one, other, gpu_type in together:
            a, b = self.numbers([one, other]).tolist()
            if (a, b, gpu_type) in self._seen:
                continue
            self._seen.add((a, b, gpu_type))
            if not self._estimates.observe(one, other, gpu_type) or max(a, b) >= len(self._paired):
                continue
            before = self._paired[[a, b], [b, a]]
            self._paired[a, b], self._paired[b, a] = self._estimates.speeds(one, other)
            changed |= not np.array_equal(before, self._paired[[a, b], [b, a]])
        return changed
