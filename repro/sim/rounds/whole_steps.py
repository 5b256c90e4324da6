"""Rounds of whole training steps, as in Gavel's public simulator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from repro.core.jobs import JobTable
from repro.core.speeds import Speeds
from repro.sim.rounds.ledger import Ledger
from repro.sim.rounds.settings import RoundSettings

if TYPE_CHECKING:
    from repro.sim.rounds import whole_step_kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_NO_INTS = np.empty(0, dtype=np.int64)


class WholeSteps:
    """Progress in rounds of whole steps.

    Parameters
    ----------
    table : JobTable
        Job state; progress is written here at the end of every round.
    speeds : Speeds
        Steps per second.
    settings : RoundSettings
        How rounds go.
    idle_ok : bool
        Leave GPUs idle rather than give them to jobs without a share.
    ahead : bool
        Play rounds on as long as nothing happens, and tell the table, but nobody else, who holds
        GPUs. Otherwise one round at a time.

    Attributes
    ----------
    until : float
        End of the present round: the last of its runs to finish its steps (s).
    endings : list of (float, int) or None
        Completions in the present round; None: they were told.

    References
    ----------
    Gavel's public simulator; the rules are listed in docs/rules-gavel.md.
    """

    def __init__(
        self,
        table: JobTable,
        speeds: Speeds,
        settings: RoundSettings,
        idle_ok: bool = False,
        ahead: bool = False,
    ) -> None:
        # the compiler takes longer to import than most runs to simulate
        from repro.sim.rounds import whole_step_kernel

        self._rolling, self._table, self._speeds = whole_step_kernel, table, speeds
        self.ahead = ahead
        self.until = -math.inf
        self.endings: list[tuple[float, int]] | None = None
        self._rule = whole_step_kernel.Rule(
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
        self._jobs = whole_step_kernel.Jobs(
            left=np.array(table.left, dtype=float),
            widths=np.array(table.gpus, dtype=np.int64),
            kind=np.full(n, -1),
            partner=np.full(n, -1),
            hold=np.zeros(n),
            seconds=np.zeros(n),
            first=np.full(n, math.inf),
            last=np.array(table.submit, dtype=float),
            stops=np.zeros(n, dtype=np.int64),
            rate=np.zeros(n),
            taken=np.zeros(n, dtype=np.bool_),
        )
        self._round: whole_step_kernel.Round | None = None
        #: jobs whose entries in the table are out of date; when steps were booked last (s)
        self._stale = np.zeros(n, dtype=np.bool_)
        self._booked = 0.0
        self._running = self._worked = _NO_INTS
        self._gap = 0.0

    def settle(self, ledger: Ledger, now: float) -> None:
        """Book the steps and the time of the round that has ended."""
        if self._round is None:
            return
        self._rolling.book(self._rows(ledger), self._jobs, self._round, self._gap)
        self._stale[self._worked], self._booked = True, now
        if not self.ahead:
            self.tell()
        if len(self._round.rows):
            # an idle gap before a round counts to its first steps
            self._gap = self.until
        self._round, self.until = None, -math.inf

    def play(
        self, ledger: Ledger, orders: Ints, now: float, limit: float
    ) -> tuple[whole_step_kernel.Round, whole_step_kernel.Played]:
        """Begin a round, or with ``ahead`` as many as are over before ``limit`` (s) and an ending.

        Parameters
        ----------
        ledger : Ledger
            Rows of X.
        orders : ndarray, shape (rounds, GPU types)
            The order in which each round fills the types; there is none beyond the last.
        now, limit : float
            Beginning, and when the next event is due (s).
        """
        rows, state = self._rows(ledger), self._jobs
        last, played = self._rolling.play(
            rows, state, self._rule, orders, self._running, now, self._gap, limit
        )
        self._running, self._worked = last.jobs, played.worked
        self._gap, self.until = played.gap, played.until
        self._round = last if len(last.jobs) else None
        done = state.left[last.jobs] - last.steps <= 0
        self.endings = list(zip(last.last[done].tolist(), last.jobs[done].tolist(), strict=True))
        self._stale[played.moved] = True
        return last, played

    def holds(self, jobs: Ints) -> npt.NDArray[np.bool_]:
        """Tell which jobs hold GPUs."""
        held: npt.NDArray[np.bool_] = self._jobs.kind[jobs] >= 0
        return held

    def finish(self, job: int, now: float) -> None:
        """Let a job give its GPUs back for the last time."""
        state = self._jobs
        if state.kind[job] >= 0:
            state.seconds[job] += now - state.hold[job]
            state.last[job] = now
        state.kind[job] = state.partner[job] = -1
        self._stale[job] = True

    def units_left(self, jobs: Sequence[int]) -> Floats:
        """Return the units of work left when the last round ended."""
        found: Floats = self._jobs.left[np.fromiter(jobs, np.int64, len(jobs))]
        return found

    def _rows(self, ledger: Ledger) -> whole_step_kernel.Rows:
        plain = np.ascontiguousarray
        return self._rolling.Rows(
            plain(ledger.members),
            ledger.able,
            ledger.allocated,
            plain(ledger.x),
            plain(ledger.owed),
            ledger.time,
            ledger.total,
            plain(ledger.speeds),
        )

    def tell(self) -> None:
        """Write into the table how far jobs are and, with ``ahead``, what they hold and held."""
        table, state = self._table, self._jobs
        stale = np.nonzero(self._stale)[0]
        self._stale[:] = False
        table.write(stale, left=state.left, since=np.full(len(state.left), self._booked))
        if self.ahead:
            table.write(
                stale, running=state.kind >= 0, hold=state.hold, held=state.widths,
                seconds=state.seconds, service=state.seconds * state.widths,
                first_start=state.first, last_stop=state.last, preemptions=state.stops,
                rate=state.rate,
            )  # fmt: skip
