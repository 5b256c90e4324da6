"""What the engine asks of the world: how fast a job runs on what it holds, what a start costs."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from repro.base.typing import Floats, Ints
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes


class Performance(Protocol):
    """How fast jobs run on what they hold."""

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Return the speed of every member of ``run`` relative to running alone."""


@runtime_checkable
class Paced(Performance, Protocol):
    """A performance model that knows to the last bit how long a unit of work takes."""

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Return the seconds a unit of work takes every member of ``run``."""


@runtime_checkable
class Renewing(Performance, Protocol):
    """A performance model whose rates change while a run goes on, such as goodput by epoch."""

    def renew(self, table: JobTable, run: Run, nodes: Nodes) -> float:
        """Seconds of progress after which the rates of ``run`` are asked again; infinity: never.

        ``table.left`` holds the work left of the members at this instant. The engine asks when the
        run starts and after every renewal. A renewal is an event at which the policy decides, too.
        """


@runtime_checkable
class Curves(Protocol):
    """A performance model that knows how fast jobs run on any number of GPUs."""

    def table(
        self, models: Sequence[str | None], gpus: Sequence[int], ids: Sequence[object]
    ) -> tuple[Floats, Ints]:
        """Return S(0), S(1), … row by row, and the row of each job; row 0 is linear speed-up."""


class Overhead:
    """What starts and preemptions cost: nothing. Subclasses say what does."""

    #: the start is paid anew after every decision, even by a job that kept its GPUs
    every_interval: bool = False
    #: a job whose company changes goes on where it is; else the whole group starts again
    stays: bool = False
    #: a guest starts beside its hosts, and progresses when they have left
    follows: bool = False

    def start_s(self, table: JobTable, job: int) -> float:
        """Return the seconds a job that never ran holds its GPUs before it progresses."""
        return 0.0

    def save_s(self, table: JobTable, job: int) -> float:
        """Return the seconds a job holds its GPUs after its last step."""
        return 0.0

    def handover_s(self, table: JobTable, job: int) -> float:
        """Return the seconds after the last step of its hosts from which a guest may progress."""
        return 0.0

    def pause_s(self, table: JobTable, job: int) -> float:
        """Return the seconds a preempted job keeps its GPUs to checkpoint."""
        return 0.0

    def resume_s(self, table: JobTable, job: int) -> float:
        """Return the seconds a resumed job holds its GPUs before it progresses: it loads anew."""
        return self.start_s(table, job)
