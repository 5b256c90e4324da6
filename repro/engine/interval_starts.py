"""Starts that every interval pays, as in Muri's public simulator.

An interval lies between two decisions. Every running job first loads its model, then progresses.
The interval in which a job ends is not charged a start.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Overhead

#: Tolerances up to the second earliest completion within which the earliest is predicted alone.
ALONE_TIES = 4.0


class IntervalStarts:
    """Progress and completions under an overhead that is paid in every interval.

    Parameters
    ----------
    table : JobTable
        Jobs of the run.
    overhead : Overhead
        Seconds of a start (`Overhead.every_interval`).
    runs : mapping of int to Run
        Run of every job that holds GPUs; it changes as the simulation goes on.
    """

    def __init__(self, table: JobTable, overhead: Overhead, runs: Mapping[int, Run]) -> None:
        self._table = table
        self._overhead = overhead
        self._runs = runs
        #: start of each job (s), filled in at the first start
        self._job_start_s: list[float] = []
        #: by job: start of its group (s), and seconds per unit of work
        self._start_s, self._unit_s = np.zeros((2, table.count))

    def start(self, run: Run, rates: Sequence[float], unit_s: Sequence[float]) -> None:
        """Charge every member of a run with the starts of all members."""
        table = self._table
        if not self._job_start_s:
            self._job_start_s.extend(
                map(partial(self._overhead.start_s, table), range(table.count))
            )
        start_s = sum(map(self._job_start_s.__getitem__, run.jobs))
        if not unit_s:
            unit_s = [table.solo[job] / rate for job, rate in zip(run.jobs, rates, strict=True)]
        for job, seconds in zip(run.jobs, unit_s, strict=True):
            self._start_s[job] = start_s
            self._unit_s[job] = seconds

    def settle(self, now: float) -> list[float]:
        """Book the progress since the last decision; starts (s) of the jobs that progressed."""
        state = self._table.state
        jobs = np.fromiter(self._runs, np.int64, len(self._runs))
        # the order of operations is the simulator's: small differences grow from event to event
        progress = now - state.since[jobs] - self._start_s[jobs]
        progresses = progress > 0
        begun = jobs[progresses]
        state.work_left[begun] -= progress[progresses] / self._unit_s[begun]
        state.since[jobs] = now
        starts_s: list[float] = self._start_s[begun].tolist()
        return starts_s

    def predicted(
        self, now: float, order: Iterable[int], tie_rel: float, *, every: bool
    ) -> Iterable[tuple[float, int]]:
        """Predicted completions (s) with their jobs, if no further decision comes before them.

        Completions within ``tie_rel`` of the earliest come at one instant: that of the first of
        them in ``order``. Unless ``every``, an earliest completion without such ties is predicted
        alone, because all completions are predicted anew before the second comes.
        """
        rows = np.fromiter(self._runs, np.int64, len(self._runs))
        ends = now + self._table.state.work_left[rows] * self._unit_s[rows]
        jobs = rows.tolist()
        seconds = ends.tolist()
        first = min(seconds, default=math.inf)
        if np.count_nonzero(ends <= first * (1.0 + ALONE_TIES * tie_rel)) == 1:
            if not every:
                return [(first, jobs[seconds.index(first)])]
            return zip(seconds, jobs, strict=True)
        end_of = dict(zip(jobs, seconds, strict=True))
        jobs = [job for job in order if job in end_of]
        seconds = [*map(end_of.__getitem__, jobs)]
        first = math.inf
        for end in seconds:
            if end < first and not math.isclose(end, first, rel_tol=tie_rel):
                first = end
        ties = partial(math.isclose, first, rel_tol=tie_rel)
        return zip((first if ties(end) else end for end in seconds), jobs, strict=True)
