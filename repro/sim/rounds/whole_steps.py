"""Rounds of whole training steps, as in Gavel's public simulator (docs/rules-gavel.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from repro.core.jobs import JobTable
from repro.core.speeds import Speeds
from repro.sim.rounds.ledger import Ledger
from repro.sim.rounds.settings import RoundSettings
from repro.typing import Ints

if TYPE_CHECKING:
    from repro.sim.rounds import kernel


class WholeSteps:
    """Progress in rounds of whole steps.

    With ``silent``, rounds are simulated in one call as long as nothing happens, which books who
    holds GPUs; otherwise the engine does. ``until`` is the end of the present round (s), that of
    its last run; ``ends`` lists the completions in it, None once they were returned.
    """

    def __init__(
        self, table: JobTable, speeds: Speeds, settings: RoundSettings, idle_ok: bool, silent: bool
    ) -> None:
        from repro.sim.rounds import kernel

        self._kernel, self._table, self.silent = kernel, table, silent
        self.until = -math.inf
        self.ends: list[tuple[float, int]] | None = None
        self._rule = kernel.Rule(
            widths=np.array(table.gpus, dtype=np.int64),
            taken=np.zeros(table.count, dtype=np.bool_),
            books=silent,
            capacity=speeds.gpu_counts.astype(np.int64),
            round_s=float(settings.round_s),
            overhead_s=float(settings.preemption_overhead_s),
            whole_queue=bool(settings.whole_queue),
            idle_ok=bool(idle_ok),
            counts_rounds=settings.prior_rounds == 0,
            drop=bool(settings.drop_unallocated),
            lease=bool(settings.lease_renewal),
        )
        self._round: kernel.Round | None = None
        self._running = np.empty(0, dtype=np.int64)
        #: who stopped at the beginning of the last round that was played alone
        self.stopped = self._running
        self._gap = 0.0

    def settle(self, ledger: Ledger, now: float) -> None:
        """Book the steps and the time of the round that has ended."""
        if self._round is None:
            return
        self._kernel.book(self._rows(ledger), self._table.state, self._round, self._gap, now)
        if len(self._round.rows):
            # an idle gap before a round counts to its first steps
            self._gap = self.until
        self._round, self.until = None, -math.inf

    def play(
        self, ledger: Ledger, orders: Ints, now: float, limit: float
    ) -> tuple[kernel.Round, kernel.Played]:
        """Begin a round now, or if silent as many as are over before ``limit`` and a completion.

        ``orders`` has one row per round: the order in which it fills the GPU types.
        """
        rows, state, before = self._rows(ledger), self._table.state, self._running
        before = before[state.on_type[before] >= 0]
        last, played = self._kernel.play(
            rows, state, self._rule, orders, self._running, now, self._gap, limit
        )
        self._running, self.stopped = last.jobs, before[state.on_type[before] < 0]
        self._gap, self.until = played.gap, played.until
        self._round = last if len(last.jobs) else None
        done = state.left[last.jobs] - last.steps <= 0
        self.ends = list(zip(last.last[done].tolist(), last.jobs[done].tolist(), strict=True))
        return last, played

    def finish(self, job: int, now: float) -> None:
        """Let a job give its GPUs back for the last time."""
        state = self._table.state
        if self.silent and state.on_type[job] >= 0:
            self._kernel.leave(state, job, now)
        state.on_type[job] = state.partner[job] = -1

    def _rows(self, ledger: Ledger) -> kernel.Rows:
        kind = self._kernel.Rows
        return kind(*(np.ascontiguousarray(getattr(ledger, name)) for name in kind._fields))
