"""Liquid's best-fit: each container goes where the score of the plan grows least (Algorithm 1).

Liquid, TPDS 2022, sections 5.1 and 5.2, Eqs 2 to 6. Plan k of job i uses the nodes beta_k:

    Cost_k = sum over parameter servers m and workers n of Cost(node of m, node of n)
    Fitness_j = -(ReqGPU_j + UsedGPU_j) / TotalGPU_j for node j
    Score_k = lambda Cost_k + (1 - lambda) sum over j in beta_k of Fitness_j

Cost(n1, n2) is 0 on one node. On two nodes it is the number of nodes of their rack, or of their
domain if the racks differ. Each container, parameter servers first, takes the candidate node with
the least Score of the plan so far. A job waits if a container has no candidate.

Ties: the node with the lowest index; scores within 1e-9 are equal.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from repro.model.policy import register
from repro.model.settings import Between
from repro.placement.network import Gang, NodeResources, Scoring
from repro.policies.liquid._containers import Plan
from repro.policies.liquid._optimisations import OptimisedContainers


@register("liquid")
@dataclass(frozen=True)
class Liquid(OptimisedContainers):
    """Place jobs at once, container by container, by the least score of cost and load.

    Parameters
    ----------
    lambda_ : float
        Weight of the communication cost against the load of the nodes, 0 to 1. The setting is
        called ``lambda``. The paper gives no value.
    score : {"paper", "artifact"}
        The printed score, or the score of the artifact, which sends parameter servers to idle nodes
        and workers to used nodes.
    drop : {"full", "always"}
        When a node leaves the candidates: once it is full, or once it is chosen (Algorithm 1, line
        18, as printed).

    Reference: Liquid, TPDS 2022, sections 5.1 and 5.2, Algorithm 1.
    """

    lambda_: Annotated[float, Between(0, 1)] = 0.5
    score: Literal["paper", "artifact"] = "paper"
    drop: Literal["full", "always"] = "full"

    baseline = OptimisedContainers.baseline.also("drop")

    def scoring(self) -> Scoring:
        """Formula and weight of the score."""
        return Scoring(self.lambda_, self.score)

    def per_node(self) -> float:
        """Largest number of containers of a job that the policy puts on one node."""
        return 1 if self.drop == "always" else super().per_node()

    def plan(self, site: NodeResources, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Best-fit plan of one job. None: it has to wait."""
        return site.best_fit(gang, self.scoring(), self.drop)
