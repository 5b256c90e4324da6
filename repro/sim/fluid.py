"""Ideal execution: no rounds, every job progresses at its shares of all GPU types."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from repro.errors import PolicyError
from repro.sim.decision import Run, RunSet
from repro.sim.jobs import JobTable
from repro.sim.received import Ledger
from repro.sim.speeds import Speeds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Ideal:
    """Progress of jobs that all hold their shares at once.

    Parameters
    ----------
    table : JobTable
        Job state; progress is written here before every decision.
    speeds : Speeds
        Steps per second.
    policy : str
        Name for messages.
    whole : bool
        Whole steps up to the next arrival, when jobs that are done end, as in Gavel's public
        simulator; False: progress without steps, and jobs end when they are done.
    ahead : bool
        Tell the table, but nobody else, who holds GPUs.

    Attributes
    ----------
    until : float
        When progress is looked at next by itself (s).
    endings : list of (float, int) or None
        Completions to come, in place of those told before; None: no news.
    """

    def __init__(
        self, table: JobTable, speeds: Speeds, policy: str, *, whole: bool, ahead: bool
    ) -> None:
        self._table, self._speeds, self._policy = table, speeds, policy
        self._whole, self.ahead = whole, ahead
        self.until = -math.inf
        self.endings: list[tuple[float, int]] | None = None
        self._left = np.array(table.left, dtype=float)
        self._widths = np.array(table.gpus, dtype=float)
        #: steps per unit of work: the trace counts steps, or seconds on the reference type
        self._unit = np.full(table.count, 1.0 if table.counts_steps else math.nan)
        self._jobs = np.empty(0, dtype=np.int64)
        self._done = np.zeros(table.count, dtype=np.bool_)
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
        left, since = table.left, table.since
        for job, units in zip(self._jobs.tolist(), self._left[self._jobs].tolist(), strict=True):
            left[job], since[job] = units, now
            if self.ahead:
                self._hold(job, now)

    def _hold(self, job: int, now: float) -> None:
        """Book the GPUs held up to now; the next hold begins."""
        table = self._table
        spent = now - table.hold[job]
        table.seconds[job] += spent
        table.service[job] += spent * table.held[job]
        table.hold[job] = now

    def finish(self, job: int, now: float) -> None:
        """Let a job give its GPUs back for the last time."""
        self._done[job] = True
        if self.ahead and self._table.running[job]:
            self._stop(job, now)

    def _stop(self, job: int, now: float) -> None:
        self._hold(job, now)
        self._table.running[job], self._table.last_stop[job] = False, now

    def begin(self, ledger: Ledger, now: float) -> RunSet:
        """Let every job run at its shares until the next event.

        Raises
        ------
        PolicyError
            If jobs share GPUs.
        """
        _check_alone(ledger, self._policy)
        pace = ledger.speeds[:, 0]
        rows = np.nonzero(ledger.alive & ((ledger.x * pace).sum(axis=1) > 0))[0]
        jobs, x = ledger.members[rows, 0], ledger.x[rows]
        rate = (x * pace[rows]).sum(axis=1) / self._units(jobs)
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
        self.endings = list(zip(ends[due].tolist(), jobs[due].tolist(), strict=True))
        before, self._jobs, self._rate, self._since = self._jobs, jobs, rate, now
        if not self.ahead:
            pairs = zip(jobs.tolist(), x, strict=True)
            return RunSet([_run(self._speeds, table, *pair) for pair in pairs])
        for job in np.setdiff1d(before, jobs).tolist():
            self._stop(job, now)
            table.preemptions[job] += 1
        held = self._widths[jobs] * x.sum(axis=1)
        for job, units, gpus in zip(jobs.tolist(), rate.tolist(), held.tolist(), strict=True):
            if not table.running[job]:
                table.running[job], table.hold[job] = True, now
                table.first_start[job] = min(table.first_start[job], now)
            table.rate[job], table.held[job] = units, gpus
            table.since[job] = now
        return RunSet((), keep=True)

    def _units(self, jobs: Ints) -> Floats:
        for job in jobs[np.isnan(self._unit[jobs])].tolist():
            self._unit[job] = self._speeds.on_reference(job)
        found: Floats = self._unit[jobs]
        return found


def spread(ledger: Ledger, speeds: Speeds, table: JobTable, policy: str) -> list[Run]:
    """Return the runs of all jobs that have shares, each on all types at once.

    Raises
    ------
    PolicyError
        If jobs share GPUs.
    """
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
    parts = tuple((kind, width * share) for kind, share in pairs if share > 1e-12)
    return Run((job,), sum(gpus for _, gpus in parts), parts=parts)
