"""Proportional: every job has the same mix of GPU types, in proportion to the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Shares
from repro.core.policy import Policy, register
from repro.core.view import View


@register("proportional")
@dataclass(frozen=True)
class Proportional(Policy):
    """Share of time on a type = GPUs of that type / all GPUs, less for all if they do not fit.

    Gavel divides each job's throughput by what this mix gives it before it compares jobs.

    References
    ----------
    Gavel, OSDI 2020, section 4.1 (normalised throughput).

    Examples
    --------
    >>> Proportional()
    Proportional()
    """

    tells_types: ClassVar[bool] = False

    def decide(self, view: View) -> Shares:
        """Return W_j / sum W, scaled so that all gangs together fit the cluster."""
        jobs = tuple(view.jobs)
        gpus = view.gpu_counts
        asked = sum(view.gpus(job) for job in jobs)
        mix = gpus / max(float(gpus.sum()), float(asked))
        return Shares(jobs, view.gpu_types, np.tile(mix, (len(jobs), 1)))
