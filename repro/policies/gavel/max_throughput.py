"""Gavel's highest total throughput (Gavel, section 4.1).

    max_X sum_m throughput(m, X)

Ties: jobs of one kind have equal shares. Among the optima, the one whose smallest share of time is
largest (``lp_backend="highs"``), or the optimum of Gavel's own solver.
"""

from dataclasses import dataclass
from typing import Literal

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.solve.ecos import ecos_sum
from repro.solve.linear import best_shares
from repro.solve.max_min import JobKinds


@register("gavel-max-throughput")
@dataclass(frozen=True)
class GavelMaxThroughput(TypedShares):
    """Maximise the steps per second of all jobs together.

    Steps of different models count alike, so slow models wait.

    Parameters
    ----------
    lp_backend : {"highs", "ecos"}
        Optimum among many: the one whose smallest share of time is largest, or the optimum of
        Gavel's own solver (extra ``ecos``). This solver gets a row per job.

    Reference: Gavel, OSDI 2020, section 4.1 (objective over the shares of time).
    """

    lp_backend: Literal["highs", "ecos"] = "highs"

    needs = frozenset({"throughput"})

    def jobs_are_kinds(self) -> bool:
        """Whether every job is a kind of its own: with ``ecos``, as in the public simulator."""
        return self.lp_backend == "ecos"

    def shares(self, kinds: Kinds) -> Floats | None:
        """Allocation X, shape (kinds, GPU types)."""
        if self.lp_backend == "ecos":
            return ecos_sum(
                JobKinds(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
            )
        return best_shares(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus)
