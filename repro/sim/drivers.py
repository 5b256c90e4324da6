"""From a policy that only ranks jobs to starts and stops."""

import math
from collections.abc import Callable, Iterable

from repro.core.decision import Run
from repro.core.jobs import JobTable
from repro.core.policy import Order, Selection
from repro.core.view import View
from repro.placement.base import Placer
from repro.sim.select.backlog import Backlog


class RankedDriver:
    """Drives an `Order` through its selection; the engine asks the same of a `DecidedDriver`."""

    rounds: None = None

    def __init__(
        self,
        table: JobTable,
        policy: Order,
        view: View,
        placer: Placer,
        take: Callable[[int], None],
    ) -> None:
        self.table, self.ordering = table, policy.ordering(view)
        self.quantum = policy.quantum_s()
        special = self.ordering.selection
        self.selection: Selection = (
            special(table, self.ordering, view.cluster)
            if special is not None
            else Backlog(table, self.ordering, placer, take, view.cluster.num_gpus)
        )

    @property
    def waits(self) -> bool:
        """Whether a job waits for GPUs."""
        return self.selection.waits

    def arrive(self, job: int, now: float) -> None:
        """React to an arrival."""
        self.ordering.arrive(job, now)
        self.selection.arrive(job, now)

    def finish(self, job: int, now: float) -> None:
        """React to a completion."""
        self.selection.finish(job)
        self.ordering.finish(job, now)

    def step(self, now: float) -> tuple[list[int], list[Run]]:
        """Return the jobs that lose GPUs and the runs that get them, after re-queueing."""
        for job in self.ordering.moves(now):
            self.selection.move(job, now)
        stops, starts = self.selection.select(now)
        gpus = self.table.gpus
        return stops, [Run((job,), gpus[job]) for job in starts]

    def rate_changed(self, job: int, now: float) -> None:
        """React to a job that runs at another rate than nominal, or whose remaining work jumped."""
        # the other selections read all keys anew anyway
        if isinstance(self.selection, Backlog):
            self.selection.move(job, now)

    def running(self) -> Iterable[int]:
        """Return the jobs that hold GPUs, best first where the whole list was walked."""
        return self.selection.running

    def wake(self, now: float) -> float:
        """Return the next demotion, promotion or end of a quantum."""
        wake = self.ordering.wake(now)
        if self.quantum < math.inf and self.selection.waits:
            wake = min(wake, (math.floor(now / self.quantum + 1e-9) + 1) * self.quantum)
        return wake
