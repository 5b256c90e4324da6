"""Fairness between entities (organisations, departments), and fairness or FIFO inside each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repro.base.errors import ParamError
from repro.base.typing import Flags, Floats, Ints
from repro.solve.max_min import Backend, JobKinds, WaterFilling, water_filling_shares

Inner = Literal["fairness", "fifo"]


@dataclass(frozen=True)
class Hierarchy:
    """Weights of entities, and the policy inside each.

    An entity without a weight has weight 1. ``inner`` is the policy inside all entities, or a map
    from entity to policy. FIFO ignores the weights of jobs. ``water_filling`` and ``backend`` are
    arguments of `repro.solve.max_min.water_filling_shares`.
    """

    weights: Mapping[Any, float] = field(default_factory=dict)
    inner: Inner | Mapping[Any, Inner] = "fairness"
    water_filling: WaterFilling = "exact"
    backend: Backend = "centre"

    def members(self, entities: Sequence[object]) -> list[tuple[Ints, float, Inner]]:
        """Rows, weight and inner policy of each entity that has jobs."""
        rows_of: dict[object, list[int]] = {}
        for row, entity in enumerate(entities):
            rows_of.setdefault(entity, []).append(row)
        members = []
        for entity, rows in rows_of.items():
            weight = self.weights.get(entity, 1.0)
            if not weight > 0:
                raise ParamError(f"entity {entity!r} has weight {weight!r}; give a number above 0")
            if isinstance(self.inner, str):
                policy = self.inner
            else:
                policy = self.inner.get(entity, "fairness")
            members.append((np.array(rows), float(weight), policy))
        return members


def hierarchical_shares(
    job_kinds: JobKinds, weights: npt.ArrayLike, entities: Sequence[object], hierarchy: Hierarchy
) -> Floats:
    """Allocation X with fairness between entities and a policy inside each, by water filling.

    ``job_kinds`` comes from `repro.solve.max_min.normalised`. A row is a kind of equal jobs.
    ``entities`` has the entity of each row. ``weights`` has the weight of one job of each row. It
    counts only among the jobs of the entity. FIFO serves the jobs of an entity in row order and
    needs rows of a single job each (Gavel, OSDI 2020, section 4.3).
    """
    weight = np.asarray(weights, dtype=float)
    members = hierarchy.members(entities)

    def weigh(fixed: Flags) -> Floats:
        # The weight of an entity goes to its jobs that are not fixed yet.
        row_weight = np.zeros(len(job_kinds.widths))
        for rows, entity_weight, policy in members:
            rising = rows[~fixed[rows]]
            if not len(rising):
                continue
            if policy == "fifo":
                row_weight[rising[0]] = entity_weight
            else:
                total = weight[rising] @ job_kinds.counts[rising]
                row_weight[rising] = entity_weight * weight[rising] / total
        # Gavel multiplies the throughput of a job by its GPUs (section 4.1). Weights are divided by
        # the GPUs to the same effect.
        per_gpu: Floats = row_weight / job_kinds.widths
        return per_gpu

    return water_filling_shares(job_kinds, weigh, hierarchy.water_filling, hierarchy.backend)
