"""Ideal execution: no rounds, every job progresses at its shares of all GPU types."""

import math
from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints
from repro.engine.rounds.mechanism import RoundMechanism
from repro.model.decision import NOTHING, Run, RunSet
from repro.model.performance import Performance

#: Shares up to this are none.
NONE = 1e-12


class Ideal(RoundMechanism):
    """Progress of jobs that all hold their shares at once; who holds what is booked here.

    ``artifact``: whole steps up to the next arrival, when jobs that are done end, as in Gavel's
    public simulator. ``fluid``: progress without steps, and jobs end when they are done. ``perf``
    says how fast jobs run where that does not follow from the speeds.
    """

    def __init__(self, *args: Any, perf: Performance | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._perf = perf
        self._whole = self.settings.ideal == "artifact"
        #: jobs that hold GPUs, perhaps some that have ended; where steps are whole, those of each
        self._jobs = np.empty(0, dtype=np.int64)
        self._steps = np.empty(0)
        #: what every job holds of each type
        self._shares = np.zeros((self.table.count, len(self.speeds.gpu_types)))

    def next_boundary(self, now: float) -> float:
        """Return when progress is looked at next by itself (s)."""
        return super().next_boundary(now) if self._whole else math.inf

    def settle(self, now: float) -> bool:
        """Book whole steps since the last decision; tell whether X is too old."""
        if self._whole:
            state = self.table.state
            state.left[self._jobs] = np.maximum(0.0, state.left[self._jobs] - self._steps)
            state.since[self._jobs] = now
            self._until = -math.inf
        return super().settle(now)

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Let every job run at its shares until the next event; raise if jobs share GPUs."""
        rows = self.ledger.rows
        state = self.table.state
        if (rows.members[:, 1] >= 0).any():
            raise PolicyError(
                f"policy {self.policy.name!r} lets jobs share GPUs; ideal execution takes jobs "
                "alone"
            )
        x = np.where(rows.x > NONE, rows.x, 0.0)
        pace = rows.speeds[:, 0]
        running = rows.able.any(axis=1) & ((x * pace).sum(axis=1) > 0)
        jobs = rows.members[running, 0]
        x = x[running]
        pace = pace[running]
        self._share_out(jobs, x, (x * pace).sum(axis=1), now)
        if self._whole:
            left = state.left[jobs]
            ends = now + left / (x * pace).sum(axis=1)
            # without another arrival the next decision waits for the last job to end
            self._until = ends.max() if len(ends) else math.inf
            self._steps = left
            if self.table.arrived < self.table.count:
                self._until = self.table.submit[self.table.arrived]
                self._steps = np.floor(x * (self._until - now) * pace).sum(axis=1)
                ends = np.where(self._steps >= left, self._until, math.inf)
            due = ends < math.inf
        else:
            ends = state.since[jobs] + state.left[jobs] / state.rate[jobs]
            due = ends <= ends.min(initial=math.inf)
        self.ends = list(zip(ends[due].tolist(), jobs[due].tolist(), strict=True))
        return NOTHING

    def _share_out(self, jobs: Ints, x: Floats, pace: Floats, now: float) -> None:
        """Let jobs, and no others, hold shares, with which they do ``pace`` steps per second."""
        state = self.table.state
        before = self._jobs[self.table.state.running[self._jobs]]
        shares = np.zeros_like(self._shares)
        held = np.zeros(self.table.count)
        shares[jobs] = x
        held[jobs] = (self.rule.widths[jobs, None] * x).sum(axis=1)
        changes = (shares != self._shares).any(axis=1)
        keeps = held == state.held
        # jobs that go on with as many GPUs of other types are recorded first
        moved = jobs[changes[jobs] & keeps[jobs] & state.running[jobs]]
        ended = np.concatenate([moved, before[changes[before] & ~keeps[before]]])
        self._close(ended, now)
        gone = np.maximum(0.0, now - state.since[ended]) * state.rate[ended]
        state.left[ended] = np.maximum(0.0, state.left[ended] - gone)
        stopped = ended[held[ended] == 0]
        state.running[stopped] = False
        state.preemptions[stopped] += 1
        fresh = changes[jobs] | ~state.running[jobs]
        begun = jobs[fresh]
        state.first_start[begun] = np.minimum(state.first_start[begun], now)
        state.running[begun] = True
        state.held[begun] = held[begun]
        state.since[begun] = state.hold[begun] = now
        rate = pace[fresh] / self.rule.reference[begun]
        if self._perf is not None:
            gpu_type = self.speeds.gpu_types[0]
            runs = [Run((job,), float(held[job]), gpu_type) for job in begun.tolist()]
            rate = np.array([self._perf.rates(self.table, run, ())[0] for run in runs])
        state.rate[begun] = rate / self.rule.solo[begun]
        self._jobs = jobs
        self._shares = shares
