"""Finish-time fairness by shares of time, as Muri's public simulator runs Themis."""

import math

import numpy as np

from repro.base.errors import TraceError
from repro.base.typing import Array, Ints
from repro.model.decision import RunSet
from repro.model.elastic import total_gpus
from repro.model.view import View
from repro.placement.first_fit import FirstFit

#: Seconds of work a job is taken to have left at least, so that its share is above 0.
LEAST_S = 1e-6
#: What the share of a job that never ran is multiplied by, instead of being divided by time run.
NEVER_RAN = 1e9


def fair_shares(elapsed: Array, left: Array, alone: Array, gpus: Array, total: float) -> Array:
    """Return the share of time x of each job that minimises the largest finish-time ratio.

    The ratio of a job is (elapsed + left / x) / alone, all in seconds, left and alone above 0;
    x is in (0, 1], the sum of gpus * x at most ``total``. Every job gets the smallest share with
    which its ratio is no larger than the optimum rho, found by Newton's method on
    sum of gpus * left / (rho * alone - elapsed) = total.
    """
    rho = float(((elapsed + left) / alone).max())
    need = gpus * left
    while True:
        # at the optimum slack is no shorter than what is left, but for rounding
        slack = np.maximum(rho * alone - elapsed, left)
        excess = float((need / slack).sum()) - total
        if excess <= 0:
            break
        # convex and falling in rho: Newton's steps come from the left and never overshoot
        step = excess / float((need * alone / slack**2).sum())
        if not rho + step > rho or step <= 1e-15 * rho:
            break
        rho += step
    return left / slack


class FairShares:
    """One run of `Themis` in form ``shares``: what each job was promised, and has got.

    At every event jobs are ranked by share over time run (0: first), then by time promised (sum of
    share * seconds) less time run, then by share, descending; ties go to the larger gang, then to
    the one listed earlier. Whoever fits then runs.
    """

    def __init__(self, view: View, in_iterations: bool, initial_service: float) -> None:
        self.in_iterations = in_iterations
        self.initial_service = initial_service
        self.total = total_gpus(view)
        self.nodes = FirstFit(view.cluster)
        #: unfinished jobs in the order of the last event, and those that ran since
        self.order: Ints = np.empty(0, dtype=np.int64)
        self.ran: list[int] = []
        self.seen = 0
        self.last = 0.0
        #: per row: seconds left alone, seconds run, share, sum of share * seconds; what is done of
        #: the time in a cluster of one's own, and the speed there when it was last looked at
        none: Array = np.empty(0)
        self.submit = self.gpus = self.unit = self.left = self.run = none
        self.share = self.promised = self.done = self.pace = none

    def __call__(self, view: View) -> RunSet:
        """Work out the shares, rank by them, and run whoever fits."""
        self._advance(view)
        rows = self.order
        if not len(rows):
            return RunSet(())
        gpus = self.gpus[rows]
        left = self.left[rows]
        ran = self.run[rows]
        pace = np.minimum(1.0, math.ceil(self.total / len(rows)) / gpus)
        alone = self.done[rows] + left / (self.unit[rows] * pace)
        elapsed = view.now - self.submit[rows]
        share = fair_shares(elapsed, left, alone, gpus, self.total)
        self.share[rows] = share
        self.pace[rows] = pace
        served = ran + self.initial_service
        first = np.divide(share, served, out=share * NEVER_RAN, where=served > 0)
        ranking = np.lexsort((-share, ran - self.promised[rows], -first))
        ranked = rows[ranking]
        self.ran = self._fitting(ranked)
        self.order = ranked[np.argsort(-self.gpus[ranked], kind="stable")]
        return RunSet(self.ran, "exact")

    def _advance(self, view: View) -> None:
        """Account for what ran since the last event, who finished and who arrived."""
        self.promised[self.order] += self.share[self.order] * (view.now - self.last)
        self.last = view.now
        for job in self.ran:
            if not view.is_unfinished(job):
                self.share[job] = math.nan
                continue
            left = max(view.remaining(job), LEAST_S)
            done = (self.left[job] - left) / self.unit[job]
            self.done[job] += done / self.pace[job]
            self.left[job] = left
            self.run[job] = view.run_seconds(job)
        self.order = self.order[~np.isnan(self.share[self.order])]
        if view.arrived > self.seen:
            self._arrive(view, range(self.seen, view.arrived))

    def _arrive(self, view: View, jobs: range) -> None:
        """Add the rows of new jobs."""
        self.seen = view.arrived
        for gpus in {view.gpus(job) for job in jobs}:
            self.nodes.clear()
            if not self.nodes.take(gpus):
                raise TraceError(
                    f"a job asks for {gpus} GPUs and never fits the nodes of {view.cluster}; use "
                    f"a larger cluster or drop the job"
                )
        unit = np.array([view.iteration_s(job) for job in jobs])
        if not self.in_iterations:
            unit[:] = 1.0
        elif np.isnan(unit).any():
            raise TraceError(
                "the trace has no column 'iteration_time'; give it in seconds, or set "
                "iterations_in_denominator to False"
            )
        fresh = {
            "submit": [view.submit(job) for job in jobs],
            "gpus": [view.gpus(job) for job in jobs],
            "left": [max(view.remaining(job), LEAST_S) for job in jobs],
            "unit": unit,
        }
        for name in ("submit", "gpus", "left", "unit", "run", "share", "promised", "done", "pace"):
            column = fresh.get(name, [0.0] * len(jobs))
            setattr(self, name, np.concatenate([getattr(self, name), np.array(column, float)]))
        self.order = np.concatenate([self.order, np.array(jobs, dtype=np.int64)])

    def _fitting(self, ranked: Ints) -> list[int]:
        """Return the jobs that fit, first fit in order of rank on empty nodes."""
        widths = self.gpus[ranked].astype(int).tolist()
        width_of = dict(zip(ranked.tolist(), widths, strict=True))
        return list(self.nodes.scan(width_of, width_of.__getitem__))
