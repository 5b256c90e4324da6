"""First in, first out on GPU types drawn at random."""

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from repro.base.typing import Floats
from repro.model.decision import Shares
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.model.view import View
from repro.policies.gavel._one_type import InOrder, whole_time


@register("fifo-agnostic")
@dataclass(frozen=True)
class FifoAgnostic(InOrder):
    """Jobs in order of arrival, each on one type with room, where it stays to the end.

    The first job that finds no room blocks all behind it.

    Parameters
    ----------
    assign : {"drawn", "last"}, optional
        ``drawn``: a type is drawn among those with room on which the job can run. ``last``: as
        the public simulator does, the last type of the list of types with free GPUs, even without
        room for the gang; the draw only decides which type leaves that list when the last has no
        GPU left. A job that cannot run on that type waits, and those behind it pass. A type may be
        given to more gangs than fit, which then take turns. The first job in line takes the type
        of one that finishes if it can run there and fits next to the older jobs, and stays first
        in line if not. Default: ``drawn`` under the paper's rules, ``last`` under Gavel's.
    stream : int
        Which draw of types on the same trace; 0 is that of the public simulator.

    Reference: Gavel, OSDI 2020, section 4.2 (FIFO).
    """

    assign: Literal["drawn", "last"] | None = None
    stream: int = 0

    tells_types = False
    rule_values: ClassVar = {"paper": {"assign": "drawn"}, "gavel": {"assign": "last"}}

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Return X of one run, which remembers who is where."""
        types = DrawnTypes(view.seed + self.stream, last=self.assign == "last")
        return lambda jobs: whole_time(jobs, types.update(jobs))

    def session(self, view: View) -> Callable[[View], Shares]:
        """Return the decision function of one run; under ``last`` types may be overcommitted."""
        decide = super().session(view)
        if self.assign != "last":
            return decide
        return lambda view: replace(decide(view), overcommitted=True)


class DrawnTypes:
    """Which job is on which GPU type in one run of `FifoAgnostic`."""

    def __init__(self, seed: int, last: bool) -> None:
        self._draw = random.Random(seed)
        self._last = last
        #: column of the type and GPUs of each job that has a type
        self._held: dict[int, tuple[int, float]] = {}

    def update(self, jobs: Kinds) -> dict[int, int]:
        """Place jobs from the head of the queue; return the column of each row that has a type."""
        held = self._held
        present = set(jobs.jobs)
        free = jobs.gpus.tolist()
        waiting = deque((row, job) for row, job in enumerate(jobs.jobs) if job not in held)
        # The type of a finished job is offered to the head of the queue. The public simulator has
        # counted only the older jobs by then. A head that does not fit stays where it is.
        for job in sorted(held):
            column, width = held[job]
            if job in present:
                free[column] -= width
                continue
            del held[job]
            if self._last and waiting:
                row, head = waiting[0]
                width = jobs.widths.item(row)
                if width <= free[column] and jobs.speeds[row, column] > 0:
                    waiting.popleft()
                    held[head] = column, width
                    free[column] -= width
        self._admit(jobs, iter(waiting), free)
        return {row: held[job][0] for row, job in enumerate(jobs.jobs) if job in held}

    def _admit(self, jobs: Kinds, waiting: Iterator[tuple[int, int]], free: list[float]) -> None:
        """Place (row, job) from the head of the queue on until one finds no room."""
        columns = [column for column, gpus in enumerate(free) if gpus > 0]
        for row, job in waiting:
            width = jobs.widths.item(row)
            able = jobs.speeds[row] > 0
            room = [column for column in columns if free[column] >= width]
            if not self._last:
                room = [column for column in room if able[column]]
            if not room:
                return
            drawn = room[self._draw.randrange(len(room))]
            column = columns[-1] if self._last else drawn
            if not able[column]:
                continue
            self._held[job] = column, width
            free[column] -= width
            if free[column] == 0:
                columns.remove(drawn)
