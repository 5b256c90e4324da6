"""Strategy-proof shares: no job gains by a wrong report of its throughputs (Gavel, section 4.4).

    X^Nash = argmax_X prod_m throughput(m, X)
    X_mj = X^Nash_mj prod over l != m of throughput(l, X^Nash) / throughput(l, X^Nash without m)

X^Nash without m is the optimum for the other jobs. The factors, at most 1, leave GPUs idle. Demands
and weights multiply a throughput and change neither line.

Ties: the throughputs under X^Nash are unique. Many X may have these throughputs. The interior-point
path of `repro.solve.nash` chooses among them, and gives jobs of one kind equal shares.
"""

from dataclasses import dataclass

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.solve.nash import strategy_proof_shares


@register("gavel-strategy-proof")
@dataclass(frozen=True)
class GavelStrategyProof(TypedShares):
    """Maximise the geometric mean of throughputs, then discount each job by its cost to others.

    Reference: Gavel, OSDI 2020, section 4.4; Cole, Gkatzelis and Goel, EC 2013.
    """

    needs = frozenset({"throughput"})

    def shares(self, kinds: Kinds) -> Floats:
        """Allocation X, shape (kinds, GPU types)."""
        return strategy_proof_shares(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus)
