"""The highest throughput of all jobs together."""

from dataclasses import dataclass

from repro.core.policy import register
from repro.core.typed_shares import Kinds, TypedShares
from repro.optimise.linear import best_shares
from repro.typing import Floats


@register("gavel-max-throughput")
@dataclass(frozen=True)
class GavelMaxThroughput(TypedShares):
    """Maximise sum_i thr_i(X), steps per second of all jobs together.

    Steps of different models count alike, so slow models wait; equal jobs get equal shares.

    Reference: Gavel, OSDI 2020, section 4.1 (objective over the shares of time).
    """

    needs = frozenset({"throughput"})

    def shares(self, kinds: Kinds) -> Floats | None:
        """Return X."""
        return best_shares(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus)
