"""Seconds lost to starts and preemptions: load, checkpoint, restore, save."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from repro.base.errors import ParamError, TraceError
from repro.model.jobs import JobTable
from repro.model.performance import Overhead
from repro.perf.muri_models import start_overhead


@dataclass(frozen=True)
class CheckpointOverhead(Overhead):
    """A preempted job keeps its GPUs while it checkpoints; a resumed job restores before it trains.

    ``pause`` is the time of a checkpoint (s) by model, ``default_pause`` that of other models.
    ``resume`` is the time of a restore (s), equal for all models.

    With a pause: Tiresias, NSDI 2019, Figure 4 (pause) and section 5.2.4 (mean cost of a
    preemption). With ``resume`` alone: Gavel, OSDI 2020, section 5 (preemption overhead, Table 4).
    """

    pause: Mapping[str, float]
    resume: float
    default_pause: float = 0.0

    def pause_s(self, table: JobTable, job: int) -> float:
        """Seconds that a preempted job keeps its GPUs to checkpoint."""
        if not self.pause:
            # The trace needs no model column.
            return self.default_pause
        return self.pause.get(table.models[job] or "", self.default_pause)

    def resume_s(self, table: JobTable, job: int) -> float:
        """Seconds that a resumed job holds its GPUs before it makes progress."""
        return self.resume


@dataclass(frozen=True)
class Phases(Overhead):
    """A job launches, trains and saves; only the training makes progress.

    ``launch`` and ``save`` are seconds by model; an unlisted model takes 0. Jobs do not launch anew
    when the jobs that share their GPUs change. A pre-launched job launches while the jobs before it
    on these GPUs, its hosts, still train. It trains once they have saved, and no earlier than
    ``handover`` seconds after their last step. An agent takes this time to see that the GPU is
    idle.

    Liquid, TPDS 2022, section 6.1 and Eq 1.
    """

    launch: Mapping[str, float]
    save: Mapping[str, float]
    handover: float = 0.0

    #: a job does not launch anew when its group changes
    stays = True
    #: progress of a pre-launched job begins after its hosts have saved
    follows = True

    def start_s(self, table: JobTable, job: int) -> float:
        """Seconds of the launch."""
        return self.launch.get(table.models[job] or "", 0.0)

    def save_s(self, table: JobTable, job: int) -> float:
        """Seconds that the job saves after its last step."""
        return self.save.get(table.models[job] or "", 0.0)

    def handover_s(self, table: JobTable, job: int) -> float:
        """Seconds from the last step of the hosts until an agent sees that their GPU is idle."""
        return self.handover


@dataclass(frozen=True)
class StartOverhead(Overhead):
    """Jobs need seconds on their GPUs before they make progress, by model and gang size.

    With ``every_interval`` every running job pays its start after every event, as in Muri's public
    simulator. A group pays the sum over its members. A job does not pay in the interval in which it
    ends. Without ``every_interval`` a job pays when it starts.

    Muri, SIGCOMM 2022, public simulator (table of start times by model and number of GPUs).
    """

    every_interval: bool = True

    def start_s(self, table: JobTable, job: int) -> float:
        """Seconds of a start of the job."""
        return table.derived("start overheads", lambda: _starts(table))[job]


@dataclass(frozen=True)
class RoundRestarts(Overhead):
    """All jobs on GPUs restart in a round in which a job arrived, ended or changed its queue.

    Rounds have the length ``interval`` of a simulation. A job that ends leaves its GPUs idle until
    the round is over. In a round without a change no job restarts, whether jobs wait or not.

    A restart of a gang costs ``launch`` seconds, the start of each member, and ``warm_up``
    iterations at the pace of the slowest member. Under rules without iterations, ``warm_up`` is
    seconds of work. ``start`` is the seconds of a start by model; a model that is not listed takes
    0 s. None: the start times of Muri's public simulator, by model and number of GPUs.

    Muri, SIGCOMM 2022, section 5.1 (rounds of six minutes) and ``cluster_exp/run.py``.
    """

    launch: float = 0.0
    warm_up: float = 0.0
    start: Mapping[str, float] | None = None

    every_interval = True
    restarts_on_change = True

    def start_s(self, table: JobTable, job: int) -> float:
        """Seconds in which the job loads its model."""
        if self.start is None:
            return table.derived("start overheads", lambda: _starts(table))[job]
        return self.start.get(table.models[job] or "", 0.0)

    def launch_s(self, unit_s: Sequence[float]) -> float:
        """Seconds of the launch of a gang and of its warm-up.

        The launch ends when the members begin to load their models. ``unit_s`` has the seconds per
        unit of work of each member.
        """
        return self.launch + self.warm_up * max(unit_s)


def _starts(table: JobTable) -> list[float]:
    """Seconds of a start of each job."""
    source = table.source
    if not table.has("model"):
        raise TraceError(
            f"{source}: no column 'model'; these rules charge every start by model: add "
            f"the column, or use --rules paper"
        )
    table.refuse_gaps("model", "these rules charge every start by model: fill it or drop the job")
    starts = []
    for job, (model, gpus) in enumerate(zip(table.models, table.gpus, strict=True)):
        try:
            starts.append(start_overhead(str(model), gpus))
        except ParamError as error:
            raise TraceError(f"{source}: job {table.ids[job]!r}: {error}") from None
    return starts
