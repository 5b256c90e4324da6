"""Ideal execution: no rounds, every job progresses at its shares of all GPU types."""

import math

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
    ``silent``, who holds GPUs is booked here; otherwise the engine hears of it and books it.
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
        self._widths = np.array(table.gpus, dtype=float)
        #: steps per unit of work: the trace counts steps, or seconds on the reference type
        self._unit = np.full(n, 1.0 if table.counts_steps else math.nan)
        self._jobs = np.empty(0, dtype=np.int64)
        self._done = np.zeros(n, dtype=np.bool_)
        #: of `_jobs`: units of work per second, and units until ``until`` where steps are whole
        self._rate = self._steps = np.empty(0)
        self._since = 0.0

    def settle(self, ledger: Ledger, now: float) -> None:
        """Book the progress since the last decision."""
        jobs, state = self._jobs, self._table.state
        gone = self._steps if self._whole else self._rate * (now - self._since)
        state.left[jobs] = np.maximum(0.0, state.left[jobs] - gone)
        state.since[jobs] = now
        self._since, self.until = now, -math.inf
        there = ~self._done[jobs]
        self._jobs, self._rate = jobs[there], self._rate[there]
        self._steps = np.zeros(len(self._jobs))
        if self.silent:
            self._book(jobs, now)

    def _book(self, jobs: Ints, now: float) -> None:
        """Book the GPUs held up to now; the next hold begins."""
        state = self._table.state
        jobs = jobs[state.running[jobs]]
        spent = now - state.hold[jobs]
        state.seconds[jobs] += spent
        state.service[jobs] += spent * state.held[jobs]
        state.hold[jobs] = now

    def finish(self, job: int, now: float) -> None:
        """Let a job give its GPUs back for the last time."""
        self._done[job] = True
        if self.silent and self._table.running[job]:
            self._book(np.array([job]), now)
            self._table.running[job] = False

    def begin(self, ledger: Ledger, now: float) -> RunSet:
        """Let every job run at its shares until the next event; raise if jobs share GPUs."""
        _check_alone(ledger, self._policy)
        pace = ledger.speeds[:, 0]
        rows = np.nonzero(ledger.alive & ((ledger.x * pace).sum(axis=1) > 0))[0]
        jobs, x = ledger.members[rows, 0], ledger.x[rows]
        for job in jobs[np.isnan(self._unit[jobs])].tolist():
            self._unit[job] = self._speeds.on_reference(job)
        rate = (x * pace[rows]).sum(axis=1) / self._unit[jobs]
        table, state = self._table, self._table.state
        left = state.left[jobs]
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
        new = jobs[~state.running[jobs]]
        state.first_start[new] = np.minimum(state.first_start[new], now)
        state.hold[new] = now
        # jobs that held GPUs before and do not now stop
        gone = np.setdiff1d(before[state.running[before]], jobs)
        self._book(gone, now)
        state.running[gone], state.running[jobs] = False, True
        state.preemptions[gone] += 1
        state.rate[jobs], state.held[jobs] = rate, self._widths[jobs] * x.sum(axis=1)
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
