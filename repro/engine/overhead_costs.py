"""Seconds that a job loses by starts, by preemptions and by changes of its group."""

import math
from collections.abc import Iterable, Mapping

from repro.base.errors import ParamError
from repro.engine.gang_nodes import GangNodes
from repro.files.checks import shown
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Overhead
from repro.model.records import Nodes


def checked_cost(overhead: Overhead, method: str, seconds: float, job_id: object) -> float:
    """Cost of a job (s), which a method of an overhead gave, after a check of its value.

    Raises
    ------
    ParamError
        If the cost is no number, negative or infinite.
    """
    try:
        is_accepted = 0 <= seconds < math.inf
    except (TypeError, ValueError):
        is_accepted = False
    if not is_accepted:
        raise ParamError(
            f"overhead {type(overhead).__name__}: `{method}` is {shown(repr(seconds))} for job "
            f"{job_id!r}; give a finite number of seconds, 0 or more"
        )
    return seconds


def start_costs(overhead: Overhead, table: JobTable) -> list[float]:
    """Cost of the first start of each job (s); ParamError if `checked_cost` refuses one."""
    costs_s = (overhead.start_s(table, job) for job in range(table.count))
    pairs = zip(costs_s, table.ids, strict=True)
    return [checked_cost(overhead, "start_s", seconds, job_id) for seconds, job_id in pairs]


#: GPU type and nodes of a gang.
_Place = tuple[str | None, Nodes]


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
    """

    def __init__(self, table: JobTable, overhead: Overhead, gang_nodes: GangNodes) -> None:
        self._table = table
        self._overhead = overhead
        self._gang_nodes = gang_nodes
        #: nodes of the first host of each job that started with hosts
        self._host_nodes: dict[int, Nodes] = {}
        #: job that stops and starts again at this instant -> its place, the instant from which it
        #: progressed (s), and the predicted instant of its last step (s). All three are as before
        #: the stop.
        self._before_restart: dict[int, tuple[_Place, float, float]] = {}

    def note_restarts(self, jobs: Iterable[int], runs: Mapping[int, Run]) -> None:
        """Note the places and progress of jobs that stop and start again at this instant.

        Under an overhead with ``stays`` a job whose new gang has the same place is not charged a
        start.
        """
        self._before_restart.clear()
        if not self._overhead.stays:
            return
        table = self._table
        for job in jobs:
            run = runs[job]
            if not run.waits:
                last_step = self._last_step(job)
                self._before_restart[job] = (self._place(run), table.progress_from[job], last_step)

    def pauses(self, jobs: Iterable[int]) -> dict[int, float]:
        """Seconds of the checkpoint of each preempted job."""
        return {job: self._cost_s("pause_s", job) for job in jobs}

    def save_s(self, job: int) -> float:
        """Seconds for which a job holds its GPUs after its last step."""
        return self._cost_s("save_s", job)

    def begin(self, run: Run, job: int, free_from: float) -> tuple[float, float]:
        """Instant of the first progress of a job after its start (s), and cost of the start (s).

        ``free_from`` is the instant (s) from which no earlier holder uses the GPUs.
        """
        table = self._table
        overhead = self._overhead
        place, old_progress_from, last_step = self._before_restart.get(job, (None, 0.0, math.inf))
        if place == self._place(run):
            # A job past its last step has no work left and only saves. Its progress starts at the
            # last step, so that the save does not begin anew.
            progress_from = max(free_from, old_progress_from)
            return (last_step if last_step <= free_from else progress_from), 0.0
        resumes = table.first_start[job] < math.inf
        start_s = self._cost_s("resume_s" if resumes else "start_s", job)
        begin = free_from + start_s
        if run.hosts:
            self._host_nodes[job] = self._gang_nodes.of(run.hosts[0])
        awaited_hosts = run.hosts if overhead.follows else ()
        for host in awaited_hosts:
            last_step = self._last_step(host)
            saved = last_step + self.save_s(host)
            begin = max(begin, saved, last_step + self._cost_s("handover_s", job))
        return begin, start_s

    def _cost_s(self, method: str, job: int) -> float:
        """Seconds of a cost of a job, named by its method of the overhead."""
        seconds = getattr(self._overhead, method)(self._table, job)
        return checked_cost(self._overhead, method, seconds, self._table.ids[job])

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
