"""Rounds of whole training steps, as in Gavel's public simulator (docs/rules-gavel.md)."""

import math
from typing import Any

import numpy as np

from repro.engine.rounds import kernel
from repro.engine.rounds.mechanism import ROUNDS_PER_CALL, RoundMechanism
from repro.model.decision import NO_CHANGE, RunSet


class WholeSteps(RoundMechanism):
    """Rounds of as many whole steps as fit into ``round_s``. The end of a round begins the next.

    One call of the kernel simulates all rounds up to the next event, if ``writes_holds`` is set and
    intervals are not recorded.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.simulates_many_rounds = self.writes_holds and self.interval_blocks is None
        #: end of the previous round (s)
        self._previous_end = 0.0
        #: the present round, whose progress is not recorded yet; None if no job runs
        self._round: kernel.Round | None = None
        self._round_jobs = np.empty(0, dtype=np.int64)

    def record_round(self, now: float) -> bool:
        """Record the round that has ended. True if X must be computed anew.

        This is so if X is too old, or if a job of the round made no step.
        """
        if self._round is None:
            return super().record_round(now)
        has_lost_round = bool((self._round.steps == 0).any())
        kernel.record_round(
            self.ledger.rows, self.table.state, self._round, self._previous_end, now
        )
        if len(self._round.rows):
            # the time received in the next round counts from here, idle gaps included
            self._previous_end = self._round_end
        self._round = None
        self._round_end = -math.inf
        return has_lost_round or super().record_round(now)

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Simulate a round, or all rounds up to the next event (`simulates_many_rounds`)."""
        if self._rowless:
            self._add_rowless()
        state = self.table.state
        # jobs of the previous round that have not finished
        previous_jobs = self._round_jobs[state.type_column[self._round_jobs] >= 0]
        orders = self._orders[: ROUNDS_PER_CALL if self.simulates_many_rounds else 1]
        # an event that rounding puts just after the end of a round counts as inside the round
        limit = self._next_event(changed) * (1 - 1e-9)
        last, simulated = kernel.simulate_rounds(
            self.ledger.rows,
            state,
            self.constants,
            orders,
            self._round_jobs,
            now,
            self._previous_end,
            limit,
        )
        self._use_orders(simulated.rounds)
        self._round_jobs = last.jobs
        self._previous_end = simulated.previous_end
        self._round_end = simulated.last_end
        self._round = last if len(last.jobs) else None
        if self._round is None and self.settings.idle_reset and self.next_arrival == math.inf:
            # in the public simulator 0 stands for an X that was never computed
            self._computed_s = 0.0
        is_done = state.work_left[last.jobs] - last.steps <= 0
        done_jobs = last.jobs[is_done].tolist()
        self.ends = list(zip(last.ends[is_done].tolist(), done_jobs, strict=True))
        self._note_pairs(*simulated.new_pairs.T)
        self._keep_intervals(simulated.ended_holds)
        if self.writes_holds:
            return NO_CHANGE
        starts = simulated.starts
        return self._changes(last.rows[starts], last.columns[starts], previous_jobs)

    def _next_event(self, changed: bool) -> float:
        """Instant (s) of the next arrival, or of the next computation of X if it is earlier."""
        settings = self.settings
        event = self.next_arrival
        if changed:
            event = min(event, self._computed_s + settings.min_realloc_interval_s)
        if settings.max_realloc_interval_s:
            event = min(event, self._computed_s + settings.max_realloc_interval_s)
        return event
