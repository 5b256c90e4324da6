"""Liquid's best-fit: each container goes where the score of the plan grows least (Algorithm 1)."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from repro.model.policy import register
from repro.model.settings import Between
from repro.placement.network import Gang, Scoring, Site
from repro.policies.liquid._beside import Beside
from repro.policies.liquid._containers import Plan


@register("liquid")
@dataclass(frozen=True)
class Liquid(Beside):
    """Place jobs at once, container by container, by the least score of cost and load.

    Parameters
    ----------
    lambda_ : float
        Weight of the communication cost against the load of the nodes, 0 to 1; ``lambda`` in
        settings. The paper gives no value.
    score : {"paper", "artifact"}
        The printed score, or that of the public evaluator, which sends parameter servers to idle
        and workers to used nodes.
    drop : {"full", "always"}
        When a node leaves the candidates: once it is full, or once it is chosen, as line 18 of
        Algorithm 1 reads.

    Notes
    -----
    Liquid, TPDS 2022, Algorithm 1.
    """

    lambda_: Annotated[float, Between(0, 1)] = 0.5
    score: Literal["paper", "artifact"] = "paper"
    drop: Literal["full", "always"] = "full"

    baseline = Beside.baseline.also("drop")

    def scoring(self) -> Scoring:
        """Return how plans are scored."""
        return Scoring(self.lambda_, self.score)

    def per_node(self) -> float:
        """Return how many containers of a job a node may take, room aside."""
        return 1 if self.drop == "always" else super().per_node()

    def plan(self, site: Site, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Return the best-fit plan."""
        return site.best_fit(gang, self.scoring(), self.drop)
