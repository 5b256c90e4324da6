"""Liquid's batches: waiting jobs are placed together by a grouping genetic algorithm.

Liquid, TPDS 2022, section 5.3, Eqs 7 and 8. A batch is the longest prefix of the queue that fits.
With NumNU the number of nodes in use, the plans of its jobs i maximise

    GeneticFitness = -sum_i Score_{k_i} - NumNU.

`repro.policies.liquid.liquid` has the score, `repro.policies.liquid.grouping` the search.

Ties: the first of the best plans that the search finds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from repro.model.policy import register
from repro.model.settings import Above, AtLeast, Between
from repro.placement.network import Gang, NodeResources
from repro.policies.liquid._containers import PACK, Containers, Plan
from repro.policies.liquid.grouping import GeneticSettings, search


@register("liquid-batch")
@dataclass(frozen=True)
class LiquidBatch(Containers):
    """Place the longest prefix of the queue that fits, with the least sum of scores plus nodes.

    Parameters
    ----------
    lambda_ : float
        Weight of the communication cost against the load of the nodes, 0 to 1. The setting is
        called ``lambda``. The paper gives no value.
    every_s : float, optional
        Seconds between batches. By default every arrival and every release has a batch.
    generations : int
        Largest number of generations of a search.
    near : float
        Probability of the moves that keep the containers of a job on few nodes. 0: the operators
        of the paper, which has no such moves.
    elitist : bool
        Whether parents compete with their children. False: children replace them, as in the public
        scheduler.
    best_fit : bool
        Whether the first individuals include the best-fit plan.

    Reference: Liquid, TPDS 2022, section 5.3, Eqs 7 and 8.
    """

    lambda_: Annotated[float, Between(0, 1)] = 0.5
    every_s: Annotated[float, Above(0, "seconds")] | None = None
    generations: Annotated[int, AtLeast(1, "generations")] = 200
    near: Annotated[float, Between(0, 1)] = 0.5
    elitist: bool = True
    best_fit: bool = True

    baseline = PACK.also("every_s")
    time_fields: ClassVar[tuple[str, ...]] = ("every_s",)
    is_random: ClassVar[bool] = True

    @property
    def interval(self) -> float | None:
        """Seconds between batches."""
        return self.every_s

    def genetic(self) -> GeneticSettings:
        """Settings of the search."""
        return GeneticSettings(
            self.generations, near=self.near, elitist=self.elitist, best_fit=self.best_fit
        )

    def plan(self, site: NodeResources, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Plan of a batch of one job. None: it has to wait."""
        return self.place(site, [gang], rng)[0]

    def place(
        self,
        site: NodeResources,
        gangs: Sequence[Gang],
        rng: np.random.Generator,
        watch: Callable[[int, float], None] | None = None,
    ) -> list[Plan | None]:
        """Plan of each job of the longest prefix that fits, allocated on ``site``."""
        plans: list[Plan | None] = [None] * len(gangs)
        container_ends = np.cumsum([gang.size for gang in gangs])
        num_jobs = int((container_ends <= site.idle.sum()).sum())
        while num_jobs:
            batch = gangs[:num_jobs]
            seed = int(rng.integers(1 << 31))
            best = search(site, batch, self.lambda_, self.genetic(), seed=seed, watch=watch)
            if best is not None:
                for number, gang in enumerate(batch):
                    plan = best.plan[container_ends[number] - gang.size : container_ends[number]]
                    plans[number] = plan
                    site.allocate(plan, gang)
                break
            # The GPUs suffice, but memory, bandwidth or domains do not.
            num_jobs -= 1
        return plans
