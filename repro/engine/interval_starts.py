"""Start costs that are charged in every interval, as in Muri's public simulator.

An interval lies between two decisions. In every interval a running job first loads its model, then
progresses. A job is not charged in the interval in which it ends, unless the overhead has
`Overhead.restarts_on_change`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from repro.engine.overhead_costs import cost_of, start_costs
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Overhead

#: Only the earliest completion is predicted if all other completions are later by more than this
#: many tie tolerances.
ALONE_TOLERANCES = 4.0


class IntervalStarts:
    """Progress and completions under an overhead that is charged in every interval.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    overhead : Overhead
        Seconds of a start (`Overhead.every_interval`).
    runs : mapping of int to Run
        Gang of every job that holds GPUs; it changes as the simulation goes on.
    """

    def __init__(self, table: JobTable, overhead: Overhead, runs: Mapping[int, Run]) -> None:
        self._table = table
        self._overhead = overhead
        self._runs = runs
        #: start cost of each job (s), computed at the first start
        self._job_start_s: list[float] = []
        #: by job: start cost of its gang (s), and seconds per unit of work
        self._start_s, self._unit_s = np.zeros((2, table.count))

    def start(self, run: Run, rates: Sequence[float], unit_s: Sequence[float]) -> None:
        """Charge every member of a gang the start costs of all members.

        ``unit_s`` has the seconds per unit of work of each member, if the performance model is
        `Paced`. If it is empty, they follow from ``rates``, the speeds relative to running alone.
        """
        table = self._table
        if not self._job_start_s:
            self._job_start_s.extend(start_costs(self._overhead, table))
        start_s = sum(map(self._job_start_s.__getitem__, run.jobs))
        if not unit_s:
            unit_s = [table.solo[job] / rate for job, rate in zip(run.jobs, rates, strict=True)]
        start_s += cost_of(self._overhead, "launch_s", table.ids[run.jobs[0]], unit_s)
        for job, seconds in zip(run.jobs, unit_s, strict=True):
            self._start_s[job] = start_s
            self._unit_s[job] = seconds

    def wait(self, job: int) -> None:
        """Note that a job holds some GPUs of its gang and makes no progress."""
        self._start_s[job] = 0.0
        self._unit_s[job] = math.inf

    def settle(self, now: float) -> tuple[list[float], bool]:
        """Record the progress since the last decision.

        Returns
        -------
        spent_s : list of float
            Seconds that each job spent on its start: the whole interval if it is shorter than the
            start.
        has_progressed : bool
            Whether a job progressed.
        """
        state = self._table.state
        jobs = np.fromiter(self._runs, np.int64, len(self._runs))
        # the order of operations is the simulator's: small differences grow from event to event
        start_s = self._start_s[jobs]
        elapsed_s = now - state.progress_from[jobs]
        progress_s = elapsed_s - start_s
        has_progressed = progress_s > 0
        progressed = jobs[has_progressed]
        state.work_left[progressed] -= progress_s[has_progressed] / self._unit_s[progressed]
        state.progress_from[jobs] = now
        spent_s: list[float] = np.minimum(start_s, elapsed_s).tolist()
        return spent_s, bool(has_progressed.any())

    def last_start_s(self, job: int) -> float:
        """Start cost (s) that a job is charged in the interval in which it ends."""
        return float(self._start_s[job]) if self._overhead.restarts_on_change else 0.0

    def predicted(
        self, now: float, order: Iterable[int], tie_rel: float, *, predict_all: bool
    ) -> Iterable[tuple[float, int]]:
        """Predicted completions (s) with their jobs, if no further decision comes before them.

        Completions within ``tie_rel`` of the earliest are simultaneous, at the instant of the first
        such job in ``order``. If the earliest completion has no ties, it is the whole result,
        because the decision after it predicts the others anew. With ``predict_all`` the result has
        all completions.
        """
        rows = np.fromiter(self._runs, np.int64, len(self._runs))
        rows = rows[self._unit_s[rows] < math.inf]
        ends = now + self._table.state.work_left[rows] * self._unit_s[rows]
        if self._overhead.restarts_on_change:
            ends += self._start_s[rows]
        jobs = rows.tolist()
        instants = ends.tolist()
        first = min(instants, default=math.inf)
        if np.count_nonzero(ends <= first * (1.0 + ALONE_TOLERANCES * tie_rel)) == 1:
            if not predict_all:
                return [(first, jobs[instants.index(first)])]
            return zip(instants, jobs, strict=True)
        end_of = dict(zip(jobs, instants, strict=True))
        jobs = [job for job in order if job in end_of]
        instants = [*map(end_of.__getitem__, jobs)]
        first = math.inf
        for end in instants:
            if end < first and not math.isclose(end, first, rel_tol=tie_rel):
                first = end
        ties = partial(math.isclose, first, rel_tol=tie_rel)
        return zip((first if ties(end) else end for end in instants), jobs, strict=True)
