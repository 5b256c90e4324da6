"""Renewals of rates: instants at which the performance model has new rates for a gang."""

import math
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from repro.base.errors import ParamError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Renewing, renewal_of
from repro.model.records import Nodes


class Renewals:
    """Next renewal of the rates of each gang, under a performance model with `renew`.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    model : Renewing
        The performance model.
    runs : mapping of int to Run
        Gang of every job that holds GPUs; it changes as the simulation goes on.
    """

    def __init__(self, table: JobTable, model: Renewing, runs: Mapping[int, Run]) -> None:
        self._table = table
        self._model = model
        self._runs = runs
        #: heap of (instant in s, leader of a gang, number of the leader's start). The leader is the
        #: first job of the gang, which may be a group
        self._heap: list[tuple[float, int, int]] = []
        self._start_number = [0] * table.count
        #: latest gang of each leader
        self._gangs: dict[int, Run] = {}

    def note_start(self, run: Run) -> None:
        """Count the start of a gang; renewals planned before it are ignored."""
        self._start_number[run.jobs[0]] += 1
        self._gangs[run.jobs[0]] = run

    def plan(self, run: Run, nodes: Nodes, begin: float) -> None:
        """Add the next renewal of a gang that progresses from ``begin`` (s) on."""
        seconds = renewal_of(self._model, self._table, run, nodes)
        if seconds < math.inf:
            leader = run.jobs[0]
            # rounding may put the renewal at ``begin``
            instant = max(begin + seconds, math.nextafter(begin, math.inf))
            heappush(self._heap, (instant, leader, self._start_number[leader]))

    def next_instant(self) -> float:
        """Instant of the next renewal (s); infinity if there is none."""
        while self._heap:
            instant, leader, number = self._heap[0]
            if number == self._start_number[leader] and self._holds_gpus(self._gangs[leader]):
                return instant
            heappop(self._heap)
        return math.inf

    def due(self, now: float) -> Iterator[Run]:
        """Remove and yield the gangs whose renewal is due.

        The caller may `plan` the next renewal of a gang before it takes the next gang.
        """
        while self.next_instant() <= now:
            _, leader, _ = heappop(self._heap)
            yield self._gangs[leader]

    def _holds_gpus(self, run: Run) -> bool:
        """Whether a member of a gang holds GPUs in it; the others may have ended."""
        return any(self._runs.get(job) is run for job in run.jobs)


def renewals_refused() -> ParamError:
    """Error of a performance model with `renew` where the engine predicts no completions."""
    return ParamError(
        "rates that change while jobs run (`renew` of the performance model) need completions that "
        "the engine predicts: choose rules other than muri, and a policy that returns no shares"
    )
