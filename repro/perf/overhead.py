"""What a start or a preemption costs: load, checkpoint, restore, save (Tiresias, Muri, Liquid)."""

from collections.abc import Mapping
from dataclasses import dataclass

from repro.base.errors import ParamError, TraceError
from repro.model.jobs import JobTable
from repro.model.performance import Overhead
from repro.perf.muri_models import start_overhead


@dataclass(frozen=True)
class CheckpointOverhead(Overhead):
    """A preempted job keeps its GPUs to checkpoint, a resumed one holds them before it progresses.

    Seconds to checkpoint by model (``pause``, else ``default_pause``), and to resume any model.

    Tiresias, NSDI 2019, Figure 4 (pause) and section 5.2.4 (mean cost of a preemption); without a
    pause, Gavel, OSDI 2020, section 5 (preemption overhead, Table 4).
    """

    pause: Mapping[str, float]
    resume: float
    default_pause: float = 0.0

    def pause_s(self, table: JobTable, job: int) -> float:
        """Return the seconds the job keeps its GPUs to checkpoint."""
        if not self.pause:
            # so that no column of models is read for nothing
            return self.default_pause
        return self.pause.get(table.models[job] or "", self.default_pause)

    def resume_s(self, table: JobTable, job: int) -> float:
        """Return the seconds the job holds its GPUs before it progresses again."""
        return self.resume


@dataclass(frozen=True)
class Phases(Overhead):
    """A job launches, trains and saves; only the training makes progress.

    Seconds by model, 0 where none are given. Jobs whose company changes go on; a guest launches
    beside its hosts and trains once they have saved, at the earliest ``handover`` seconds after
    their last step, which is how long an agent takes to see that the GPU is idle.

    Liquid, TPDS 2022, section 6.1 and Eq 1.
    """

    launch: Mapping[str, float]
    save: Mapping[str, float]
    handover: float = 0.0

    stays = True
    follows = True

    def start_s(self, table: JobTable, job: int) -> float:
        """Return the seconds of the launch."""
        return self.launch.get(table.models[job] or "", 0.0)

    def save_s(self, table: JobTable, job: int) -> float:
        """Return the seconds the job saves after its last step."""
        return self.save.get(table.models[job] or "", 0.0)

    def handover_s(self, table: JobTable, job: int) -> float:
        """Return the seconds from the last step of the hosts until their GPU is seen idle."""
        return self.handover


@dataclass(frozen=True)
class StartOverhead(Overhead):
    """Jobs need some seconds on their GPUs before they progress, by model and gang size.

    With ``every_interval`` the start is paid after every event by every running job, whether or not
    it kept its GPUs, and by a group as a whole (the sum over its members), except in an interval
    that ends with the job's completion: what the public simulator of Muri does. Else on starts.

    Muri, SIGCOMM 2022, public simulator (table of start times by model and number of GPUs).
    """

    every_interval: bool = True

    def start_s(self, table: JobTable, job: int) -> float:
        """Return the seconds a start of the job takes."""
        return table.derived("start overheads", lambda: _starts(table))[job]


def _starts(table: JobTable) -> list[float]:
    """Return the seconds a start of each job takes."""
    source = table.source
    if not table.has("model"):
        raise TraceError(
            f"{source}: no column 'model'; these rules charge every start by model: name it, or "
            f"use --rules paper"
        )
    table.refuse_gaps("model", "these rules charge every start by model: fill it or drop the job")
    starts = []
    for job, (model, gpus) in enumerate(zip(table.models, table.gpus, strict=True)):
        try:
            starts.append(start_overhead(str(model), gpus))
        except ParamError as error:
            raise TraceError(f"{source}: job {table.ids[job]!r}: {error}") from None
    return starts
