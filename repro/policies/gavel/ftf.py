"""Gavel's finish-time fairness (Themis) over unequal GPU types (Gavel, section 4.2).

    min_X max_m rho(m, X)
    rho(m, X) = (t_m + num_steps_m / throughput(m, X))
                / (t^isolated_m + num_steps_m / throughput(m, X^isolated))

X^isolated gives each of M jobs 1/M of the GPUs of every type (`repro.policies.gavel.isolated`).
t^isolated_m is the time that the progress so far would have taken under the isolated allocations of
the past.

Ties: many X reach the optimum. ``lp_backend`` chooses among these optima:

- ``centre``: the analytic centre, where equal jobs have equal shares.
- ``highs``: a vertex.
- ``ecos``: the optimum of Gavel's own solver.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.model.view import View
from repro.policies.gavel._agnostic import Agnostic, AwareOrAgnostic
from repro.policies.gavel.isolated import isolated_shares
from repro.solve.ecos import ecos_ratio
from repro.solve.max_min import Backend, JobKinds, central_ratio, vertex_ratio


@register("gavel-ftf")
@dataclass(frozen=True)
class GavelFtf(AwareOrAgnostic):
    """Minimise the largest ratio of finish time to finish time with 1/M of all GPUs, for M jobs.

    Parameters
    ----------
    lp_backend : {"centre", "highs", "ecos"}
        Optimum among many: the analytic centre, a vertex found by bisection of the ratio, or the
        optimum of Gavel's own solver (extra ``ecos``).
    zeros : bool
        Whether ECOS gets the zero entries of the constraint matrix, as in Gavel's simulator. False:
        it does not, as in the copy of this simulator that gave Themis in Muri's Fig 10. Where
        optima are many, the zeros decide among them.

    Reference: Gavel, OSDI 2020, section 4.2 (finish-time fairness); Themis, NSDI 2020.
    """

    lp_backend: Backend = "centre"
    zeros: bool = True

    needs = frozenset({"throughput", "duration"})
    baseline: ClassVar[Baseline | None] = Baseline(
        "ftf-agnostic",
        "without speeds by GPU type all types are alike; give a throughput table "
        "(--throughputs gavel-throughputs) and a cluster of GPU types",
        parameters=("lp_backend",),
        model=True,
        type_order=True,
    )

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Allocation X as a function of the jobs, which keeps t^isolated between calls.

        Every row is one job.
        """
        isolated = IsolatedTime()

        def shares(jobs: Kinds) -> Floats:
            # Without a throughput table, `Kinds` counts work in seconds of the trace. Solvers get
            # steps, as in the public simulator, because the scale decides where they stop.
            step_s = np.reshape(view.work_per_step(jobs.jobs), (-1, 1))
            steps_left = jobs.work_left / step_s[:, 0]
            speeds = jobs.speeds / step_s
            isolated_speeds = (speeds * isolated_shares(jobs.widths, jobs.gpus)).sum(axis=1)
            past_s = isolated.update(jobs.jobs, steps_left, isolated_speeds)
            isolated_s = past_s + steps_left / isolated_speeds
            elapsed_s = view.now - np.array([view.submit(job) for job in jobs.jobs])
            problem = JobKinds(speeds, jobs.counts, jobs.widths, jobs.gpus, jobs.name)
            allocation, _ = ftf_shares(
                problem, steps_left, isolated_s, elapsed_s, self.lp_backend, self.zeros
            )
            return allocation

        return shares


@register("ftf-agnostic")
@dataclass(frozen=True)
class FtfAgnostic(Agnostic, GavelFtf):
    """Minimise the largest finish-time ratio with the speeds of one GPU type for all."""

    baseline = None


class IsolatedTime:
    """t^isolated of each job: the time its progress would have taken under isolated allocations."""

    def __init__(self) -> None:
        # Of the last call: jobs in ascending order, and their remaining steps, isolated speeds and
        # t^isolated. Before the first call job -1 is there, so that look-ups find a row.
        self._jobs = np.array([-1])
        self._state = np.ones((3, 1))

    def update(self, jobs: Sequence[int], steps_left: Floats, isolated_speeds: Floats) -> Floats:
        """t^isolated of each job (s), shape (jobs,). At the first call that lists a job, it is 0.

        ``jobs`` are in ascending order. ``isolated_speeds`` (steps/s) hold from now on.
        """
        rows = np.array(jobs)
        index = np.minimum(np.searchsorted(self._jobs, rows), len(self._jobs) - 1)
        steps_before, speeds_before, past_before_s = self._state[:, index]
        progress_s = (steps_before - steps_left) / speeds_before
        past_s = np.where(self._jobs[index] == rows, past_before_s + progress_s, 0.0)
        self._jobs = rows
        self._state = np.array([steps_left, isolated_speeds, past_s])
        return past_s


def ftf_shares(
    problem: JobKinds,
    steps_left: Floats,
    isolated_s: Floats,
    elapsed_s: Floats,
    backend: Backend = "centre",
    zeros: bool = True,
) -> tuple[Floats, float]:
    """Allocation X with the least finish-time ratio, shape (jobs, GPU types), and the ratio.

    Parameters
    ----------
    problem : JobKinds
        Throughputs (steps/s), demands and GPUs; a row is one job.
    steps_left : Floats
        Remaining steps of each job.
    isolated_s : Floats
        Finish time of each job under isolated allocations, in seconds since its arrival.
    elapsed_s : Floats
        Seconds since the arrival of each job.
    backend : {"centre", "highs", "ecos"}
        Solver, as for `GavelFtf`. A vertex replaces a solver that fails.
    zeros : bool
        As for `GavelFtf`.

    Examples
    --------
    Two equal jobs share one GPU equally. Each takes twice its time alone, as if isolated.

    >>> ones = np.ones(2)
    >>> problem = JobKinds(np.full((2, 1), 5.0), ones, ones, np.ones(1))
    >>> shares, ratio = ftf_shares(problem, 1e3 * ones, 400.0 * ones, 0.0 * ones)
    >>> shares.ravel().round(6).tolist(), round(ratio, 6)
    ([0.5, 0.5], 1.0)
    """
    # These bounds keep the programme regular for jobs without remaining steps or isolated time.
    steps_left = np.maximum(steps_left, 1e-9 * max(float(steps_left.max()), 1e-300))
    isolated_s = np.maximum(isolated_s, 1e-9 * max(float(isolated_s.max()), 1e-300))
    answer = None
    if backend == "centre":
        answer = central_ratio(problem, steps_left, isolated_s, elapsed_s)
    elif backend == "ecos":
        answer = ecos_ratio(problem, steps_left, isolated_s, elapsed_s, zeros)
    if answer is None:
        answer = vertex_ratio(problem, steps_left, isolated_s, elapsed_s)
    return answer
