"""Ideal execution without rounds: every job progresses at its shares of all GPU types."""

import math
from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints
from repro.engine.rounds.mechanism import RoundMechanism
from repro.model.decision import NO_CHANGE, Run, RunSet
from repro.model.performance import Performance, rates_of

#: Largest share that counts as 0: a rounding error, which ideal execution would still run.
SHARE_ROUNDING = 1e-12


class Ideal(RoundMechanism):
    """Execution without rounds: every job holds its share of each GPU type at once.

    With ``fluid``, a job m makes sum_j X_mj T_mj steps per second, and ends when its work is done.
    With ``artifact``, it makes sum_j floor(X_mj dt T_mj) whole steps in the time dt between two
    arrivals, and jobs end at arrivals, as in Gavel's public simulator. This class writes the holds,
    the intervals in which a job keeps the same shares. ``perf`` gives the rates if they do not
    follow from the throughputs T.
    """

    def __init__(self, *args: Any, perf: Performance | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._perf = perf
        self._whole_steps = self.settings.ideal == "artifact"
        #: jobs of the present X; some may have ended
        self._jobs = np.empty(0, dtype=np.int64)
        #: steps that each of these jobs makes until the next decision, with whole steps
        self._steps = np.empty(0)
        #: shares in force, shape (jobs of the simulation, types)
        self._shares = np.zeros((self.table.count, len(self.speeds.gpu_types)))

    def next_boundary(self, now: float) -> float:
        """Next instant at which whole steps are recorded, or X may be computed anew (s)."""
        if self._whole_steps:
            return super().next_boundary(now)
        if self.may_compute(now):
            return math.inf
        # X is too young to be computed anew; the boundary is the instant at which it is old enough
        return self._computed_s + self.settings.min_realloc_interval_s

    def record_round(self, now: float) -> bool:
        """Record the whole steps since the last decision; True if X is too old."""
        if self._whole_steps:
            state = self.table.state
            state.work_left[self._jobs] = np.maximum(0.0, state.work_left[self._jobs] - self._steps)
            state.progress_from[self._jobs] = now
            self._round_end = -math.inf
        return super().record_round(now)

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Let every job progress at its shares until the next event, and predict completions.

        Raises
        ------
        PolicyError
            If X has rows of two jobs.
        """
        rows = self.ledger.rows
        if (rows.members[:, 1] >= 0).any():
            raise PolicyError(
                f"policy {self.policy.name!r} lets jobs share GPUs; ideal execution takes single "
                "jobs only"
            )
        shares = np.where(rows.x > SHARE_ROUNDING, rows.x, 0.0)
        throughputs = rows.throughputs[:, 0]
        has_progress = (shares * throughputs).sum(axis=1) > 0
        running = rows.runnable.any(axis=1) & has_progress
        jobs = rows.members[running, 0]
        shares = shares[running]
        throughputs = throughputs[running]
        self._apply_shares(jobs, shares, (shares * throughputs).sum(axis=1), now)
        if self._whole_steps:
            ends = self._ends_at_arrivals(jobs, shares, throughputs, now)
            predicted = ends < math.inf
        else:
            state = self.table.state
            ends = state.progress_from[jobs] + state.work_left[jobs] / state.rate[jobs]
            predicted = ends <= ends.min(initial=math.inf)
        self.ends = list(zip(ends[predicted].tolist(), jobs[predicted].tolist(), strict=True))
        return NO_CHANGE

    def _ends_at_arrivals(
        self, jobs: Ints, shares: Floats, throughputs: Floats, now: float
    ) -> Floats:
        """End of each job with whole steps (s), infinity for jobs that outlast the next arrival.

        ``shares`` and ``throughputs`` have shape (jobs, types). After the last arrival every job
        ends when its work is done.
        """
        remaining_steps = self.table.state.work_left[jobs]
        ends: Floats
        if self.next_arrival == math.inf:
            ends = now + remaining_steps / (shares * throughputs).sum(axis=1)
            # the next decision waits for the last job to end, or for a new X if no job runs
            self._round_end = ends.max(initial=-math.inf)
            self._steps = remaining_steps
            return ends
        self._round_end = self.next_arrival
        self._steps = np.floor(shares * (self._round_end - now) * throughputs).sum(axis=1)
        ends = np.where(self._steps >= remaining_steps, self._round_end, math.inf)
        return ends

    def _apply_shares(self, jobs: Ints, shares: Floats, throughputs: Floats, now: float) -> None:
        """Let only ``jobs`` hold GPUs, by ``shares`` of shape (jobs, types).

        ``throughputs`` are the steps per second of the jobs, shape (jobs,).
        """
        state = self.table.state
        previous_jobs = self._jobs[state.running[self._jobs]]
        all_shares = np.zeros_like(self._shares)
        all_gpus = np.zeros(self.table.count)
        all_shares[jobs] = shares
        all_gpus[jobs] = (self.constants.demands[jobs, None] * shares).sum(axis=1)
        has_changed = (all_shares != self._shares).any(axis=1)
        keeps_gpus = all_gpus == state.held_gpus
        # jobs whose hold closes: first jobs that keep their number of GPUs under other shares, then
        # jobs that get another number of GPUs, or none
        moved = jobs[has_changed[jobs] & keeps_gpus[jobs] & state.running[jobs]]
        resized = previous_jobs[has_changed[previous_jobs] & ~keeps_gpus[previous_jobs]]
        closing = np.concatenate([moved, resized])
        self._close_holds(closing, now)
        work_done = np.maximum(0.0, now - state.progress_from[closing]) * state.rate[closing]
        state.work_left[closing] = np.maximum(0.0, state.work_left[closing] - work_done)
        stopped = closing[all_gpus[closing] == 0]
        state.running[stopped] = False
        state.preemptions[stopped] += 1
        starts = has_changed[jobs] | ~state.running[jobs]
        started = jobs[starts]
        state.first_start[started] = np.minimum(state.first_start[started], now)
        state.running[started] = True
        state.held_gpus[started] = all_gpus[started]
        state.progress_from[started] = now
        state.held_since[started] = now
        speeds = throughputs[starts] / self.constants.reference_speed[started]
        if self._perf is not None:
            gpu_type = self.speeds.gpu_types[0]
            runs = [Run((job,), float(all_gpus[job]), gpu_type) for job in started.tolist()]
            speeds = np.array([rates_of(self._perf, self.table, run, ())[0] for run in runs])
        state.rate[started] = speeds / self.constants.solo[started]
        self._jobs = jobs
        self._shares = all_shares
