"""From a policy to starts and stops: one driver per kind of decision, all asked the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from repro.core.decision import Run
from repro.core.jobs import JobTable
from repro.core.policy import Order, Policy, Selection
from repro.core.view import View
from repro.placement.base import Placer
from repro.sim.rounds.mechanism import RoundMechanism
from repro.sim.select.backlog import Backlog
from repro.sim.whole_decisions import DecidedDriver


class Driver(Protocol):
    """What the engine asks at every event."""

    @property
    def foretells(self) -> bool:
        """Whether the driver says when jobs end, instead of their rates."""

    def endings(self) -> Sequence[tuple[float, int]] | None:
        """Return (end, job) of the completions it foretells; None: no news."""

    @property
    def patient(self) -> bool:
        """Whether arrivals and completions may be told as late as at the next wake-up."""

    @property
    def waits(self) -> bool:
        """Whether a job waits for GPUs."""

    def arrive(self, job: int, now: float) -> None:
        """Take note of an arrival."""

    def finish(self, job: int, now: float) -> None:
        """Take note of a completion."""

    def step(self, now: float) -> tuple[list[int], list[Run]]:
        """Return the jobs that lose GPUs and the runs that get them."""

    def tell(self) -> None:
        """Write into the job table what it was not yet told."""

    def rate_changed(self, job: int, now: float) -> None:
        """Take note that a started job runs at another rate than nominal."""

    def running(self) -> Iterable[int]:
        """Return the jobs that hold GPUs, in the order of the last decision."""

    def wake(self, now: float) -> float:
        """Return the next instant at which a step is due though nothing happens."""


class RankedDriver:
    """Drives an `Order` through its backlog."""

    foretells = patient = False

    def __init__(
        self,
        table: JobTable,
        policy: Order,
        view: View,
        placer: Placer,
        take: Callable[[int], None],
    ) -> None:
        capacity = view.cluster.num_gpus
        self.ordering = policy.ordering(view)
        self.quantum = policy.quantum_s()
        self.table = table
        self.backlog: Selection
        if self.ordering.selection is not None:
            self.backlog = self.ordering.selection(table, self.ordering, view.cluster)
        else:
            self.backlog = Backlog(table, self.ordering, placer, take, capacity)

    @property
    def waits(self) -> bool:
        """Whether a job waits for GPUs."""
        return self.backlog.waits

    def arrive(self, job: int, now: float) -> None:
        """Pass an arrival on."""
        self.ordering.arrive(job, now)
        self.backlog.arrive(job, now)

    def finish(self, job: int, now: float) -> None:
        """Pass a completion on."""
        self.backlog.finish(job)
        self.ordering.finish(job, now)

    def step(self, now: float) -> tuple[list[int], list[Run]]:
        """Re-queue what is due, then select."""
        for job in self.ordering.moves(now):
            self.backlog.move(job, now)
        stops, starts = self.backlog.select(now)
        gpus = self.table.gpus
        return stops, [Run((job,), gpus[job]) for job in starts]

    def rate_changed(self, job: int, now: float) -> None:
        """Read the key and its drift again; a re-sorted list does so anyway."""
        if isinstance(self.backlog, Backlog):
            self.backlog.move(job, now)

    def tell(self) -> None:
        """Do nothing: the engine keeps the table."""

    def endings(self) -> Sequence[tuple[float, int]] | None:
        """Return nothing: rates say when jobs end."""
        return None

    def running(self) -> Iterable[int]:
        """Return the jobs that hold GPUs, best first where the whole list was walked."""
        return self.backlog.running

    def wake(self, now: float) -> float:
        """Return the next demotion, promotion or end of a quantum."""
        wake = self.ordering.wake(now)
        if self.quantum < math.inf and self.backlog.waits:
            wake = min(wake, (math.floor(now / self.quantum + 1e-9) + 1) * self.quantum)
        return wake


def driver_for(
    table: JobTable,
    policy: Policy,
    view: View,
    placer: Placer,
    take: Callable[[int], None],
    mechanism: Callable[[], RoundMechanism],
) -> Driver:
    """Return the driver for a policy."""
    if isinstance(policy, Order):
        return RankedDriver(table, policy, view, placer, take)
    return DecidedDriver(table, policy, view, mechanism)
