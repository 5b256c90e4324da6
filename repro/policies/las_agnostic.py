"""Gavel's baseline: least attained service that takes all GPU types for equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.policies.base import Policy, register
from repro.sim.decision import Shares
from repro.sim.view import View


@register("las-agnostic")
@dataclass(frozen=True)
class LasAgnostic(Policy):
    """Equal weighted GPU-time for every job, spread over the types as the GPUs are.

    The programme of max-min fairness without throughputs has many optima; this is the one that
    treats GPU types alike, in closed form.

    References
    ----------
    Gavel, OSDI 2020, section 4.1 (LAS, heterogeneity-agnostic).

    Examples
    --------
    >>> LasAgnostic()
    LasAgnostic()
    """

    needs: ClassVar[frozenset[str]] = frozenset({"priority_weight"})

    def decide(self, view: View) -> Shares:
        """Return r_i W_j / sum W with r_i = min(1, z w_i / W_i) and z the common GPU-time."""
        jobs = tuple(view.jobs)
        weights = view.column("priority_weight", 1.0)[list(jobs)].astype(float)
        widths = np.array([view.gpus(job) for job in jobs], dtype=float)
        kinds = sorted(view.capacity(), key=str)
        gpus = np.array([view.capacity()[kind] for kind in kinds], dtype=float)
        level = min(float((widths / weights).min()), gpus.sum() / weights.sum())
        time = np.minimum(1.0, level * weights / widths)
        return Shares(jobs, tuple(kinds), np.outer(time, gpus / gpus.sum()))
