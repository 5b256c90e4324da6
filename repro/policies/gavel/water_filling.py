"""Water filling: GPUs that bottlenecked jobs cannot use go to other jobs (Gavel, section 4.3).

The normalised throughput of job m is throughput(m, X) / throughput(m, X^equal). e_m is the value
that job m has reached, 0 at first, and w^level_m its weight. Each step solves:

    max_X min over m with w^level_m > 0 of
        (scale_factor_m / w^level_m) (throughput(m, X) / throughput(m, X^equal) - e_m)
    subject to throughput(m, X) / throughput(m, X^equal) >= e_m for every job m

Then every e_m rises by the optimum times w^level_m / scale_factor_m. A job whose e_m cannot rise
further is bottlenecked and gets weight 0. The filling ends when all weights are 0.

- ``gavel-water-filling``: w^level_m = w_m.
- ``gavel-hierarchical``, fairness inside entity s of weight v_s: w^level_m = v_s w_m / sum of w_l
  over the jobs l of s that can rise.
- ``gavel-hierarchical``, FIFO inside entity s: w^level_m = v_s for the earliest job of s that can
  rise, and 0 for its other jobs.

Ties: jobs of one kind have equal shares. FIFO inside an entity goes by order of arrival, then order
in the trace. Many X have the same final e_m. ``lp_backend`` chooses the analytic centre of these
optima, or the vertex with the largest sum of normalised throughputs.
"""

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from repro.base.errors import InputWarning, TraceError, near
from repro.base.typing import Flags, Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.model.view import View
from repro.policies.gavel._agnostic import AwareOrAgnostic
from repro.solve.entities import Hierarchy, Inner, hierarchical_shares
from repro.solve.max_min import Backend, WaterFilling, normalised, water_filling_shares
from repro.trace.schema import as_name


@register("gavel-water-filling")
@dataclass(frozen=True)
class GavelWaterFilling(AwareOrAgnostic):
    """Maximise the least weighted throughput, again and again for the jobs that can still rise.

    Parameters
    ----------
    heterogeneity_aware : bool
        False: all GPU types count as equally fast, and rounds do not tell them apart.
    water_filling : {"exact", "published"}
        ``published``: every job whose e_m rose in a step counts as bottlenecked, as in the figures
        that Gavel's authors published. Then this policy has the allocation of gavel-las.
    lp_backend : {"centre", "highs"}
        Optimum among many: the analytic centre, or the vertex with the largest sum of normalised
        throughputs.

    Reference: Gavel, OSDI 2020, section 4.3 (water filling).
    """

    families = ("max-min",)

    heterogeneity_aware: bool = True
    water_filling: WaterFilling = "exact"
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "priority_weight"})

    def shares(self, kinds: Kinds) -> Floats:
        """Allocation X, shape (kinds, GPU types). Jobs rise in proportion to weight per GPU."""
        problem = normalised(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        weight_per_gpu = kinds.weights / kinds.widths

        def weigh(bottlenecked: Flags) -> Floats:
            return np.where(bottlenecked, 0.0, weight_per_gpu)

        return water_filling_shares(
            problem, weigh, self.water_filling, self.lp_backend, constant_weights=True
        )


@register("gavel-hierarchical")
@dataclass(frozen=True)
class GavelHierarchical(AwareOrAgnostic):
    """Weighted water filling between entities; each divides its weight among its jobs.

    Parameters
    ----------
    inner : {"fairness", "fifo"}
        Policy inside an entity. ``fairness``: weighted fairness. ``fifo``: the earliest job that
        can still rise gets the whole weight of the entity.
    entity_weights : mapping
        Weight of each entity; 1 where it is not named. Entities are text or whole numbers.
    column : {"entity", "vc"}, optional
        Trace column of the entity. None: ``entity``, or ``vc`` where the trace has no such column.
        Without both columns, all jobs belong to one entity.
    heterogeneity_aware : bool
        False: all GPU types count as equally fast, and rounds do not tell them apart.
    water_filling : {"exact", "published"}
        ``published``: every job that rose in a step counts as bottlenecked, as in the figures
        that Gavel's authors published.
    lp_backend : {"centre", "highs"}
        Optimum among many: the analytic centre, or the vertex with the largest sum of normalised
        throughputs.

    Reference: Gavel, OSDI 2020, section 4.3 (hierarchical scheduling policies).
    """

    families = ("max-min",)

    inner: Inner = "fairness"
    entity_weights: Mapping[str, float] = field(default_factory=dict)
    column: Literal["entity", "vc"] | None = None
    heterogeneity_aware: bool = True
    water_filling: WaterFilling = "exact"
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "priority_weight", "entity", "vc"})
    # `entity_weights` is missing here: without entities it has no effect.
    baseline = Baseline(
        "gavel-water-filling",
        "without entities all jobs belong to one entity; give the column entity or vc",
        parameters=("inner", "heterogeneity_aware", "water_filling", "lp_backend"),
        columns=("entity", "vc"),
    )

    def jobs_are_kinds(self) -> bool:
        """Whether every job is a kind of its own: FIFO inside an entity needs the arrivals."""
        return self.inner == "fifo"

    def key(self, view: View) -> Callable[[int], Hashable]:
        """Kind of a job as a function of the job: model, demand, weight and entity."""
        if self.column and not view.has_column(self.column):
            raise TraceError(
                f"{view.source}: no column {self.column}, which policy {self.name!r} has as its "
                "column of entities; add it, or set another column"
            )
        entity_column = self.column or ("entity" if view.has_column("entity") else "vc")
        entities = [as_name(entity) for entity in view.column(entity_column, "all").tolist()]
        if view.has_column(entity_column):
            self._warn_of_absent(entity_column, sorted(set(entities)))
        key_without_entity = super().key(view)
        return lambda job: (key_without_entity(job), entities[job])

    def shares(self, kinds: Kinds) -> Floats:
        """Allocation X, shape (kinds, GPU types)."""
        hierarchy = Hierarchy(
            self._weight_of_entity(), self.inner, self.water_filling, self.lp_backend
        )
        problem = normalised(kinds.speeds, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        entities = [kinds.key(row)[-1] for row in range(len(kinds.counts))]
        return hierarchical_shares(problem, kinds.weights, entities, hierarchy)

    def _warn_of_absent(self, entity_column: str, entities: Sequence[str]) -> None:
        """Warn of weights whose entity the trace does not have.

        They are no error, because a part of a trace may lack an entity that the whole trace has.
        """
        for name in self._weight_of_entity():
            if name not in entities:
                warnings.warn(
                    f"entity_weights: column {entity_column} of the trace has no entity "
                    f"{name!r:.60}{near(name, entities)} (there are: {', '.join(entities)})",
                    InputWarning,
                    stacklevel=2,
                )

    def _weight_of_entity(self) -> dict[str, float]:
        """Weight of each named entity; entities are compared as text."""
        return {as_name(entity): weight for entity, weight in self.entity_weights.items()}
