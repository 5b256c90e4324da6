"""Equal shares of GPUs, fractions allowed; on one GPU processor sharing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.core.decision import Run, RunSet
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.policies.pcs._elastic import total_gpus


@register("max-min")
@dataclass(frozen=True)
class MaxMin(Policy):
    """Everyone gets the same number of GPUs, or what it asks for if that is less.

    References
    ----------
    PCS, arXiv 2401.10354, section 5.1 (Max-Min).

    Examples
    --------
    >>> MaxMin()
    MaxMin()
    """

    elastic: ClassVar[bool] = True

    def decide(self, view: View) -> RunSet:
        """Fill up from the smallest demand: each takes at most an equal part of what is left."""
        jobs = sorted(view.jobs, key=view.gpus)
        left = float(total_gpus(view))
        runs = []
        for number, job in enumerate(jobs):
            gpus = min(float(view.gpus(job)), left / (len(jobs) - number))
            runs.append(Run((job,), gpus))
            left -= gpus
        return RunSet(runs, "exact")
