"""Ideal execution: no rounds, every job progresses at its shares of all GPU types."""

import math
from typing import Any

import numpy as np

from repro.core.decision import NOTHING, Run, RunSet
from repro.errors import PolicyError
from repro.sim.rounds.mechanism import RoundMechanism
from repro.typing import Floats


class Ideal(RoundMechanism):
    """Progress of jobs that all hold their shares at once.

    ``artifact``: whole steps up to the next arrival, when jobs that are done end, as in Gavel's
    public simulator. ``fluid``: progress without steps, and jobs end when they are done; if it is
    not booked here, the engine keeps count of it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._whole = self.settings.ideal == "artifact"
        self.foresees = self._whole or self.books
        n = self.table.count
        #: steps per unit of work: the trace counts steps, or seconds on the reference type
        seconds = self.speeds.known and not self.table.counts_steps
        self._unit = self.speeds.on_reference if seconds else np.ones(n)
        self._jobs = np.empty(0, dtype=np.int64)
        self._done = np.zeros(n, dtype=np.bool_)
        #: of `_jobs`: units of work per second, and units until ``until`` where steps are whole
        self._rate = self._steps = np.empty(0)
        self._since = 0.0

    def boundary(self, now: float) -> bool:
        """Tell whether shares may change now."""
        return not self._whole or super().boundary(now)

    def next_boundary(self, now: float) -> float:
        """Return when progress is looked at next by itself (s)."""
        return super().next_boundary(now) if self._whole else math.inf

    def settle(self, now: float) -> None:
        """Book the progress since the last decision."""
        if not self.foresees:
            return
        jobs, state = self._jobs, self.table.state
        gone = self._steps if self._whole else self._rate * (now - self._since)
        state.left[jobs] = np.maximum(0.0, state.left[jobs] - gone)
        state.since[jobs] = now
        self._since, self._until = now, -math.inf
        there = ~self._done[jobs]
        self._jobs, self._rate = jobs[there], self._rate[there]
        self._steps = np.zeros(len(self._jobs))
        if self.books:
            self._close(jobs[state.running[jobs]], now)

    def finish(self, job: int, now: float) -> None:
        """Let a job give its GPUs back for the last time."""
        self.ledger.finish(job)
        self._done[job] = True
        if self.books and self.table.running[job]:
            self._close(np.array([job]), now)
            self.table.running[job] = False

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Let every job run at its shares until the next event; raise if jobs share GPUs."""
        ledger, table, state = self.ledger.rows, self.table, self.table.state
        alive = ledger.able.any(axis=1)
        if (ledger.members[:, 1] >= 0).any():
            raise PolicyError(
                f"policy {self.policy.name!r} lets jobs share GPUs; ideal execution takes jobs "
                "alone"
            )
        if not self.foresees:
            there = ledger.members[alive, 0].tolist(), ledger.x[alive]
            pairs = zip(*there, strict=True)
            runs = (self._run(*pair) for pair in pairs)
            return RunSet([run for run in runs if run.parts], "exact")
        pace = ledger.speeds[:, 0]
        rows = np.nonzero(alive & ((ledger.x * pace).sum(axis=1) > 0))[0]
        jobs, x = ledger.members[rows, 0], ledger.x[rows]
        rate = (x * pace[rows]).sum(axis=1) / self._unit[jobs]
        left = state.left[jobs]
        ends = now + left / rate
        if self._whole:
            # without another arrival the next decision waits for the last job to end
            self._until = ends.max() if len(ends) else math.inf
            self._steps = left
            if table.arrived < table.count:
                self._until = table.submit[table.arrived]
                self._steps = np.floor(x * (self._until - now) * pace[rows]).sum(axis=1)
                ends = np.where(self._steps >= left, self._until, math.inf)
            first = math.inf
        else:
            first = ends.min(initial=math.inf)
        due = (ends <= first) & (ends < math.inf)
        self.ends = list(zip(ends[due].tolist(), jobs[due].tolist(), strict=True))
        before, self._jobs, self._rate, self._since = self._jobs, jobs, rate, now
        if not self.books:
            return RunSet([self._run(*pair) for pair in zip(jobs.tolist(), x, strict=True)])
        new = jobs[~state.running[jobs]]
        state.first_start[new] = np.minimum(state.first_start[new], now)
        state.hold[new] = now
        # jobs that held GPUs before and do not now stop
        gone = np.setdiff1d(before[state.running[before]], jobs)
        self._close(gone, now)
        state.running[gone], state.running[jobs] = False, True
        state.preemptions[gone] += 1
        state.rate[jobs], state.held[jobs] = rate, self.rule.widths[jobs] * x.sum(axis=1)
        return NOTHING

    def _run(self, job: int, shares: Floats) -> Run:
        """Return the run of a job that holds its shares of all types at once."""
        width = self.table.gpus[job]
        pairs = zip(self.speeds.gpu_types, shares.tolist(), strict=True)
        parts = tuple((name, width * share) for name, share in pairs if share > 1e-12)
        return Run((job,), sum(gpus for _, gpus in parts), parts=parts)
