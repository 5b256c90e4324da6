"""Gavel's least attained service: max-min fairness over unequal GPU types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.errors import ParamError
from repro.perf.throughput import ThroughputTable
from repro.policies._maxmin import Array, max_min_shares
from repro.policies.base import Policy, register
from repro.sim.decision import Decision, Shares
from repro.sim.view import View

#: (model, GPUs of the gang, weight): jobs that the programme cannot tell apart.
JobType = tuple[str, int, float]


@register("gavel-las")
@dataclass(frozen=True)
class GavelLas(Policy):
    """Maximise the least weighted throughput, each normalised by the job's equal share.

    Jobs of one model, gang size and weight get equal shares, and the same mix of jobs the same
    answer without solving again.

    Parameters
    ----------
    throughputs : ThroughputTable, optional
        Steps per second; None: all GPU types are equally fast.

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS, heterogeneity-aware).

    Examples
    --------
    >>> GavelLas().throughputs is None
    True
    """

    throughputs: ThroughputTable | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"model", "priority_weight"})

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        models = view.column("model", "").tolist()
        weights = view.column("priority_weight", 1.0).tolist()
        kinds = sorted(view.capacity(), key=str)
        capacity = [view.capacity()[kind] for kind in kinds]
        solved: dict[tuple[tuple[JobType, int], ...], Array] = {}

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            types = [(str(models[job]), view.gpus(job), float(weights[job])) for job in jobs]
            mix = tuple(sorted(Counter(types).items()))
            if mix not in solved:
                values = np.array([self._values(kind, kinds, capacity) for kind, _ in mix])
                counts = [count for _, count in mix]
                solved[mix] = max_min_shares(values, counts, [t[1] for t, _ in mix], capacity)
            row = {kind: number for number, (kind, _) in enumerate(mix)}
            return Shares(jobs, tuple(kinds), solved[mix][[row[kind] for kind in types]])

        return decide

    def _values(self, job: JobType, kinds: list[str | None], capacity: list[int]) -> Array:
        """Return the weighted, normalised throughput of a job type on each GPU type."""
        model, width, weight = job
        if self.throughputs is None:
            speeds = np.ones(len(kinds))
        else:
            speeds = np.array(self.throughputs.speeds(model, width, kinds))
        equal_share = float(speeds @ np.array(capacity, dtype=float)) / sum(capacity)
        if not equal_share > 0:
            raise ParamError(f"gavel-las: {model!r} on {width} GPUs runs on none of {kinds}")
        values: Array = speeds * width / (weight * equal_share)
        return values
