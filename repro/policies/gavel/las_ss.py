"""Least attained service where two jobs may share the same GPUs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.decision import Shares
from repro.model.policy import register
from repro.model.settings import AtLeast, Between
from repro.model.typed_shares import Kinds, Solved, TypedShares
from repro.model.view import View
from repro.policies.gavel._pair_table import ADVICE, EstimatedPairs, Pairs, PairTable
from repro.solve.pairs.programme import (
    KindShares,
    PairCrowd,
    programme,
    shares,
    spread_evenly,
    spread_thinly,
)


@register("gavel-las-ss")
@dataclass(frozen=True)
class GavelLasSS(TypedShares):
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

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS with space sharing).
    """

    families = ("max-min",)

    pairs: Pairs = "all"
    spread: Literal["all", "few"] = "all"
    optimum: Literal["centre", "vertex"] = "centre"
    profiled: Annotated[float, Between(0, 1)] | None = None
    references: Annotated[int, AtLeast(1)] = 16
    artifact_index: bool = False

    pairs_up = True
    # of many optima the programme with pairs ends at another than gavel-las
    baseline = Baseline(None, f"{ADVICE}, or take gavel-las", model=True)
    needs = frozenset({"priority_weight", "throughput"})
    remembered = 256

    def session(self, view: View) -> Callable[[View], Shares]:
        """Return the decision function of one run, which remembers solved mixes of kinds."""
        estimates = None
        if self.profiled is not None:
            estimates = EstimatedPairs(view, self.profiled, self.references, self.artifact_index)
        table = PairTable(self, view, estimates)
        solved = Solved[KindShares](self.remembered)

        def decide(view: View) -> Shares:
            if table.observe(view.together):
                solved.clear()
            jobs = np.array(view.jobs)
            numbers, counts, row = table.present(jobs)
            kinds = table.of(numbers, counts)
            given = solved(numbers, counts, lambda: self._solve(kinds, table.paired(numbers)))
            if self.spread == "all":
                members, fractions = spread_evenly(jobs, row, counts, given)
            else:
                members, fractions = spread_thinly(jobs, row, 1.0 / counts[row], given)
            return Shares(members, view.gpu_types, fractions)

        return decide

    def _solve(self, kinds: Kinds, paired: Floats) -> KindShares:
        """Return X of kinds and pairs of kinds."""
        scale = (kinds.widths / (kinds.weights * kinds.equal_speeds))[:, None]
        crowd = PairCrowd(kinds.speeds * scale, paired * scale[:, None], kinds.widths, kinds.gpus)
        problem = programme(crowd, kinds.counts, pairs=self.pairs)
        return shares(problem, self.optimum)
