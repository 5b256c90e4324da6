"""Gavel's finish-time fairness (Themis) over unequal GPU types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.policy import register
from repro.core.typed_shares import Kinds
from repro.core.view import View
from repro.optimise.centre import Crowd
from repro.optimise.max_min import Backend
from repro.policies.gavel._blind import MayBeBlind
from repro.policies.gavel._finish_time import IsolatedTime, ftf_shares
from repro.policies.gavel.isolated import isolated_shares
from repro.typing import Floats


@register("gavel-ftf")
@dataclass(frozen=True)
class GavelFtf(MayBeBlind):
    """Minimise the largest ratio of a job's finishing time to that with its own 1/m of the GPUs.

    min_X max_i (t_i + rem_i / thr_i(X)) / D_i, where t_i is the time since arrival, and
    D_i = C_i + rem_i / thr_i(X^isolated) with C_i the time that the progress made so far would have
    taken under the isolated allocations of its time.

    Parameters
    ----------
    lp_backend : {"centre", "highs", "ecos"}
        Which of many optima: the analytic centre, a vertex found by bisection of the ratio, or that
        of Gavel's own solver (extra ``ecos``).

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (finish-time fairness); Themis, NSDI 2020.
    """

    lp_backend: Backend = "centre"

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration"})

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Return X of one run, which remembers isolated time; every row is one job."""
        isolated = IsolatedTime()

        def shares(jobs: Kinds) -> Floats:
            left = jobs.steps_left
            alone = (jobs.speeds * isolated_shares(jobs.widths, jobs.gpus)).sum(axis=1)
            due = isolated.update(jobs.jobs, left, alone) + left / alone
            spent = view.now - np.array([view.submit(job) for job in jobs.jobs])
            crowd = Crowd(jobs.speeds, jobs.counts, jobs.widths, jobs.gpus, jobs.name)
            return ftf_shares(crowd, left, due, spent, self.lp_backend)[0]

        return shares


@register("ftf-agnostic")
@dataclass(frozen=True)
class FtfAgnostic(GavelFtf):
    """Minimise the largest finish-time ratio with the speeds of one GPU type for all.

    Parameters
    ----------
    lp_backend
        As for `gavel-ftf`.
    reference : str
        GPU type whose speeds count for all types; the job's fastest where the cluster has none.

    References
    ----------
    Gavel, OSDI 2020, section 4.2.
    """

    heterogeneity_aware = False
    reference: str = "v100"
