"""``skew``: consolidate models with a dominant tensor, place others on partly used nodes first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.model.settings import Between
from repro.placement.base import Allocation, Placement, Placer, register
from repro.placement.idle_nodes import NodeSet, allocate_by_level
from repro.placement.tiresias_models import by_name


def by_model(values: Mapping[str, float] | None, column: str) -> dict[str, float]:
    """Values by model in lower case; None: a column of Tiresias, Table 6."""
    table = by_name(column) if values is None else values
    return {model.lower(): value for model, value in table.items()}


def look_up(table: Mapping[str, float], model: str | None, default: float) -> float:
    """Value of a model, or ``default`` where the model is missing or unlisted."""
    # A column with gaps has NaN or NA where the model is missing.
    return table.get(model.lower(), default) if isinstance(model, str) else default


class SkewPlacer(Placer):
    """State of skew-aware placement on one cluster; see `Skew`."""

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
        return allocate_by_level([self._nodes], gpus, range(1, self._nodes.size + 1))

    def _consolidate(self, gpus: int) -> Allocation:
        """Allocate GPUs on as few nodes as possible."""
        allocated: list[tuple[int, int]] = []
        while gpus and (node := self._nodes.tightest(gpus)) is not None:
            count = min(gpus, self.idle[node])
            self._nodes.set_idle(node, self.idle[node] - count)
            allocated.append((node, count))
            gpus -= count
        return tuple(sorted(allocated))

    def _release(self, job: int, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self._nodes.set_idle(node, self.idle[node] + gpus)


@register("skew")
@dataclass(frozen=True)
class Skew(Placement):
    """Place by the skew of a model's tensor sizes, the profile-based rule of Tiresias.

    A model with a skew above the limit is consolidated on as few nodes as possible. While no node
    has enough idle GPUs for the rest of the gang, the gang takes the node with the most idle GPUs.
    The rest goes to the node with the fewest idle GPUs that suffice. Any other job fills the nodes
    with the fewest idle GPUs first, so that on equal nodes partly used nodes come before idle
    nodes. Ties go by index.

    Tiresias (NSDI'19), section 3.3 and Table 6. The value of PACKLIMIT is not published.
    """

    #: skew above which a model is consolidated; all limits from 0.15 to 0.60 split the paper's ten
    #: models alike
    pack_limit: Annotated[float, Between(0, 1)] = 0.5
    #: model to the size of its largest tensor over its own size, 0 if not listed; None: Tiresias,
    #: Table 6
    skew: Mapping[str, float] | None = None

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> SkewPlacer:
        """Make a placer with every GPU of ``cluster`` idle."""
        return SkewPlacer(cluster, by_model(self.skew, "largest_ratio"), self.pack_limit)
