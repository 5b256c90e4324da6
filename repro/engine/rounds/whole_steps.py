"""Rounds of whole training steps, as in Gavel's public simulator (docs/rules-gavel.md)."""

import math
from typing import Any

import numpy as np

from repro.engine.rounds import kernel
from repro.engine.rounds.mechanism import AT_ONCE, RoundMechanism
from repro.model.decision import NOTHING, RunSet


class WholeSteps(RoundMechanism):
    """Rounds of as many whole steps as fit; the next begins with the end of the last.

    If they are booked here without intervals, rounds are simulated in one call as long as nothing
    happens.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.foresees = True
        self.takes_late_events = self.books and self.spans is None
        self._gap = 0.0
        self._round: kernel.Round | None = None
        self._running = np.empty(0, dtype=np.int64)

    def settle(self, now: float) -> bool:
        """Book the round that has ended; tell whether X is too old or a gang lost its steps."""
        if self._round is None:
            return super().settle(now)
        lost = bool((self._round.steps == 0).any())
        kernel.book(self.ledger.rows, self.table.state, self._round, self._gap, now)
        if len(self._round.rows):
            # an idle gap before a round counts to its first steps
            self._gap = self._until
        self._round = None
        self._until = -math.inf
        return lost or super().settle(now)

    def next_round(self, now: float, changed: bool = False) -> RunSet:
        """Simulate a round, or all until the next event if they are booked here."""
        if self._unplaced:
            self._add_unplaced()
        table = self.table
        state = self.table.state
        before = self._running
        limit = table.submit[table.arrived] if table.arrived < table.count else math.inf
        if changed:
            limit = min(limit, self._computed + self.settings.min_realloc_interval_s)
        if self.settings.max_realloc_interval_s:
            limit = min(limit, self._computed + self.settings.max_realloc_interval_s)
        orders = self._orders[: AT_ONCE if self.takes_late_events else 1]
        before = before[state.on_type[before] >= 0]
        # events closer to the round's end than float rounding count as inside it
        last, played = kernel.simulate_rounds(
            self.ledger.rows,
            state,
            self.rule,
            orders,
            self._running,
            now,
            self._gap,
            limit * (1 - 1e-9),
        )
        self._drop_orders(played.rounds)
        self._running = last.jobs
        self._gap = played.gap
        self._until = played.until
        self._round = last if len(last.jobs) else None
        if self._round is None and self.settings.idle_reset and table.arrived == table.count:
            # in the public simulator 0 stands for an X that was never computed
            self._computed = 0.0
        done = state.left[last.jobs] - last.steps <= 0
        self.ends = list(zip(last.ends[done].tolist(), last.jobs[done].tolist(), strict=True))
        self._note_pairs(*played.began.T)
        self._note_ended(played.ended)
        if self.books:
            return NOTHING
        return self._changes(last.rows[played.fresh], last.columns[played.fresh], before)
