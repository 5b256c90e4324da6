"""Gavel's hierarchical policy: fairness between entities, fairness or FIFO inside each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.entities import Inner, hierarchical_shares
from repro.optimise.max_min import Array, Backend, Filling
from repro.policies.gavel._job_types import JobSpeeds, JobTypes


@register("gavel-hierarchical")
@dataclass(frozen=True)
class GavelHierarchical(Policy):
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
    heterogeneity_aware : bool
        False: all GPU types count as equally fast, and rounds do not tell them apart.
    water_filling : {"exact", "published"}
        ``published``: every job that has risen counts as bottlenecked, as in the figures Gavel's
        authors published.
    lp_backend : {"centre", "highs"}
        Which of many optima: the analytic centre, or the vertex with the largest sum.

    References
    ----------
    Gavel, OSDI 2020, section 4.3 (hierarchical scheduling policies).

    Examples
    --------
    >>> GavelHierarchical(inner="fifo", entity_weights={"product": 2.0}).inner
    'fifo'
    """

    inner: Inner = "fairness"
    entity_weights: Mapping[str, float] = field(default_factory=dict)
    column: Literal["entity", "vc"] | None = None
    heterogeneity_aware: bool = True
    water_filling: Filling = "exact"
    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "priority_weight", "entity", "vc"})

    def __post_init__(self) -> None:
        # the class's value is that of aware policies; an instance is frozen
        object.__setattr__(self, "tells_types", self.heterogeneity_aware)

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        speeds = JobSpeeds(view, self.name)
        weights = view.column("priority_weight", 1.0).astype(float).tolist()
        names = self._entities(view)
        types = JobTypes(lambda job: (view.kind(job), weights[job], names[job]))
        solved: dict[object, Array] = {}

        def shares(jobs: Sequence[int], counts: Array | None) -> Array:
            rows = speeds.rows(jobs)
            return hierarchical_shares(
                rows if self.heterogeneity_aware else (rows > 0).astype(float),
                [view.gpus(job) for job in jobs],
                [weights[job] for job in jobs],
                [names[job] for job in jobs],
                self.entity_weights,
                self.inner,
                view.gpu_counts,
                self.water_filling,
                counts,
                self.lp_backend,
                lambda row: f"job in row {jobs[row]}",
            )

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            if self.inner == "fifo":
                # every job has its own place in the queue
                return Shares(jobs, view.gpu_types, shares(jobs, None))
            keys, counts, row = types.group(jobs)
            mix = (tuple(keys), counts.tobytes())
            if mix not in solved:
                first = np.unique(row, return_index=True)[1].tolist()
                solved[mix] = shares([jobs[place] for place in first], counts.astype(float))
            return Shares(jobs, view.gpu_types, solved[mix][row])

        return decide

    def _entities(self, view: View) -> list[str]:
        """Return the entity of every job of the trace."""
        chosen = self.column or ("entity" if view.has_column("entity") else "vc")
        return [str(name) for name in view.column(chosen, "all").tolist()]
