"""Themis by shares of time, as in Muri's public simulator (form ``shares`` of `Themis`).

At time t, N jobs are present on G GPUs. Of job j:

    a_j, D_j   arrival (s), demand (GPUs)
    r_j, q_j   remaining time, executed time (s)
    u_j        time of an iteration (s); 1 without ``iterations_in_denominator``
    p_j      = min(1, ceil(G / N) / D_j), the pace on ceil(G / N) GPUs of its own
    C_j      = sum of executed seconds / (u_j p_j), the time of the work so far at these paces
    rho_j    = (t - a_j + r_j / x_j) / (C_j + r_j / (u_j p_j))

The shares x minimise max_j rho_j, with 0 < x_j <= 1 and sum_j D_j x_j <= G. The promised time of a
job is the sum of x_j times the seconds for which this share held. Jobs are ranked by the first of
these numbers that differs:

    1. x_j / (q_j + initial_service), descending (1e9 x_j if the divisor is 0). With
       ``count_starts`` the divisor is the number of decisions at which the job got GPUs.
    2. q_j - promised time, ascending
    3. x_j, descending

They run in this order if they get nodes by first fit.

Ties: larger demand first, then the rank at the last event. New jobs come last, in order of arrival.
"""

import math
from collections.abc import Sequence

import numpy as np

from repro.base.errors import TraceError
from repro.base.typing import Array, Ints
from repro.model.decision import RunSet
from repro.model.view import View
from repro.placement.first_fit import FirstFit

#: Least remaining time of a job (s), so that its share is above 0.
MIN_REMAINING_S = 1e-6
#: Factor of the share of a job that never ran, in place of 1 / executed time.
NEVER_RAN_FACTOR = 1e9


def fair_shares(
    elapsed: Array, remaining: Array, isolated: Array, demand: Array, num_gpus: float
) -> Array:
    """Shares of time x in (0, 1] that minimise the largest finish-time fairness rho.

    The rho of a job is (elapsed + remaining / x) / isolated. Every job gets the smallest share at
    which its rho is at most the optimum, found by Newton's method on

        sum_j demand_j remaining_j / (rho isolated_j - elapsed_j) = num_gpus.

    Parameters
    ----------
    elapsed : array
        Time since the arrival of each job (s).
    remaining : array
        Remaining time of each job (s), above 0.
    isolated : array
        Duration of each job on GPUs of its own (s), above 0.
    demand : array
        Demand of each job (GPUs).
    num_gpus : float
        Largest sum of demand * x.

    Returns
    -------
    array
        Share x of each job.

    Examples
    --------
    >>> ones = np.ones(3)
    >>> fair_shares(0 * ones, ones, np.array([1.0, 2.0, 4.0]), ones, 64.0).tolist()
    [1.0, 0.5, 0.25]
    """
    rho = float(((elapsed + remaining) / isolated).max())
    remaining_gpu_s = demand * remaining
    while True:
        # the time left to each job at this rho; only rounding makes it less than the remaining time
        slack = np.maximum(rho * isolated - elapsed, remaining)
        excess = float((remaining_gpu_s / slack).sum()) - num_gpus
        if excess <= 0:
            break
        # the sum is convex and falls in rho: Newton's steps from the left never overshoot
        step = excess / float((remaining_gpu_s * isolated / slack**2).sum())
        if not rho + step > rho or step <= 1e-15 * rho:
            break
        rho += step
    return remaining / slack


class FairShares:
    """State of `Themis` in form ``shares``: an array per quantity, with an entry per job."""

    def __init__(
        self,
        view: View,
        in_iterations: bool,
        initial_service: float,
        *,
        count_starts: bool = False,
    ) -> None:
        self.in_iterations = in_iterations
        self.initial_service = initial_service
        self.count_starts = count_starts
        self.total_gpus = view.cluster.num_gpus
        self.nodes = FirstFit(view.cluster)
        #: unfinished jobs, the list whose order breaks ties
        self.order: Ints = np.empty(0, dtype=np.int64)
        #: jobs that run since the last event
        self.running: list[int] = []
        self.num_arrived = 0
        self.last_event = 0.0
        empty: Array = np.empty(0)
        #: arrival (s)
        self.submit = empty
        #: demand (GPUs)
        self.demand = empty
        #: time of an iteration (s), or 1
        self.iteration_s = empty
        #: remaining time (s)
        self.remaining = empty
        #: executed time (s)
        self.executed = empty
        #: number of decisions at which the job got GPUs
        self.starts = empty
        #: share at the last event; NaN after completion
        self.share = empty
        #: promised time (s)
        self.promised = empty
        #: time of the work so far at the paces of the past, C_j (s, or iterations)
        self.isolated_so_far = empty
        #: pace on GPUs of its own, p_j, at the last event
        self.pace = empty

    def __call__(self, view: View) -> RunSet:
        """Compute the shares, rank the jobs by them, and run the jobs that fit."""
        self._advance(view)
        rows = self.order
        if not len(rows):
            return RunSet(())
        demand = self.demand[rows]
        remaining = self.remaining[rows]
        executed = self.executed[rows]
        pace = np.minimum(1.0, math.ceil(self.total_gpus / len(rows)) / demand)
        isolated = self.isolated_so_far[rows] + remaining / (self.iteration_s[rows] * pace)
        elapsed = view.now - self.submit[rows]
        share = fair_shares(elapsed, remaining, isolated, demand, self.total_gpus)
        self.share[rows] = share
        self.pace[rows] = pace
        service = self.starts[rows] if self.count_starts else executed + self.initial_service
        priority = np.divide(share, service, out=share * NEVER_RAN_FACTOR, where=service > 0)
        # the last key is the first to decide
        ranking = np.lexsort((-share, executed - self.promised[rows], -priority))
        ranked = rows[ranking]
        self.running = self._fitting(ranked)
        self.starts[self.running] += 1.0
        self.order = ranked[np.argsort(-self.demand[ranked], kind="stable")]
        return RunSet(self.running, "exact")

    def _advance(self, view: View) -> None:
        """Record the progress since the last event, the completions and the arrivals."""
        self.promised[self.order] += self.share[self.order] * (view.now - self.last_event)
        self.last_event = view.now
        for job in self.running:
            if not view.is_unfinished(job):
                self.share[job] = math.nan
                continue
            remaining = max(view.remaining(job), MIN_REMAINING_S)
            progress = (self.remaining[job] - remaining) / self.iteration_s[job]
            self.isolated_so_far[job] += progress / self.pace[job]
            self.remaining[job] = remaining
            self.executed[job] = view.run_seconds(job)
        self.order = self.order[~np.isnan(self.share[self.order])]
        if view.arrived > self.num_arrived:
            self._arrive(view, range(self.num_arrived, view.arrived))

    def _arrive(self, view: View, jobs: range) -> None:
        """Add new jobs to all arrays; jobs of other GPU types get entries that are not read."""
        self.num_arrived = view.arrived
        self._check_fits(view, view.fresh)
        zeros = [0.0] * len(jobs)
        new_entries = {
            "submit": [view.submit(job) for job in jobs],
            "demand": [view.gpus(job) for job in jobs],
            "iteration_s": self._iteration_times(view, jobs),
            "remaining": [max(view.remaining(job), MIN_REMAINING_S) for job in jobs],
            "executed": zeros,
            "starts": zeros,
            "share": zeros,
            "promised": zeros,
            "isolated_so_far": zeros,
            "pace": zeros,
        }
        for name, entries in new_entries.items():
            array = np.concatenate([getattr(self, name), np.array(entries, float)])
            setattr(self, name, array)
        self.order = np.concatenate([self.order, np.array(view.fresh, dtype=np.int64)])

    def _check_fits(self, view: View, jobs: Sequence[int]) -> None:
        """Refuse jobs that do not fit the empty cluster."""
        for gpus in {view.gpus(job) for job in jobs}:
            self.nodes.clear()
            if not self.nodes.take(gpus):
                raise TraceError(
                    f"a job asks for {gpus} GPUs and never fits the nodes of {view.cluster}; use "
                    f"a larger cluster or drop the job"
                )

    def _iteration_times(self, view: View, jobs: range) -> Array:
        """Time of an iteration of each job (s), or 1 if the denominator is in seconds."""
        if not self.in_iterations:
            return np.ones(len(jobs))
        if not view.has_column("iteration_time"):
            raise TraceError(
                "the trace has no column 'iteration_time'; give it in seconds, or set "
                "iterations_in_denominator to False"
            )
        # An error names the row of a gap.
        view.column("iteration_time")
        return np.array([view.iteration_s(job) for job in jobs])

    def _fitting(self, ranked: Ints) -> list[int]:
        """Jobs that get nodes by first fit on an empty cluster, in order of rank."""
        demand = self.demand[ranked].astype(int).tolist()
        demand_of = dict(zip(ranked.tolist(), demand, strict=True))
        return list(self.nodes.scan(demand_of, demand_of.__getitem__))
