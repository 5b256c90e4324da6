"""Rounds of whole training steps, as in Gavel's public simulator."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from repro.sim.decision import Run, RunSet
from repro.sim.jobs import JobTable
from repro.sim.received import Ledger
from repro.sim.rounds import RoundSettings
from repro.sim.speeds import Speeds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_NO_INTS = np.empty(0, dtype=np.int64)


class WholeSteps:
    """Progress of the present round, counted in whole steps.

    Parameters
    ----------
    table : JobTable
        Job state; steps left are written here at the end of every round.
    speeds : Speeds
        Steps per second.
    settings : RoundSettings
        Length of a round, overhead.

    Attributes
    ----------
    until : float
        End of the present round: the last of its runs to finish its steps (s).
    endings : list of (float, int)
        Completions in the present round.

    References
    ----------
    Gavel's public simulator; the rules are listed in docs/rules-gavel.md.
    """

    def __init__(self, table: JobTable, speeds: Speeds, settings: RoundSettings) -> None:
        self._table, self._speeds, self._settings = table, speeds, settings
        self.until = -math.inf
        self.endings: list[tuple[float, int]] = []
        self._left = np.array(table.left)
        self._rows, self._kinds, self._ends = _NO_INTS, _NO_INTS, np.empty(0)
        self._jobs, self._steps = _NO_INTS, np.empty(0)
        self._begun = 0.0

    def settle(self, ledger: Ledger, now: float) -> None:
        """Book the steps and the time of the round that has ended."""
        if not len(self._jobs):
            return
        table, jobs = self._table, self._jobs
        self._left[jobs] -= self._steps
        left, since = table.left, table.since
        for job, value in zip(jobs.tolist(), self._left[jobs].tolist(), strict=True):
            left[job] = value
            since[job] = now
        if len(self._rows):
            # an idle gap before a round counts to its first steps
            ledger.give(self._rows, self._kinds, self._ends - self._begun)
            self._begun = self.until
        self._rows, self._jobs = _NO_INTS, _NO_INTS
        self.until = -math.inf

    def begin(
        self, ledger: Ledger, rows: Ints, kinds: Ints, fresh: npt.NDArray[np.bool_], now: float
    ) -> None:
        """Begin a round: chosen rows, their GPU types, and whether they were not there before."""
        if not len(rows):
            return
        pace = ledger.speeds[rows, :, kinds]
        members = ledger.members[rows]
        begin = np.full(len(rows), now)
        length = np.full(len(rows), self._settings.round_s)
        if self._settings.preemption_overhead_s and fresh.any():
            started = np.array([self._table.first_start[job] < math.inf for job in members[:, 0]])
            lost = np.where(fresh & started, self._settings.preemption_overhead_s, 0.0)
            begin, length = begin + lost, length - lost
        steps, ends = self._run(members[:, 0], pace[:, 0], begin, length)
        jobs = members[:, 0]
        two = np.nonzero(members[:, 1] >= 0)[0]
        if len(two):
            more, later = self._run(members[two, 1], pace[two, 1], begin[two], length[two])
            # both of a pair are done when the later one is
            ends[two] = np.maximum(ends[two], later)
            jobs = np.concatenate([jobs, members[two, 1]])
            steps = np.concatenate([steps, more])
        last = np.concatenate([ends, ends[two]])
        self._rows, self._kinds, self._ends, self._jobs, self._steps = (
            rows,
            kinds,
            ends,
            jobs,
            steps,
        )
        self.until = float(ends.max())
        done = self._left[jobs] - steps <= 0
        self.endings = list(zip(last[done].tolist(), jobs[done].tolist(), strict=True))

    def _run(
        self, jobs: Ints, pace: Floats, begin: Floats, length: Floats
    ) -> tuple[Floats, Floats]:
        """Return the steps of each job and when they are done."""
        left = self._left[jobs]
        most = np.floor(pace * length)
        # slower than a step a round: part of one
        steps = np.minimum(np.where(most > 0, most, pace * length), left)
        return steps, begin + steps / pace

    def ideal(self, ledger: Ledger, now: float) -> RunSet:
        """Run every job at its shares until the next arrival, when those that are done end."""
        table = self._table
        after = table.arrived < table.count
        self.until = table.submit[table.arrived] if after else math.inf
        rows = np.nonzero(ledger.alive & ((ledger.x * ledger.speeds[:, 0]).sum(axis=1) > 0))[0]
        jobs, x, speeds = ledger.members[rows, 0], ledger.x[rows], ledger.speeds[rows, 0]
        left = self._left[jobs]
        if after:
            steps = np.minimum(np.floor(x * (self.until - now) * speeds).sum(axis=1), left)
            ends = np.full(len(jobs), self.until)
        else:
            steps, ends = left, now + left / (x * speeds).sum(axis=1)
        self._jobs, self._steps = jobs, steps
        done = steps >= left
        self.endings = list(zip(ends[done].tolist(), jobs[done].tolist(), strict=True))
        return RunSet([spread(self._speeds, table, *pair) for pair in zip(jobs, x, strict=True)])


def spread(speeds: Speeds, table: JobTable, job: int, shares: Floats) -> Run:
    """Return the run of a job that holds its shares of all types at once."""
    width = table.gpus[job]
    pairs = zip(speeds.gpu_types, shares.tolist(), strict=True)
    parts = tuple((kind, width * share) for kind, share in pairs if share > 1e-12)
    return Run((int(job),), sum(gpus for _, gpus in parts), parts=parts)
