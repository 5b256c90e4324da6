"""What a preemption costs: checkpoint before, restore after (Tiresias sections 2.2 and 5.2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from repro.sim.jobs import JobTable


@dataclass(frozen=True)
class CheckpointOverhead:
    """A preempted job keeps its GPUs to checkpoint, a resumed one holds them before it progresses.

    Parameters
    ----------
    pause : mapping of str to float
        Model name -> seconds to checkpoint.
    resume : float
        Seconds to resume, the same for every model.
    default_pause : float
        Seconds to checkpoint a model that is not listed.

    References
    ----------
    Tiresias, NSDI 2019, Figure 4 (pause) and section 5.2.4 (mean cost of a preemption).

    Examples
    --------
    >>> CheckpointOverhead({"vgg19": 2.7}, resume=50.0, default_pause=10.0).pause["vgg19"]
    2.7
    """

    pause: Mapping[str, float]
    resume: float
    default_pause: float = 0.0

    def pause_s(self, table: JobTable, job: int) -> float:
        """Return the seconds the job keeps its GPUs to checkpoint."""
        return self.pause.get(table.models[job] or "", self.default_pause)

    def resume_s(self, table: JobTable, job: int) -> float:
        """Return the seconds the job holds its GPUs before it progresses again."""
        return self.resume
