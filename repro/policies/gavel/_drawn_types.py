"""GPU types given to jobs of a queue by a draw or by their place in a list, to the end."""

from __future__ import annotations

import random

from repro.core.typed_shares import Kinds


class DrawnTypes:
    """Which job is on which GPU type in one run of `FifoAgnostic`.

    With ``last``, as in the public simulator: the last type of the list instead of the drawn one.
    """

    def __init__(self, seed: int, last: bool) -> None:
        self._draw, self._last = random.Random(seed), last
        #: column of the type of each job that has one
        self._column: dict[int, int] = {}

    def update(self, jobs: Kinds) -> dict[int, int]:
        """Place jobs from the head of the queue; return the column of each row that has a type."""
        row = {job: number for number, job in enumerate(jobs.jobs)}
        waiting = [job for job in jobs.jobs if job not in self._column]
        free = jobs.gpus.astype(int).tolist()
        self._replace(jobs, row, waiting, free)
        self._admit(jobs, row, waiting, free)
        return {row[job]: column for job, column in self._column.items()}

    def _replace(
        self, jobs: Kinds, row: dict[int, int], waiting: list[int], free: list[float]
    ) -> None:
        """Give the places of finished jobs to the head of the queue, count what is free.

        What the public simulator has counted when it comes to a finished job are the older ones.
        """
        for job in sorted(self._column):
            column = self._column[job]
            if job in row:
                free[column] -= jobs.widths[row[job]]
                continue
            del self._column[job]
            if not self._last or not waiting:
                continue
            head = waiting.pop(0)
            width, speeds = jobs.widths[row[head]], jobs.speeds[row[head]]
            if width <= free[column] and speeds[column] > 0:
                self._column[head] = column
                free[column] -= width

    def _admit(
        self, jobs: Kinds, row: dict[int, int], waiting: list[int], free: list[float]
    ) -> None:
        """Place jobs from the head of the queue on until one finds no room."""
        columns = [column for column, gpus in enumerate(free) if gpus > 0]
        for job in waiting:
            width, able = jobs.widths[row[job]], jobs.speeds[row[job]] > 0
            room = [column for column in columns if free[column] >= width]
            if not self._last:
                room = [column for column in room if able[column]]
            if not room:
                return
            drawn = room[self._draw.randrange(len(room))]
            column = columns[-1] if self._last else drawn
            if not able[column]:
                continue
            self._column[job] = column
            free[column] -= width
            if free[column] == 0:
                columns.remove(drawn)
