"""``skew``: consolidate models with one dominant tensor, use the others to fill gaps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.model.settings import Between
from repro.placement.base import Allocation, Placement, Placer, register
from repro.placement.idle_nodes import NodeSet, take_by_level
from repro.placement.tiresias_models import MODELS


def by_model(given: Mapping[str, float] | None, column: str) -> dict[str, float]:
    """Return what is given by model or, if None, a column of Tiresias, Table 6."""
    table = MODELS.column(column) if given is None else given
    return {model.lower(): value for model, value in table.items()}


def look_up(table: Mapping[str, float], model: str | None, default: float) -> float:
    """Return the entry of a model, or ``default`` for none, a missing or an unlisted one."""
    # A trace column with gaps holds NaN or NA where the model is missing.
    return table.get(model.lower(), default) if isinstance(model, str) else default


class SkewPlacer(Placer):
    """Skew-aware placement at work; see `Skew`."""

    reads_model = True

    def __init__(self, cluster: Cluster, skew: Mapping[str, float], pack_limit: float) -> None:
        super().__init__(cluster)
        self.idle = [node.gpus for node in cluster.nodes]
        self._nodes = NodeSet(range(len(self.idle)), self.idle)
        self._skew = skew
        self._pack_limit = pack_limit

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation:
        if look_up(self._skew, model, 0.0) > self._pack_limit:
            return self._consolidate(gpus)
        return take_by_level([self._nodes], gpus, range(1, self._nodes.size + 1))

    def _consolidate(self, gpus: int) -> Allocation:
        taken: list[tuple[int, int]] = []
        while gpus and (node := self._nodes.tightest(gpus)) is not None:
            share = min(gpus, self.idle[node])
            self._nodes.set_idle(node, self.idle[node] - share)
            taken.append((node, share))
            gpus -= share
        return tuple(sorted(taken))

    def _release(self, job: int, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self._nodes.set_idle(node, self.idle[node] + gpus)


@register("skew")
@dataclass(frozen=True)
class Skew(Placement):
    """Place by the skew of a model's tensor sizes, the profile-based rule of Tiresias.

    A model with a skew above the limit is consolidated on as few nodes as possible: while it is
    larger than any gap, the nodes with the most idle GPUs; then the smallest gap that holds the
    rest (ties by index). Any other job fills the nodes with the fewest idle GPUs first (ties by
    index), which on equal nodes means partially used before idle ones.

    Tiresias (NSDI'19), section 3.3 and Table 6; PACKLIMIT itself is not published.
    """

    #: skew above which a model is consolidated; 0.15 to 0.60 separate the paper's ten alike
    pack_limit: Annotated[float, Between(0, 1)] = 0.5
    #: model to the share of its largest tensor, 0 if not listed; None: that of Tiresias, Table 6
    skew: Mapping[str, float] | None = None

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> SkewPlacer:
        """Return a placer with every GPU of ``cluster`` idle."""
        return SkewPlacer(cluster, by_model(self.skew, "largest_ratio"), self.pack_limit)
