"""Ends a simulation in which jobs start again and again and never progress."""

from collections.abc import Mapping

from repro.engine.run_errors import livelock
from repro.model.decision import Run
from repro.model.jobs import JobTable

#: Lost starts in a row, for each unfinished job, that end a simulation.
MAX_LOST_STARTS = 1000


class LivelockCheck:
    """Count of lost starts since a job last progressed.

    A start is lost if the job is stopped, is charged another start, or fails before it progresses.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    policy : str
        Name of the policy, for the message.
    runs : mapping of int to Run
        Gang of every job that holds GPUs; it changes as the simulation goes on.
    """

    def __init__(self, table: JobTable, policy: str, runs: Mapping[int, Run]) -> None:
        self._table = table
        self._policy = policy
        self._runs = runs
        self._lost_starts = 0

    def note_progress(self) -> None:
        """Note that a job has progressed."""
        self._lost_starts = 0

    def note_lost_starts(self, starts: int, now: float) -> None:
        """Count starts that are lost at ``now`` (s).

        Raises
        ------
        PolicyError
            If too many starts in a row are lost, and no job that holds GPUs progresses.
        """
        self._lost_starts += starts
        if self._lost_starts <= MAX_LOST_STARTS * len(self._table.active):
            return
        progress_from = self._table.progress_from
        if any(progress_from[job] < now and not run.waits for job, run in self._runs.items()):
            self._lost_starts = 0
            return
        raise livelock(self._policy, now, self._table, self._lost_starts)
