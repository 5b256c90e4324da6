"""What jobs and pairs received by the round mechanism, and their deficits."""

import numpy as np

from repro.typing import Flags, Floats, Ints


class Ledger:
    """Rows of the present X with the time they received and their deficits.

    ``prior_s`` is the time every row is taken to have received of each type when X is new (s).
    """

    def __init__(self, jobs: int, types: int, prior_s: float) -> None:
        from repro.sim.rounds import ledger_kernels

        self._kernels, self._prior = ledger_kernels, prior_s
        self._alone = np.zeros((jobs, types))
        self._paired: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty((0, types)))
        #: jobs that were ever in X; the last entry stands for none
        self._known = np.zeros(jobs + 1, dtype=np.bool_)
        #: jobs of each row, -1 for none
        self.members = np.empty((0, 2), dtype=np.int64)
        #: by (row, GPU type): share, time received since (s), deficit carried over (s)
        self.x = self.time = self.deficit = np.empty((0, types))
        #: time received by all rows (s)
        self.total = np.zeros(types)
        #: steps per second of both members; 0 where they cannot run
        self.speeds = np.empty((0, 2, types))
        #: where all members can run; nowhere once one of them has finished
        self.able: Flags = np.empty((0, types), dtype=np.bool_)
        #: rows without finished jobs; rows of jobs that were there when X was computed
        self.alive = self.allocated = np.empty(0, dtype=np.bool_)

    def renew(self, members: Ints, x: Floats, speeds: Floats, elapsed: float) -> None:
        """Settle the deficits of the old X, computed ``elapsed`` seconds ago; begin a new one."""
        kernels = self._kernels
        self._paired = kernels.settle(
            self.members, self.x, self.time, self.deficit, self._prior, elapsed, self._alone
        )
        self.members, self.x, self.speeds = members, x, speeds
        self.able = kernels.able(speeds)
        self.deficit = kernels.deficits(
            members, self._alone, *self._paired, self._known, self._prior
        )
        self._known[members] = True
        self.time = np.full(x.shape, self._prior)
        self.total = np.full(x.shape[1], self._prior * len(x))
        self.alive = np.ones(len(x), dtype=np.bool_)
        self.allocated = np.ones(len(x), dtype=np.bool_)

    def add(self, rows: Ints, speeds: Floats) -> None:
        """Add jobs, or pairs of jobs, that arrived since X was computed; they have no share."""
        zeros = np.zeros((len(rows), self.x.shape[1]))
        deficit = np.where(rows[:, 1:] < 0, self._alone[rows[:, 0]], zeros)
        self.members = np.concatenate([self.members, rows])
        self.x = np.concatenate([self.x, zeros])
        self.time = np.concatenate([self.time, zeros + self._prior])
        self.deficit = np.concatenate([self.deficit, deficit])
        self.speeds = np.concatenate([self.speeds, speeds])
        self.able = np.concatenate([self.able, self._kernels.able(speeds)])
        self.alive = np.concatenate([self.alive, np.ones(len(rows), np.bool_)])
        self.allocated = np.concatenate([self.allocated, np.zeros(len(rows), np.bool_)])

    def finish(self, job: int) -> None:
        """Take the rows of a finished job out."""
        self._kernels.leave(self.members, job, self.alive, self.able)

    def give(self, rows: Ints, types: Ints, seconds: Floats | float) -> None:
        """Book that rows, each named once, held GPUs of a type."""
        self.time[rows, types] += seconds
        np.add.at(self.total, types, seconds)
