"""Gavel's hierarchical policy: fairness between entities, fairness or FIFO inside each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from repro.core.policy import register
from repro.core.typed_shares import Kinds
from repro.core.view import View
from repro.optimise.entities import Hierarchy, Inner, hierarchical_shares
from repro.optimise.max_min import Backend, Filling, normalised
from repro.policies.gavel._blind import MayBeBlind
from repro.typing import Floats


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

    References
    ----------
    Gavel, OSDI 2020, section 4.3 (hierarchical scheduling policies).
    """

    inner: Inner = "fairness"
    entity_weights: Mapping[str, float] = field(default_factory=dict)
    column: Literal["entity", "vc"] | None = None
    heterogeneity_aware: bool = True
    water_filling: Filling = "exact"
    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "priority_weight", "entity", "vc"})

    def apart(self) -> bool:
        """Tell whether every job has its own place in a queue."""
        return self.inner == "fifo"

    def key(self, view: View) -> Callable[[int], Hashable]:
        """Return what tells kinds apart: kind of job, weight and entity."""
        chosen = self.column or ("entity" if view.has_column("entity") else "vc")
        names = [str(name) for name in view.column(chosen, "all").tolist()]
        weights = view.column("priority_weight", 1.0).astype(float).tolist()
        return lambda job: (view.kind(job), weights[job], names[job])

    def shares(self, kinds: Kinds) -> Floats:
        """Return X."""
        rules = Hierarchy(self.entity_weights, self.inner, self.water_filling, self.lp_backend)
        crowd = normalised(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        entities = [entity for _, _, entity in kinds.keys]
        return hierarchical_shares(crowd, kinds.weights, entities, rules)
