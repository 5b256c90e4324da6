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
    arguments of `repro.solve.max_min.fill`.
    """

    weights: Mapping[Any, float] = field(default_factory=dict)
    inner: Inner | Mapping[Any, Inner] = "fairness"
    water_filling: WaterFilling = "exact"
    backend: Backend = "centre"

    def groups(self, entities: Sequence[object]) -> list[tuple[Ints, float, Inner]]:
        """Rows, weight and inner policy of each entity that has jobs."""
        rows_of: dict[object, list[int]] = {}
        for row, entity in enumerate(entities):
            rows_of.setdefault(entity, []).append(row)
        groups = []
        for entity, rows in rows_of.items():
            weight = self.weights.get(entity, 1.0)
            if not weight > 0:
                raise ParamError(f"entity {entity!r} has weight {weight!r}; give > 0")
            if isinstance(self.inner, str):
                policy = self.inner
            else:
                policy = self.inner.get(entity, "fairness")
            groups.append((np.array(rows), float(weight), policy))
        return groups


def hierarchical_shares(
    job_kinds: JobKinds, weights: npt.ArrayLike, entities: Sequence[object], hierarchy: Hierarchy
) -> Floats:
    """X of fairness between entities and a policy inside each, by water filling.

    ``job_kinds`` comes from `repro.solve.max_min.normalised`. Each row has an entity and the weight
    of a single job inside the entity. FIFO serves the jobs of an entity in row order and needs rows
    of a single job each (Gavel, OSDI 2020, section 4.3).
    """
    weight = np.asarray(weights, dtype=float)
    groups = hierarchy.groups(entities)

    def weigh(fixed: Flags) -> Floats:
        # The weight of an entity goes to its jobs that are not fixed yet.
        level = np.zeros(len(job_kinds.widths))
        for rows, share, policy in groups:
            rising = rows[~fixed[rows]]
            if not len(rising):
                continue
            if policy == "fifo":
                level[rising[0]] = share
            else:
                total = weight[rising] @ job_kinds.counts[rising]
                level[rising] = share * weight[rising] / total
        per_gpu: Floats = level / job_kinds.widths
        return per_gpu

    return water_filling_shares(job_kinds, weigh, hierarchy.water_filling, hierarchy.backend)
