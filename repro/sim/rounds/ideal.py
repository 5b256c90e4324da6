"""Ideal execution: no rounds, every job progresses at its shares of all GPU types."""

import math
from collections.abc import Sequence

import numpy as np

from repro.core.decision import Run, RunSet
from repro.core.jobs import JobTable
from repro.core.speeds import Speeds
from repro.errors import PolicyError
from repro.sim.rounds.ledger import Ledger
from repro.typing import Floats, Ints


class Ideal:
    """Progress of jobs that all hold their shares at once.

    With ``whole``, whole steps up to the next arrival, when jobs that are done end, as in Gavel's
    public simulator; otherwise progress without steps, and jobs end when they are done. With
    ``silent``, who holds GPUs is not reported; the job table learns it from `write_back`.
    """

    def __init__(
        self, table: JobTable, speeds: Speeds, policy: str, *, whole: bool, silent: bool
    ) -> None:
        self._table, self._speeds, self._policy = table, speeds, policy
        self._whole, self.silent = whole, silent
        #: when progress is looked at next by itself (s)
        self.until = -math.inf
        #: predicted completions, replacing earlier predictions; None if unchanged
        self.ends: list[tuple[float, int]] | None = None
        n = table.count
        self._left = np.array(table.left, dtype=float)
        self._widths = np.array(table.gpus, dtype=float)
        #: what the columns of the job table will hold, and which jobs are out of date there
        self._running, self._hold, self._held = np.zeros(n, np.bool_), np.zeros(n), np.zeros(n)
        self._seconds, self._service, self._pace = np.zeros(n), np.zeros(n), np.zeros(n)
        self._first = np.full(n, math.inf)
        self._stops, self._stale = np.zeros(n, np.int64), np.zeros(n, np.bool_)
        #: steps per unit of work: the trace counts steps, or seconds on the reference type
        self._unit = np.full(n, 1.0 if table.counts_steps else math.nan)
        self._jobs = np.empty(0, dtype=np.int64)
        self._done = np.zeros(n, dtype=np.bool_)
        #: of `_jobs`: units of work per second, and units until ``until`` where steps are whole
        self._rate = self._steps = np.empty(0)
        self._since = 0.0

    def settle(self, ledger: Ledger, now: float) -> None:
        """Book the progress since the last decision."""
        jobs, table = self._jobs, self._table
        gone = self._steps if self._whole else self._rate * (now - self._since)
        self._left[jobs] = np.maximum(0.0, self._left[jobs] - gone)
        self._since, self.until = now, -math.inf
        there = ~self._done[jobs]
        self._jobs, self._rate = jobs[there], self._rate[there]
        self._steps = np.zeros(len(self._jobs))
        if self.silent:
            self._book(jobs, now)
        else:
            table.write(self._jobs, left=self._left, since=np.full(table.count, now))

    def _book(self, jobs: Ints, now: float) -> None:
        """Book the GPUs held up to now; the next hold begins."""
        jobs = jobs[self._running[jobs]]
        spent = now - self._hold[jobs]
        self._seconds[jobs] += spent
        self._service[jobs] += spent * self._held[jobs]
        self._hold[jobs] = now
        self._stale[jobs] = True

    def finish(self, job: int, now: float) -> None:
        """Let a job give its GPUs back for the last time."""
        self._done[job] = True
        if self._running[job]:
            self._book(np.array([job]), now)
            self._running[job] = False

    def write_back(self) -> None:
        """Bring the job table up to date: how far jobs are, what they hold and held."""
        if not self.silent:
            return
        stale = np.nonzero(self._stale)[0]
        self._stale[:] = False
        self._table.write(
            stale, left=self._left, since=np.full(len(self._left), self._since),
            running=self._running, hold=self._hold, held=self._held, seconds=self._seconds,
            service=self._service, first_start=self._first, preemptions=self._stops,
            rate=self._pace,
        )  # fmt: skip

    def units_left(self, jobs: Sequence[int]) -> Floats:
        """Return the units of work left at the last decision."""
        found: Floats = self._left[np.fromiter(jobs, np.int64, len(jobs))]
        return found

    def begin(self, ledger: Ledger, now: float) -> RunSet:
        """Let every job run at its shares until the next event; raise if jobs share GPUs."""
        _check_alone(ledger, self._policy)
        pace = ledger.speeds[:, 0]
        rows = np.nonzero(ledger.alive & ((ledger.x * pace).sum(axis=1) > 0))[0]
        jobs, x = ledger.members[rows, 0], ledger.x[rows]
        for job in jobs[np.isnan(self._unit[jobs])].tolist():
            self._unit[job] = self._speeds.on_reference(job)
        rate = (x * pace[rows]).sum(axis=1) / self._unit[jobs]
        table, left = self._table, self._left[jobs]
        ends = now + left / rate
        if self._whole:
            # without another arrival the next decision waits for the last job to end
            self.until = ends.max() if len(ends) else math.inf
            self._steps = left
            if table.arrived < table.count:
                self.until = table.submit[table.arrived]
                self._steps = np.floor(x * (self.until - now) * pace[rows]).sum(axis=1)
                ends = np.where(self._steps >= left, self.until, math.inf)
            first = math.inf
        else:
            first = ends.min(initial=math.inf)
        due = (ends <= first) & (ends < math.inf)
        self.ends = list(zip(ends[due].tolist(), jobs[due].tolist(), strict=True))
        before, self._jobs, self._rate, self._since = self._jobs, jobs, rate, now
        if not self.silent:
            pairs = zip(jobs.tolist(), x, strict=True)
            return RunSet([_run(self._speeds, table, *pair) for pair in pairs])
        new = jobs[~self._running[jobs]]
        self._first[new] = np.minimum(self._first[new], now)
        self._hold[new] = now
        # jobs that held GPUs before and do not now stop
        self._running[before] = False
        self._running[jobs] = True
        gone = before[~self._running[before]]
        self._running[gone] = True
        self._book(gone, now)
        self._running[gone] = False
        self._stops[gone] += 1
        self._pace[jobs], self._held[jobs] = rate, self._widths[jobs] * x.sum(axis=1)
        self._stale[jobs] = True
        return RunSet((), keep=True)


def spread(ledger: Ledger, speeds: Speeds, table: JobTable, policy: str) -> list[Run]:
    """Return the runs of all jobs that have shares, each on all types at once."""
    _check_alone(ledger, policy)
    jobs, x = ledger.members[ledger.alive, 0].tolist(), ledger.x[ledger.alive]
    runs = (_run(speeds, table, *pair) for pair in zip(jobs, x, strict=True))
    return [run for run in runs if run.parts]


def _check_alone(ledger: Ledger, policy: str) -> None:
    """Refuse rows of two jobs."""
    if (ledger.members[:, 1] >= 0).any():
        raise PolicyError(
            f"policy {policy!r} lets jobs share GPUs; ideal execution takes jobs alone"
        )


def _run(speeds: Speeds, table: JobTable, job: int, shares: Floats) -> Run:
    """Return the run of a job that holds its shares of all types at once."""
    width = table.gpus[job]
    pairs = zip(speeds.gpu_types, shares.tolist(), strict=True)
    parts = tuple((name, width * share) for name, share in pairs if share > 1e-12)
    return Run((job,), sum(gpus for _, gpus in parts), parts=parts)
