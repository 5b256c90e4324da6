"""End of a simulation in which no job ever progresses."""

from collections.abc import Callable, Mapping

from repro.base.errors import PolicyError
from repro.engine.run_errors import livelock, no_work_is_kept, runs_no_job
from repro.model.decision import Run
from repro.model.jobs import JobTable

#: Lost starts in a row, for each unfinished job, that end a simulation.
MAX_LOST_STARTS = 1000
#: Failures in a row that end a simulation, if no job keeps any work after them.
MAX_LOST_FAILURES = 200_000
#: Decisions in a row without a running job that end a simulation; a weekend has fewer seconds.
MAX_IDLE_DECISIONS = 200_000


class LivelockCheck:
    """Counts of lost starts, failures and idle decisions since a job last kept some of its work.

    A start is lost if the job is stopped, is charged another start, or fails before it progresses.
    An arrival clears this count, because it may itself cut starts short.
    A failure counts if all jobs on the node lose all work since their last start or restart.
    An idle decision leaves no job running. It counts after the last arrival, because an arrival
    may change what the policy decides.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    policy : str
        Name of the policy, for the message.
    runs : mapping of int to Run
        Gang of every job that holds GPUs; it changes as the simulation goes on.
    refused_gang : callable
        Error of a placement that refuses a waiting gang at an instant (s), or None.
    """

    def __init__(
        self,
        table: JobTable,
        policy: str,
        runs: Mapping[int, Run],
        refused_gang: Callable[[float], PolicyError | None],
    ) -> None:
        self._table = table
        self._policy = policy
        self._runs = runs
        self._refused_gang = refused_gang
        self._lost_starts = 0
        self._lost_failures = 0
        self._idle_decisions = 0
        #: jobs that had arrived at the last lost start
        self._arrived = 0
        #: instant of the first failure of the count (s)
        self._first_lost_failure = 0.0

    def note_progress(self) -> None:
        """Note that a job has progressed, and keeps its work."""
        self._lost_starts = 0
        self._lost_failures = 0
        self._idle_decisions = 0

    def note_lost_starts(self, starts: int, now: float) -> None:
        """Count starts that are lost at ``now`` (s).

        Raises
        ------
        PolicyError
            If too many starts in a row are lost, and no job that holds GPUs progresses.
        """
        table = self._table
        if table.arrived > self._arrived:
            self._arrived = table.arrived
            self._lost_starts = 0
        self._lost_starts += starts
        if self._lost_starts <= MAX_LOST_STARTS * len(table.active):
            return
        progress_from = table.progress_from
        if any(progress_from[job] < now and not run.waits for job, run in self._runs.items()):
            self._lost_starts = 0
            return
        raise livelock(self._policy, now, table, self._lost_starts)

    def note_lost_work(self, now: float) -> None:
        """Count a failure at ``now`` (s) of jobs that have progressed and lose all of this work.

        Raises
        ------
        PolicyError
            If too many failures in a row leave no work, and no job progressed through all of them.
        """
        self._lost_starts = 0
        if self._lost_failures == 0:
            self._first_lost_failure = now
        self._lost_failures += 1
        if self._lost_failures > MAX_LOST_FAILURES:
            progress_from = self._table.progress_from
            running = (job for job, run in self._runs.items() if not run.waits)
            if any(progress_from[job] <= self._first_lost_failure for job in running):
                self._lost_failures = 0
                return
            raise no_work_is_kept(self._policy, now, self._table, self._lost_failures)

    def note_idle_decision(self, now: float) -> None:
        """Count a decision at ``now`` (s) after which no gang holds GPUs.

        Raises
        ------
        PolicyError
            If too many decisions in a row run no job.
        """
        table = self._table
        # jobs in rounds may hold GPUs without a gang
        if table.arrived < table.count or table.state.running.any():
            self._idle_decisions = 0
            return
        self._idle_decisions += 1
        if self._idle_decisions > MAX_IDLE_DECISIONS:
            refusal = self._refused_gang(now)
            raise refusal or runs_no_job(self._policy, now, table, self._idle_decisions)
