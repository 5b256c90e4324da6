"""Seconds that a job loses by starts, by preemptions and by changes of its group."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from repro.base.errors import ParamError
from repro.base.outside import refuse_failure
from repro.engine.gang_nodes import GangNodes
from repro.files.checks import shown
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Overhead
from repro.model.records import Nodes


def cost_of(overhead: Overhead, method: str, job_id: object, *arguments: object) -> float:
    """Cost of a job (s) that a method of an overhead gives for ``arguments``.

    Raises
    ------
    ParamError
        If the method fails, or its cost is no number, negative or infinite.
    """
    subject = f"overhead {type(overhead).__name__}"
    try:
        seconds: float = getattr(overhead, method)(*arguments)
    except Exception as error:
        refuse_failure(error, overhead, method, f"{subject}, job {job_id!r}", ParamError)
        raise
    try:
        is_accepted = 0 <= seconds < math.inf
    except (TypeError, ValueError):
        is_accepted = False
    if not is_accepted:
        raise ParamError(
            f"{subject}: `{method}` is {shown(repr(seconds))} for job {job_id!r}; give a finite "
            f"number of seconds, 0 or more"
        )
    return seconds


def start_costs(overhead: Overhead, table: JobTable) -> list[float]:
    """Cost of the first start of each job (s); ParamError if `cost_of` refuses one."""
    return [
        cost_of(overhead, "start_s", job_id, table, job) for job, job_id in enumerate(table.ids)
    ]


#: GPU type and nodes of a gang.
_Place = tuple[str | None, Nodes]


class _BeforeRestart(NamedTuple):
    """A job just before it stops and starts again at the same instant."""

    place: _Place
    #: instant from which the job progressed (s)
    progress_from: float
    #: predicted instant of its last step (s)
    last_step: float
    #: change of the overhead if the job starts in another place (s), see `change_at_stop`
    change_at_stop: float


class OverheadCosts:
    """Costs of starts and preemptions under an overhead.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    overhead : Overhead
        Seconds of starts, saves, pauses and handovers.
    gang_nodes : GangNodes
        Nodes of the gangs that hold GPUs.
    loaded_at : dict of int to float
        Instant at which the last start or restart of each job ends (s), changed in place.
    """

    def __init__(
        self,
        table: JobTable,
        overhead: Overhead,
        gang_nodes: GangNodes,
        loaded_at: dict[int, float],
    ) -> None:
        self._table = table
        self._overhead = overhead
        self._gang_nodes = gang_nodes
        #: nodes of the first host of each job that started with hosts
        self._host_nodes: dict[int, Nodes] = {}
        self._loaded_at = loaded_at
        #: jobs that stop and start again at this instant and may stay where they are
        self._before_restart: dict[int, _BeforeRestart] = {}

    def note_restarts(self, jobs: Iterable[int], runs: Mapping[int, Run], now: float) -> None:
        """Note the places and progress of jobs that stop and start again at ``now`` (s).

        Under an overhead with ``stays`` a job whose new gang has the same place is not charged a
        start.
        """
        self._before_restart.clear()
        if not self._overhead.stays:
            return
        for job in jobs:
            run = runs[job]
            if not run.waits:
                self._before_restart[job] = _BeforeRestart(
                    place=self._place(run),
                    progress_from=self._table.progress_from[job],
                    last_step=self._last_step(job),
                    change_at_stop=self._lost_save_less_unspent_start(job, now),
                )

    def change_at_stop(self, job: int, now: float) -> float:
        """Change of the overhead (s) if a job stops at ``now`` (s).

        It is 0 for a job that may stay where it is. Then `begin` returns the change.
        """
        if job in self._before_restart:
            return 0.0
        return self._lost_save_less_unspent_start(job, now)

    def _lost_save_less_unspent_start(self, job: int, now: float) -> float:
        """Seconds spent on a save that is lost, less the rest of a start that is cut short."""
        table = self._table
        starts_at = max(now, table.gpus_free_from[job])
        unspent_s = max(0.0, self._loaded_at.get(job, now) - starts_at)
        if table.rate[job] > 0 and self.save_s(job) > 0:
            return max(0.0, now - self._last_step(job)) - unspent_s
        return -unspent_s

    def pauses(self, jobs: Iterable[int]) -> dict[int, float]:
        """Seconds of the checkpoint of each preempted job."""
        return {job: self._cost_s("pause_s", job) for job in jobs}

    def save_s(self, job: int) -> float:
        """Seconds for which a job holds its GPUs after its last step."""
        return self._cost_s("save_s", job)

    def begin(self, run: Run, job: int, free_from: float) -> tuple[float, float]:
        """Instant of the first progress of a job after its start, and change of the overhead (s).

        ``free_from`` is the instant (s) from which no earlier holder uses the GPUs.
        """
        table = self._table
        overhead = self._overhead
        before = self._before_restart.get(job)
        if before is not None and before.place == self._place(run):
            # A job past its last step has no work left and only saves. Its progress starts at the
            # last step, so that the save does not begin anew.
            progress_from = max(free_from, before.progress_from)
            is_saving = before.last_step <= free_from
            return (before.last_step if is_saving else progress_from), 0.0
        resumes = table.first_start[job] < math.inf
        start_s = self._cost_s("resume_s" if resumes else "start_s", job)
        begin = free_from + start_s
        self._loaded_at[job] = begin
        if run.hosts:
            self._host_nodes[job] = self._gang_nodes.of(run.hosts[0])
        awaited_hosts = run.hosts if overhead.follows else ()
        for host in awaited_hosts:
            last_step = self._last_step(host)
            saved = last_step + self.save_s(host)
            begin = max(begin, saved, last_step + self._cost_s("handover_s", job))
        change_s = 0.0 if before is None else before.change_at_stop
        return begin, start_s + change_s

    def _cost_s(self, method: str, job: int) -> float:
        """Seconds of a cost of a job, named by its method of the overhead."""
        return cost_of(self._overhead, method, self._table.ids[job], self._table, job)

    def _place(self, run: Run) -> _Place:
        """GPU type and nodes of a gang; without own GPUs, the nodes of its first host.

        A placement that only counts GPUs has no nodes. Then all GPUs of a type are one place.
        """
        leader = run.jobs[0]
        return run.gpu_type, self._gang_nodes.of(leader) or self._host_nodes.get(leader, ())

    def _last_step(self, job: int) -> float:
        """Instant (s) at which a running job completes its work, if it runs on at its rate."""
        table = self._table
        return table.progress_from[job] + table.work_left[job] / table.rate[job]
