"""Shares that no job gains by misreporting."""

from dataclasses import dataclass

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.solve.nash import strategy_proof_shares


@register("gavel-strategy-proof")
@dataclass(frozen=True)
class GavelStrategyProof(TypedShares):
    """Maximise the geometric mean of throughputs, then discount each job by its cost to others.

    Job i gets its share times prod_{l != i} thr_l(with i) / thr_l(without i), so GPUs are left
    idle. Gang sizes and weights multiply a throughput and change neither.

    Reference: Gavel, OSDI 2020, section 4.4; Cole, Gkatzelis and Goel, EC 2013.
    """

    needs = frozenset({"throughput"})

    def shares(self, kinds: Kinds) -> Floats:
        """Return X."""
        return strategy_proof_shares(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus)
