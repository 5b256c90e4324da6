"""Fairness between entities (organisations, departments) and fairness or FIFO inside each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repro.base.errors import ParamError
from repro.base.typing import Flags, Floats, Ints
from repro.solve.max_min import Backend, Crowd, Filling, fill

Inner = Literal["fairness", "fifo"]


@dataclass(frozen=True)
class Hierarchy:
    """What entities are worth and how each serves its jobs.

    Entities without a weight have 1; ``inner`` is the policy inside all entities, or that of each
    (FIFO knows no weights of jobs), the rest as for `repro.solve.max_min.fill`.
    """

    weights: Mapping[Any, float] = field(default_factory=dict)
    inner: Inner | Mapping[Any, Inner] = "fairness"
    water_filling: Filling = "exact"
    backend: Backend = "centre"

    def groups(self, entities: Sequence[object]) -> list[tuple[Ints, float, Inner]]:
        """Return rows, weight and inner policy of each entity that has jobs."""
        places: dict[object, list[int]] = {}
        for row, entity in enumerate(entities):
            places.setdefault(entity, []).append(row)
        found = []
        for entity, rows in places.items():
            weight = self.weights.get(entity, 1.0)
            inner = self.inner
            if not weight > 0:
                raise ParamError(f"entity {entity!r} has weight {weight!r}; give > 0")
            one = inner if isinstance(inner, str) else inner.get(entity, "fairness")
            found.append((np.array(rows), float(weight), one))
        return found


def hierarchical_shares(
    crowd: Crowd, weights: npt.ArrayLike, entities: Sequence[object], hierarchy: Hierarchy
) -> Floats:
    """Return X of fairness between entities and a policy inside each, by water filling.

    ``crowd`` is as `repro.solve.max_min.normalised` makes it, with rows of one job each under
    FIFO, which serves the jobs of an entity in the order given; each row has the weight of a job
    inside its entity, and that entity (Gavel, OSDI 2020, section 4.3).
    """
    width = crowd.widths
    weight = np.asarray(weights, dtype=float)
    groups = hierarchy.groups(entities)

    def weigh(fixed: Flags) -> Floats:
        level = np.zeros(len(width))
        for rows, share, policy in groups:
            waits = rows[~fixed[rows]]
            if not len(waits):
                continue
            if policy == "fifo":
                level[waits[0]] = share
            else:
                level[waits] = share * weight[waits] / (weight[waits] @ crowd.counts[waits])
        per_gpu: Floats = level / width
        return per_gpu

    return fill(crowd, weigh, hierarchy.water_filling, hierarchy.backend)
