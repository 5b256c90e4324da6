"""Throughputs of pairs of job kinds on the same GPUs, known or estimated."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.model.typed_shares import KindTable, TypedShares
from repro.model.view import View
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.estimator import Match, PairEstimator

PairChoice = Literal["all", "working", "useful"]
#: Advice to users of policies with space sharing where the run has no throughputs of pairs.
ADVICE = (
    "without speeds of pairs no GPUs are shared; give a throughput table "
    "(--throughputs gavel-throughputs) and a cluster of GPU types"
)


class EstimatedPairs:
    """Estimated throughputs of pairs of one-GPU jobs, by `PairEstimator`.

    Throughputs of pairs of gangs are known. The GPU types on which a pair runs out of memory are
    known too.

    Parameters
    ----------
    view : View
        The run, with a throughput table.
    profiled, references, artifact_index
        As for `GavelLasSS`.
    """

    def __init__(self, view: View, profiled: float, references: int, artifact_index: bool) -> None:
        table = view.throughputs
        if not isinstance(table, ThroughputTable):
            raise ParamError(
                "profiled: the run has no throughput table to profile; give --throughputs or a "
                "trace that names a table, or leave profiled out"
            )
        models = {model for model, width in table.rows if width == 1}
        # The artifact samples references in the order of its workload generator.
        generated = [job_type.name for job_type in job_types() if job_type.name in models]
        self._view = view
        self._table = table
        self._match_of_job: dict[int, Match | None] = {}
        #: scale of the jobs' throughputs (`_scale`) by kind code of the view
        self._scale_of_kind: dict[int, float] = {}
        self._estimator = PairEstimator(
            table,
            tuple(map(str, view.gpu_types)),
            fraction=profiled,
            references=references,
            seed=view.seed,
            artifact_index=artifact_index,
            models=generated if len(generated) == len(models) else sorted(models),
        )

    def match(self, job: int) -> Match | None:
        """Model of a job and the reference model nearest to it; None for a gang."""
        if job not in self._match_of_job:
            model, width = self._view.kind(job)
            own_name = self._table.own_name(str(model))
            self._match_of_job[job] = self._estimator.match(job, own_name) if width == 1 else None
        return self._match_of_job[job]

    def pairs_with(self, firsts: Sequence[int], second: int) -> Floats:
        """Estimated throughputs (steps/s) of both jobs, for each of ``firsts`` with ``second``.

        The shape is (firsts, 2, GPU types). 0: the pair runs out of memory.
        """
        codes = self._view.kind_codes
        speeds: Floats = self._view.pairs[codes[firsts], codes[second]]
        second_match = self.match(second)
        if second_match is None:
            return speeds
        matches = {row: self.match(first) for row, first in enumerate(firsts)}
        matches_of_one_gpu = {row: match for row, match in matches.items() if match is not None}
        rows = list(matches_of_one_gpu)
        estimates = self._estimator.pairs_with(list(matches_of_one_gpu.values()), second_match)
        scales = [[self._scale(firsts[row]), self._scale(second)] for row in rows]
        estimates *= np.array(scales)[:, :, None]
        speeds[rows] = np.where(speeds[rows] > 0, estimates, 0.0)
        return speeds

    def _scale(self, job: int) -> float:
        """Steps/s of a job on one GPU over those of its row of the throughput table."""
        code = int(self._view.kind_codes[job])
        if code not in self._scale_of_kind:
            self._scale_of_kind[code] = self._table.scale(str(self._view.kind(job)[0]), 1)
        return self._scale_of_kind[code]

    def observe(self, first: int, second: int, gpu_type: str | None) -> bool:
        """Measure two jobs that have shared GPUs. True if both are one-GPU jobs."""
        first_match = self.match(first)
        second_match = self.match(second)
        if first_match is None or second_match is None:
            return False
        self._estimator.observe(first_match, second_match, gpu_type)
        return True


class PairTable(KindTable):
    """A `KindTable` with the throughputs of pairs of kinds on the same GPUs.

    With estimates, jobs that resemble different reference models are of different kinds.

    Parameters
    ----------
    policy : TypedShares
        Policy of the run, which says what a kind is.
    view : View
        The run.
    estimates : EstimatedPairs, optional
        Estimates in place of the throughputs of the run.
    """

    def __init__(
        self, policy: TypedShares, view: View, estimates: EstimatedPairs | None = None
    ) -> None:
        self._estimates = estimates
        self._paired = np.empty((0, 0, len(view.gpu_types)))
        self._observed: set[tuple[int, int, str | None]] = set()
        super().__init__(policy, view, estimates.match if estimates else None)

    def paired(self, numbers: Ints) -> Floats:
        """Throughputs of pairs of the kinds ``numbers``, shape (kinds, kinds, GPU types).

        [a, b] is the throughput (steps/s) of a job of kind a next to a job of kind b.
        """
        self.add_new_kinds()
        speeds: Floats = self._paired[numbers[:, None], numbers]
        return speeds

    def add_new_kinds(self) -> None:
        """Add the kinds that are new, and their pairs with all kinds."""
        super().add_new_kinds()
        old_size = len(self._paired)
        size = len(self.keys)
        if size == old_size:
            return
        if self._estimates is None:
            codes = self._view.kind_codes[self.first_jobs]
            pairs = self._view.pairs[codes[:, None], codes]
            # Entries [a, b] and [b, a] both come from the pair (a, b) in which a was seen first.
            upper = np.tri(size, dtype=np.bool_).T[:, :, None]
            self._paired = np.where(upper, pairs[:, :, 0], pairs[:, :, 1].swapaxes(0, 1))
            return
        paired = np.zeros((size, size, self._paired.shape[2]))
        paired[:old_size, :old_size] = self._paired
        for b in range(old_size, size):
            pairs = self._estimates.pairs_with(self.first_jobs[: b + 1], self.first_jobs[b])
            paired[: b + 1, b] = pairs[:, 0]
            paired[b, : b + 1] = pairs[:, 1]
        self._paired = paired

    def observe(self, pairs: Sequence[tuple[int, int, str | None]]) -> bool:
        """Record pairs (job, job, GPU type) that have shared GPUs. True if an estimate changed."""
        changed = False
        if self._estimates is None:
            return changed
        for first, second, gpu_type in pairs:
            a, b = self.numbers([first, second]).tolist()
            if (a, b, gpu_type) in self._observed:
                continue
            self._observed.add((a, b, gpu_type))
            is_measured = self._estimates.observe(first, second, gpu_type)
            if not is_measured or max(a, b) >= len(self._paired):
                continue
            old_speeds = self._paired[[a, b], [b, a]]
            self._paired[a, b], self._paired[b, a] = self._estimates.pairs_with([first], second)[0]
            changed |= not np.array_equal(old_speeds, self._paired[[a, b], [b, a]])
        return changed
