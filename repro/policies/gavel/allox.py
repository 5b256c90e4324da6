"""AlloX: waiting jobs matched to queue positions of idle GPUs (EuroSys 2020, section 4).

When a GPU is idle and a job waits, the matching of least cost is computed. Each idle GPU has a
queue. A job m is matched with a position k, counted from the end of the queue of a GPU of type j.
There it delays k jobs, itself included:

    min sum over matched (m, j, k) of k (num_steps_m / T_mj) + t_m

with t_m the time since the arrival of m. The job of largest k on each GPU starts and has X_mj = 1
until it ends. All others wait for the next matching. Gavel compares with AlloX in section 7.

Ties: `scipy.optimize.linear_sum_assignment` chooses among matchings of equal cost. Its matrix has a
row per job, in order of arrival, and a column per position and idle GPU. Above
`repro.solve.slots.MAX_ENTRIES` entries the matrix is built in part, and the solver may return
another of the optima.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from repro.base.typing import Floats, Ints
from repro.model.policy import register
from repro.model.settings import Between
from repro.model.typed_shares import Kinds, TypedShares
from repro.model.view import View
from repro.policies.gavel._single_type import full_time_shares, remaining_durations
from repro.solve.slots import jobs_to_start


@register("allox")
@dataclass(frozen=True)
class Allox(TypedShares):
    """Whenever a GPU is free and a job waits, match waiting jobs to the free GPUs' queues.

    The head of each queue starts and keeps its GPU type to the end. The other jobs wait for the
    next matching. Jobs ask for one GPU each.

    Parameters
    ----------
    alpha : float
        Fraction of the waiting jobs that is matched, oldest first. At least as many jobs are
        matched as GPUs are idle.

    Reference: AlloX, EuroSys 2020, section 4; the baseline of Gavel, OSDI 2020, section 7.
    """

    alpha: Annotated[float, Between(0, 1)] = 1.0

    needs = frozenset({"throughput", "duration"})

    def never_runs(self, view: View) -> Callable[[int], str]:
        """Reason why a job never runs: it asks for several GPUs."""

        def reason(job: int) -> str:
            if view.gpus(job) == 1:
                return ""
            return (
                f"asks for {view.gpus(job)} GPUs; AlloX places jobs of one GPU only: give a trace "
                f"of such jobs, or take another policy (gavel-las, gandiva-ss)"
            )

        return reason

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Allocation X as a function of the jobs, which keeps the GPU type of each started job."""
        started: dict[int, int] = {}

        def shares(jobs: Kinds) -> Floats:
            columns = {row: started[job] for row, job in enumerate(jobs.jobs) if job in started}
            waiting = [row for row in range(len(jobs.jobs)) if row not in columns]
            idle_gpus = jobs.gpus.astype(np.int64)
            np.subtract.at(idle_gpus, list(columns.values()), 1)
            if waiting and idle_gpus.any():
                limit = max(int(self.alpha * len(waiting)), int(idle_gpus.sum()))
                columns |= _matched(view, jobs, waiting[:limit], idle_gpus)
                started.update({jobs.jobs[row]: column for row, column in columns.items()})
            return full_time_shares(jobs, columns)

        return shares


def _matched(view: View, jobs: Kinds, rows: list[int], idle_gpus: Ints) -> dict[int, int]:
    """Column of the GPU type of each row that starts now."""
    steps_left = view.work_left([jobs.jobs[row] for row in rows])
    durations = remaining_durations(steps_left, jobs.speeds[rows])
    waited_s = np.array([view.now - view.submit(jobs.jobs[row]) for row in rows])
    starts = jobs_to_start(durations, idle_gpus, waited_s)
    return {rows[index]: column for index, column in starts}
