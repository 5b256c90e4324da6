"""Water filling: what bottlenecked jobs cannot use goes to others, of all or of their entity."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.model.view import View
from repro.policies.gavel._blind import MayBeBlind
from repro.solve.entities import Hierarchy, Inner, hierarchical_shares
from repro.solve.max_min import Backend, Filling, fill, normalised


@register("gavel-water-filling")
@dataclass(frozen=True)
class GavelWaterFilling(MayBeBlind):
    """Maximise the least weighted throughput, then the least of the jobs that can still rise, ...

    Parameters
    ----------
    heterogeneity_aware : bool
        False: all GPU types count as equally fast, and rounds do not tell them apart.
    water_filling : {"exact", "published"}
        ``published``: all jobs count as bottlenecked after the first level, as in the figures
        Gavel's authors published; the answer is then that of gavel-las.
    lp_backend : {"centre", "highs"}
        Which of many optima: the analytic centre, or the vertex with the largest sum.

    Reference: Gavel, OSDI 2020, section 4.3 (water filling).
    """

    families = ("max-min",)

    heterogeneity_aware: bool = True
    water_filling: Filling = "exact"
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "priority_weight"})

    def shares(self, kinds: Kinds) -> Floats:
        """Return X: all jobs that can rise do so by their weight per GPU."""
        crowd = normalised(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        weight = kinds.weights / kinds.widths
        return fill(
            crowd,
            lambda fixed: np.where(fixed, 0.0, weight),
            self.water_filling,
            self.lp_backend,
            steady=True,
        )


@register("gavel-hierarchical")
@dataclass(frozen=True)
class GavelHierarchical(MayBeBlind):
    """Weighted water filling between entities; each divides its level among its jobs.

    Parameters
    ----------
    inner : {"fairness", "fifo"}
        Inside an entity: weighted fairness, or all to the earliest job that can still rise.
    entity_weights : mapping
        Weight of each entity; 1 where it is not named.
    column : {"entity", "vc"}, optional
        Trace column of the entity. None: ``entity``, or ``vc`` where the trace has no such column;
        without both, all jobs are of one entity.
    heterogeneity_aware, water_filling, lp_backend
        As for `gavel-water-filling`.

    Reference: Gavel, OSDI 2020, section 4.3 (hierarchical scheduling policies).
    """

    families = ("max-min",)

    inner: Inner = "fairness"
    entity_weights: Mapping[str, float] = field(default_factory=dict)
    column: Literal["entity", "vc"] | None = None
    heterogeneity_aware: bool = True
    water_filling: Filling = "exact"
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "priority_weight", "entity", "vc"})
    # weights of entities that no job names make no difference
    baseline = Baseline(
        "gavel-water-filling",
        "without entities all jobs are of one; give the column entity or vc",
        parameters=("inner", "heterogeneity_aware", "water_filling", "lp_backend"),
        columns=("entity", "vc"),
    )

    def apart(self) -> bool:
        """Tell whether every job has its own place in a queue."""
        return self.inner == "fifo"

    def key(self, view: View) -> Callable[[int], Hashable]:
        """Return what tells kinds apart: kind of job, weight and entity."""
        chosen = self.column or ("entity" if view.has_column("entity") else "vc")
        names = [str(name) for name in view.column(chosen, "all").tolist()]
        plain = super().key(view)
        return lambda job: (plain(job), names[job])

    def shares(self, kinds: Kinds) -> Floats:
        """Return X."""
        rules = Hierarchy(self.entity_weights, self.inner, self.water_filling, self.lp_backend)
        crowd = normalised(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        entities = [kinds.key(row)[-1] for row in range(len(kinds.counts))]
        return hierarchical_shares(crowd, kinds.weights, entities, rules)
