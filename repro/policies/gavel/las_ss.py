"""Gavel's least attained service with space sharing: max-min fairness over jobs and pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from repro.core.kinds import Kinds
from repro.core.policy import register
from repro.core.view import View
from repro.optimise.max_min import equal_share
from repro.optimise.pairs.programme import KindShares, PairCrowd, programme, shares, solve
from repro.optimise.pairs.rows import Rows, spread_evenly, spread_thinly
from repro.policies.gavel._space_sharing import EstimatedPairs, SpaceSharing
from repro.typing import Floats, Ints


@register("gavel-las-ss")
@dataclass(frozen=True)
class GavelLasSS(SpaceSharing):
    """Maximise the least weighted throughput where two jobs may share the same GPUs.

    max_X min_i (s_i / w_i) thr_i(X) / p_i with thr_i(X) = sum over combinations c that contain i
    and GPU types j of T^i_cj X_cj; p_i is the throughput of the equal share.

    Parameters
    ----------
    pairs : {"all", "working", "useful"}
        Pairs the programme knows: all, also those that run out of memory, as in the public
        simulator; those that run; those that beat time slicing.
    spread : {"all", "few"}
        Time of two kinds of jobs is divided equally over all pairs of their jobs, or over few
        pairs that give every job the same.
    optimum : {"centre", "vertex"}
        Which of many optima: near the analytic centre, as the public simulator, or a vertex.
    profiled : float, optional
        Part of the pairs of a new one-GPU job with reference models that is measured; its other
        speeds beside others are estimated, and known once a pair has run. None: all are known.
    references : int
        Reference models.
    artifact_index : bool
        Read the measurements where the public simulator reads them (`PairEstimator`).

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS with space sharing).
    """

    pairs: Literal["all", "working", "useful"] = "all"
    spread: Literal["all", "few"] = "all"
    optimum: Literal["centre", "vertex"] = "centre"
    profiled: float | None = None
    references: int = 16
    artifact_index: bool = False

    needs = frozenset({"priority_weight", "throughput"})

    def estimates(self, view: View) -> EstimatedPairs | None:
        """Return the estimates of one run, if pairs are profiled."""
        if self.profiled is None:
            return None
        return EstimatedPairs(view, self.profiled, self.references, self.artifact_index)

    def pair_shares(self, kinds: Kinds, paired: Floats) -> KindShares:
        """Return X of kinds and pairs of kinds."""
        equal = equal_share(kinds.speeds, kinds.gpus)
        scale = (kinds.widths / (kinds.weights * equal))[:, None]
        crowd = PairCrowd(kinds.speeds * scale, paired * scale[:, None], kinds.widths, kinds.gpus)
        problem = programme(crowd, kinds.counts, pairs=self.pairs)
        return shares(problem, partial(solve, method=self.optimum))

    def rows(self, jobs: Ints, row: Ints, counts: Floats, given: KindShares) -> Rows:
        """Return X of jobs and pairs of jobs."""
        if self.spread == "all":
            return spread_evenly(jobs, row, counts, given)
        return spread_thinly(jobs, row, 1.0 / counts[row], given)
