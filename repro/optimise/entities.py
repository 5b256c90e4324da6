"""Fairness between entities (organisations, departments) and fairness or FIFO inside each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repro.errors import ParamError
from repro.optimise.max_min import Array, Backend, Filling, Flags, fill, normalised

Inner = Literal["fairness", "fifo"]


def hierarchical_shares(
    speeds: Array,
    widths: npt.ArrayLike,
    weights: npt.ArrayLike,
    entities: Sequence[object],
    entity_weights: Mapping[Any, float],
    inner: Inner | Mapping[Any, Inner],
    capacity: npt.ArrayLike,
    water_filling: Filling = "exact",
    counts: npt.ArrayLike | None = None,
    lp_backend: Backend = "centre",
    name: Callable[[int], str] = "job {}".format,
) -> Array:
    """Return X of fairness between entities and a policy inside each, by water filling.

    Parameters
    ----------
    speeds : ndarray, shape (jobs, GPU types)
        Steps per second, 0 = cannot run; all ones for the heterogeneity-agnostic variant.
    widths, weights : array_like, shape (jobs,)
        GPUs of each job and its weight inside the entity; FIFO has no weights.
    entities : sequence, length jobs
        The entity of each job; FIFO serves the jobs of an entity in the order given.
    entity_weights : mapping
        Weight of each entity; 1 where it is not named.
    inner : {"fairness", "fifo"} or mapping
        Policy inside the entities, or that of each.
    capacity : array_like, shape (GPU types,)
        GPUs of each type.
    water_filling : {"exact", "published"}
        ``published``: every job that has risen counts as bottlenecked, as in the published
        figures; the shares are then those of one programme (fairness), or one per queue position.
    counts : array_like, shape (jobs,), optional
        Equal jobs that each row stands for; 1 under FIFO.
    lp_backend : {"centre", "highs"}
        Which of many optima.
    name : callable
        Row number to the words that name its jobs in messages.

    Returns
    -------
    ndarray, shape (jobs, GPU types)
        Share of time of each job on each GPU type.

    References
    ----------
    Gavel, OSDI 2020, section 4.3 (hierarchical scheduling policies).

    Examples
    --------
    Two entities, the second of twice the weight, on three equal GPUs:

    >>> ones = np.ones((8, 1))
    >>> who = ["a"] * 4 + ["b"] * 4
    >>> x = hierarchical_shares(ones, [1] * 8, [1] * 8, who, {"a": 1, "b": 2}, "fairness", [3])
    >>> x.ravel().round(3).tolist()
    [0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5]
    >>> x = hierarchical_shares(ones, [1] * 8, [1] * 8, who, {}, "fifo", [3])
    >>> x.ravel().round(3).tolist()
    [1.0, 0.5, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0]
    """
    width, weight = np.asarray(widths, dtype=float), np.asarray(weights, dtype=float)
    each = np.ones(len(width)) if counts is None else np.asarray(counts)
    places: dict[object, list[int]] = {}
    for row, entity in enumerate(entities):
        places.setdefault(entity, []).append(row)
    for entity in places:
        if not entity_weights.get(entity, 1.0) > 0:
            raise ParamError(f"entity {entity!r} has weight {entity_weights[entity]!r}; give > 0")
    groups = [
        (
            np.array(rows),
            float(entity_weights.get(entity, 1.0)),
            inner if isinstance(inner, str) else inner.get(entity, "fairness"),
        )
        for entity, rows in places.items()
    ]

    def weigh(fixed: Flags) -> Array:
        level = np.zeros(len(width))
        for rows, share, policy in groups:
            waits = rows[~fixed[rows]]
            if not len(waits):
                continue
            if policy == "fifo":
                level[waits[0]] = share
            else:
                level[waits] = share * weight[waits] / (weight[waits] @ each[waits])
        answer: Array = level / width
        return answer

    gpus = np.asarray(capacity, dtype=float)
    crowd = normalised(speeds, each, width, gpus, name)
    return fill(crowd, weigh, water_filling, lp_backend)
