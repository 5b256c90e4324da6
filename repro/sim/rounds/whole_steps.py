"""Rounds of whole training steps, as in Gavel's public simulator (docs/rules-gavel.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from repro.core.jobs import JobTable
from repro.core.speeds import Speeds
from repro.sim.rounds.ledger import Ledger
from repro.sim.rounds.settings import RoundSettings
from repro.typing import Floats, Ints

if TYPE_CHECKING:
    from repro.sim.rounds import kernel


class WholeSteps:
    """Progress in rounds of whole steps; the job table is written at the end of every round.

    With ``silent``, rounds are simulated in one call as long as nothing happens, and the job table
    learns who holds GPUs from `write_back`. ``until`` is the end of the present round (s), that of
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
            capacity=speeds.gpu_counts.astype(np.int64),
            round_s=float(settings.round_s),
            overhead_s=float(settings.preemption_overhead_s),
            whole_queue=bool(settings.whole_queue),
            idle_ok=bool(idle_ok),
            counts_rounds=settings.prior_rounds == 0,
            drop=bool(settings.drop_unallocated),
            lease=bool(settings.lease_renewal),
        )
        n = table.count
        self._jobs = kernel.Jobs(
            left=np.array(table.left, dtype=float),
            widths=np.array(table.gpus, dtype=np.int64),
            column=np.full(n, -1),
            partner=np.full(n, -1),
            hold=np.zeros(n),
            seconds=np.zeros(n),
            first=np.full(n, math.inf),
            stops=np.zeros(n, dtype=np.int64),
            rate=np.zeros(n),
            stale=np.zeros(n, dtype=np.bool_),
            taken=np.zeros(n, dtype=np.bool_),
        )
        self._round: kernel.Round | None = None
        #: when steps were booked last (s)
        self._booked = 0.0
        self._running = np.empty(0, dtype=np.int64)
        #: who stopped at the beginning of the last round that was played alone
        self.stopped = self._running
        self._gap = 0.0

    def settle(self, ledger: Ledger, now: float) -> None:
        """Book the steps and the time of the round that has ended."""
        if self._round is None:
            return
        self._kernel.book(self._rows(ledger), self._jobs, self._round, self._gap)
        self._booked = now
        if not self.silent:
            self.write_back()
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
        rows, state, before = self._rows(ledger), self._jobs, self._running
        before = before[state.column[before] >= 0]
        last, played = self._kernel.play(
            rows, state, self._rule, orders, self._running, now, self._gap, limit
        )
        self._running, self.stopped = last.jobs, before[state.column[before] < 0]
        self._gap, self.until = played.gap, played.until
        self._round = last if len(last.jobs) else None
        done = state.left[last.jobs] - last.steps <= 0
        self.ends = list(zip(last.last[done].tolist(), last.jobs[done].tolist(), strict=True))
        return last, played

    def finish(self, job: int, now: float) -> None:
        """Let a job give its GPUs back for the last time."""
        state = self._jobs
        if state.column[job] >= 0:
            state.seconds[job] += now - state.hold[job]
        state.column[job] = state.partner[job] = -1
        state.stale[job] = True

    def units_left(self, jobs: Sequence[int]) -> Floats:
        """Return the units of work left when the last round ended."""
        found: Floats = self._jobs.left[np.fromiter(jobs, np.int64, len(jobs))]
        return found

    def _rows(self, ledger: Ledger) -> kernel.Rows:
        kind = self._kernel.Rows
        return kind(*(np.ascontiguousarray(getattr(ledger, name)) for name in kind._fields))

    def write_back(self) -> None:
        """Bring the job table up to date: how far jobs are and, if silent, what they hold."""
        table, state = self._table, self._jobs
        stale = np.nonzero(state.stale)[0]
        state.stale[:] = False
        table.write(stale, left=state.left, since=np.full(len(state.left), self._booked))
        if self.silent:
            table.write(
                stale, running=state.column >= 0, hold=state.hold, held=state.widths,
                seconds=state.seconds, service=state.seconds * state.widths,
                first_start=state.first, preemptions=state.stops, rate=state.rate,
            )  # fmt: skip
