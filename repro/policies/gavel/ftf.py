"""Gavel's finish-time fairness (Themis) over unequal GPU types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.model.view import View
from repro.policies.gavel._blind import Blind, MayBeBlind
from repro.policies.gavel.isolated import isolated_shares
from repro.solve.ecos import ecos_ratio
from repro.solve.max_min import Backend, Crowd, central_ratio, vertex_ratio


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
    zeros : bool
        ECOS is handed explicit zeros, as by Gavel's simulator; False: as by the copy of it behind
        Themis of Muri's Fig 10. Where optima are many, that decides which comes out.

    Reference: Gavel, OSDI 2020, section 4.2 (finish-time fairness); Themis, NSDI 2020.
    """

    lp_backend: Backend = "centre"
    zeros: bool = True

    needs = frozenset({"throughput", "duration"})
    baseline: ClassVar[Baseline | None] = Baseline(
        "ftf-agnostic",
        "without speeds by GPU type all types are alike; give a throughput table "
        "(--throughputs gavel-throughputs) and a cluster of GPU types",
        model=True,
    )

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Return X of one run, which remembers isolated time; every row is one job."""
        isolated = IsolatedTime()

        def shares(jobs: Kinds) -> Floats:
            # in steps, as the public simulator counts: solvers stop where the scale lets them
            step = np.reshape(view.step_s(jobs.jobs), (-1, 1))
            left = jobs.steps_left / step[:, 0]
            speeds = jobs.speeds / step
            alone = (speeds * isolated_shares(jobs.widths, jobs.gpus)).sum(axis=1)
            due = isolated.update(jobs.jobs, left, alone) + left / alone
            spent = view.now - np.array([view.submit(job) for job in jobs.jobs])
            crowd = Crowd(speeds, jobs.counts, jobs.widths, jobs.gpus, jobs.name)
            return ftf_shares(crowd, left, due, spent, self.lp_backend, self.zeros)[0]

        return shares


@register("ftf-agnostic")
@dataclass(frozen=True)
class FtfAgnostic(Blind, GavelFtf):
    """Minimise the largest finish-time ratio with the speeds of one GPU type for all.

    Parameters: those of `gavel-ftf` and of `Blind`.
    """

    baseline = None


class IsolatedTime:
    """How long the progress of each job would have taken under the isolated shares of its time."""

    def __init__(self) -> None:
        # at the last call: jobs, ascending, their steps left, isolated speeds and isolated time
        self._jobs = np.array([-1])
        self._state = np.ones((3, 1))

    def update(self, jobs: Sequence[int], left: Floats, alone: Floats) -> Floats:
        """Return the isolated time of each job (s), given steps left and isolated speeds now."""
        rows = np.array(jobs)
        place = np.minimum(np.searchsorted(self._jobs, rows), len(self._jobs) - 1)
        before, speed, time = self._state[:, place]
        past = np.where(self._jobs[place] == rows, time + (before - left) / speed, 0.0)
        self._jobs = rows
        self._state = np.array([left, alone, past])
        return past


def ftf_shares(
    crowd: Crowd,
    left: Floats,
    due: Floats,
    spent: Floats,
    backend: Backend = "centre",
    zeros: bool = True,
) -> tuple[Floats, float]:
    """Return the shares with the least ratio max_i (spent_i + left_i / thr_i) / due_i, and it.

    ``left`` is in steps; ``due``, the finishing time with the job's own part of the cluster, and
    ``spent``, the time since arrival, in seconds.
    """
    left = np.maximum(left, 1e-9 * max(float(left.max()), 1e-300))
    due = np.maximum(due, 1e-9 * max(float(due.max()), 1e-300))
    if backend != "highs":
        given = (crowd, left, due, spent)
        answer = central_ratio(*given) if backend == "centre" else ecos_ratio(*given, zeros)
        if answer is not None:
            return answer
    return vertex_ratio(crowd, left, due, spent)
