"""Liquid's batches: the jobs that wait are placed together by a grouping genetic search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from repro.model.policy import register
from repro.model.settings import Above, AtLeast, Between
from repro.placement.network import Gang, Site
from repro.policies.liquid._containers import PACK, Containers, Plan
from repro.policies.liquid.grouping import Genetic, search


@register("liquid-batch")
@dataclass(frozen=True)
class LiquidBatch(Containers):
    """Place the longest prefix of the queue that fits at once: least sum of scores plus nodes.

    Parameters
    ----------
    lambda_ : float
        Weight of the communication cost against the load of the nodes, 0 to 1; ``lambda`` in
        settings. The paper gives no value.
    every_s : float, optional
        Seconds between batches; by default a batch at every arrival and release.
    generations : int
        Of a search, at most.
    near : float
        Share of moves that keep jobs together; 0 leaves the paper's operators alone.
    elitist : bool
        Parents compete with their children, which the public scheduler's do not.
    best_fit : bool
        The best-fit plan is among the first individuals.

    Notes
    -----
    Liquid, TPDS 2022, section 5.3 and Eqs 7 and 8; `repro.policies.liquid.grouping`.
    """

    lambda_: Annotated[float, Between(0, 1)] = 0.5
    every_s: Annotated[float, Above(0, "seconds")] | None = None
    generations: Annotated[int, AtLeast(1)] = 200
    near: Annotated[float, Between(0, 1)] = 0.5
    elitist: bool = True
    best_fit: bool = True

    baseline = PACK.also("every_s")
    time_fields: ClassVar[tuple[str, ...]] = ("every_s",)
    draws: ClassVar[bool] = True

    @property
    def interval(self) -> float | None:
        """Seconds between batches."""
        return self.every_s

    def genetic(self) -> Genetic:
        """Return the settings of the search."""
        return Genetic(
            self.generations, near=self.near, elitist=self.elitist, best_fit=self.best_fit
        )

    def plan(self, site: Site, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Return the nodes of one job."""
        return self.place(site, [gang], rng)[0]

    def place(
        self,
        site: Site,
        gangs: Sequence[Gang],
        rng: np.random.Generator,
        watch: Callable[[int, float], None] | None = None,
    ) -> list[Plan | None]:
        """Return the nodes of each job of the longest prefix that fits; ``site`` holds them."""
        plans: list[Plan | None] = [None] * len(gangs)
        ends = np.cumsum([gang.size for gang in gangs])
        count = int((ends <= site.idle.sum()).sum())
        while count:
            seed = int(rng.integers(1 << 31))
            found = search(
                site, gangs[:count], self.lambda_, self.genetic(), seed=seed, watch=watch
            )
            if found is not None:
                for number, gang in enumerate(gangs[:count]):
                    plans[number] = plan = found.plan[ends[number] - gang.size : ends[number]]
                    site.hold(plan, gang)
                break
            # GPUs there are enough, but memory, bandwidth or a domain bars the last
            count -= 1
        return plans
