"""What jobs and pairs were given by the round mechanism, and what they are owed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Ledger:
    """Rows of the present X with the time they received and their deficits.

    Parameters
    ----------
    jobs : int
        Jobs in the trace.
    kinds : int
        GPU types.
    prior_s : float
        Time every row is taken to have received of each type when X is new (s).

    Attributes
    ----------
    members : ndarray, shape (rows, 2)
        Jobs of each row, -1 for none.
    x, time, owed : ndarray, shape (rows, GPU types)
        Shares, time received since they were computed (s), deficit carried over (s).
    total : ndarray, shape (GPU types,)
        Time received by all rows (s).
    speeds : ndarray, shape (rows, 2, GPU types)
        Steps per second of the members of each row; 0 where they cannot run.
    able : ndarray of bool, shape (rows, GPU types)
        Where all members can run; nowhere once one of them has finished.
    alive : ndarray of bool, shape (rows,)
        False once a member has finished.
    allocated : ndarray of bool, shape (rows,)
        False for jobs that arrived since X was computed.
    """

    def __init__(self, jobs: int, kinds: int, prior_s: float) -> None:
        # the compiler takes longer to import than most runs to simulate
        from repro.core import row_kernels

        self._rows, self._prior = row_kernels, prior_s
        self._alone = np.zeros((jobs, kinds))
        self._paired: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty((0, kinds)))
        #: jobs that were ever in X; the last entry stands for none
        self._known = np.zeros(jobs + 1, dtype=np.bool_)
        self.members = np.empty((0, 2), dtype=np.int64)
        self.x = self.time = self.owed = np.empty((0, kinds))
        self.total = np.zeros(kinds)
        self.speeds = np.empty((0, 2, kinds))
        self.able = np.empty((0, kinds), dtype=np.bool_)
        self.alive = self.allocated = np.empty(0, dtype=np.bool_)

    def renew(self, members: Ints, x: Floats, speeds: Floats, elapsed: float) -> None:
        """Settle the deficits of the old X and begin with a new one.

        Parameters
        ----------
        members, x, speeds
            As the attributes.
        elapsed : float
            Seconds since the old X was computed.
        """
        rows = self._rows
        self._paired = rows.settle(
            self.members, self.x, self.time, self.owed, self._prior, elapsed, self._alone
        )
        self.members, self.x, self.speeds = members, x, speeds
        self.able = rows.able(speeds)
        self.owed = rows.deficits(members, self._alone, *self._paired, self._known, self._prior)
        self._known[members] = True
        self.time = np.full(x.shape, self._prior)
        self.total = np.full(x.shape[1], self._prior * len(x))
        self.alive = np.ones(len(x), dtype=np.bool_)
        self.allocated = np.ones(len(x), dtype=np.bool_)

    def add(self, rows: Ints, speeds: Floats) -> None:
        """Add jobs, or pairs of jobs, that arrived since X was computed; they have no share of it.

        Parameters
        ----------
        rows, speeds
            More of ``members`` and ``speeds``.
        """
        joined = self._rows.join(
            self.members, self.x, self.time, self.owed, self.speeds, self.able, self.alive,
            self.allocated, rows, speeds, self._alone, self._prior,
        )  # fmt: skip
        self.members, self.x, self.time, self.owed = joined[:4]
        self.speeds, self.able, self.alive, self.allocated = joined[4:]

    def finish(self, job: int) -> None:
        """Take the rows of a finished job out."""
        self._rows.leave(self.members, job, self.alive, self.able)

    def give(self, rows: Ints, kinds: Ints, seconds: Floats | float) -> None:
        """Note that rows, each named once, held GPUs of a type."""
        self.time[rows, kinds] += seconds
        np.add.at(self.total, kinds, seconds)
