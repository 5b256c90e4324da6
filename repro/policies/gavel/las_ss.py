"""Gavel's LAS with space sharing (Gavel, sections 4.1 and 4.2).

    max_X min_m (scale_factor_m / w_m) throughput(m, X) / throughput(m, X^equal)
    throughput(m, X) = sum over k in C_m and types j of T^m_kj X_kj

The constraints are those of single jobs, with time summed over the combinations of a job:
sum over k in C_m and types j of X_kj <= 1, and sum_k scale_factor_k X_kj <= num_workers_j.

Ties: jobs of one kind have equal throughputs. Many X reach the optimum. ``optimum`` chooses one
near the analytic centre, or a vertex. With ``spread="few"`` jobs are paired in order of arrival.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.decision import Shares
from repro.model.policy import register
from repro.model.settings import AtLeast, Between
from repro.model.typed_shares import Kinds, SolutionCache, TypedShares
from repro.model.view import View
from repro.policies.gavel._pair_table import ADVICE, EstimatedPairs, PairChoice, PairTable
from repro.solve.pairs.programme import (
    KindShares,
    PairableKinds,
    programme,
    solved_shares,
    spread_evenly,
    spread_over_few_pairs,
)


@register("gavel-las-ss")
@dataclass(frozen=True)
class GavelLasSS(TypedShares):
    """Maximise the least weighted throughput where two jobs may share the same GPUs.

    Parameters
    ----------
    pairs : {"all", "working", "useful"}
        Pairs in the programme. ``all``: also pairs that run out of memory, as in the public
        simulator. ``working``: pairs that run. ``useful``: pairs that beat time slicing.
    spread : {"all", "few"}
        ``all``: the time of two kinds is divided equally over all pairs of their jobs. ``few``: it
        is divided over at most m + n pairs of their m and n jobs, equally for the jobs of a kind.
    optimum : {"centre", "vertex"}
        Optimum among many: near the analytic centre, as in the public simulator, or a vertex.
    profiled : float, optional
        Probability with which a pair of a new one-GPU job and a reference model is measured. Other
        throughputs of pairs are estimated until the pair has run. None: all are known.
    references : int
        Number of reference models, whose pairs are measured beforehand. The nearest of them stands
        in for a new job.
    artifact_index : bool
        Whether measurements are read where the public simulator reads them (`PairEstimator`).

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS with space sharing).
    """

    families = ("max-min",)

    pairs: PairChoice = "all"
    spread: Literal["all", "few"] = "all"
    optimum: Literal["centre", "vertex"] = "centre"
    profiled: Annotated[float, Between(0, 1)] | None = None
    references: Annotated[int, AtLeast(1, "models")] = 16
    artifact_index: bool = False

    pairs_up = True
    # The programme with pairs ends at another optimum than gavel-las.
    baseline = Baseline(None, f"{ADVICE}, or take gavel-las", model=True)
    needs = frozenset({"priority_weight", "throughput"})
    cache_size = 256

    def session(self, view: View) -> Callable[[View], Shares]:
        """Decision function of one simulation, which keeps solutions by kinds and counts."""
        estimates = None
        if self.profiled is not None:
            estimates = EstimatedPairs(view, self.profiled, self.references, self.artifact_index)
        table = PairTable(self, view, estimates)
        solved = SolutionCache[KindShares](self.cache_size)

        def decide(view: View) -> Shares:
            if table.observe(view.new_pairs):
                solved.clear()
            jobs = np.array(view.jobs)
            numbers, counts, kind_of_job = table.present(jobs)
            kinds = table.kinds(numbers, counts)
            kind_shares = solved(numbers, counts, lambda: self._solve(kinds, table.paired(numbers)))
            if self.spread == "all":
                members, job_shares = spread_evenly(jobs, kind_of_job, counts, kind_shares)
            else:
                fractions = 1.0 / counts[kind_of_job]
                members, job_shares = spread_over_few_pairs(
                    jobs, kind_of_job, fractions, kind_shares
                )
            return Shares(members, view.gpu_types, job_shares)

        return decide

    def _solve(self, kinds: Kinds, paired: Floats) -> KindShares:
        """Allocation X of kinds and pairs of kinds, from throughputs of kinds and of pairs."""
        scale = (kinds.widths / (kinds.weights * kinds.equal_speeds))[:, None]
        values = kinds.speeds * scale
        problem = PairableKinds(values, paired * scale[:, None], kinds.widths, kinds.gpus)
        return solved_shares(programme(problem, kinds.counts, pairs=self.pairs), self.optimum)
