"""Seconds that starts, preemptions and changes of company cost a job."""

import math
from collections.abc import Iterable, Mapping

from repro.engine.gang_nodes import GangNodes
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Overhead
from repro.model.records import Nodes


class OverheadCosts:
    """Costs of starts and preemptions under an overhead.

    Parameters
    ----------
    table : JobTable
        Jobs of the run.
    overhead : Overhead
        Seconds of starts, saves, pauses and handovers.
    gangs : GangNodes
        Nodes of the gangs that hold GPUs.
    """

    def __init__(self, table: JobTable, overhead: Overhead, gangs: GangNodes) -> None:
        self._table = table
        self._overhead = overhead
        self._gangs = gangs
        #: of a guest: nodes of its first host
        self._host_nodes: dict[int, Nodes] = {}
        #: of jobs that stop and start at one instant: nodes, start of progress and last step (s)
        self._before: dict[int, tuple[Nodes, float, float]] = {}

    def note_restarts(self, jobs: Iterable[int], runs: Mapping[int, Run]) -> None:
        """Note where jobs are that stop and start again at this instant.

        Under an overhead with ``stays`` a job goes on if its new run has the same nodes.
        """
        self._before.clear()
        if not self._overhead.stays:
            return
        table = self._table
        for job in jobs:
            run = runs[job]
            if not run.waits:
                self._before[job] = (self._nodes(run), table.since[job], self._last_step(job))

    def pauses(self, jobs: Iterable[int]) -> dict[int, float]:
        """Seconds of the checkpoint of each job."""
        table = self._table
        return {job: self._overhead.pause_s(table, job) for job in jobs}

    def save_s(self, job: int) -> float:
        """Seconds a job holds its GPUs after its last step."""
        return self._overhead.save_s(self._table, job)

    def begin(self, run: Run, job: int, clean: float) -> tuple[float, float]:
        """Instant from which a job that starts will progress (s), and its overhead (s).

        ``clean`` is the instant (s) at which the former holders of the GPUs have left them.
        """
        table = self._table
        overhead = self._overhead
        nodes, since, last_step = self._before.get(job, (None, 0.0, math.inf))
        if nodes == self._nodes(run):
            # a job that saves already has no step left to make
            return (last_step if last_step <= clean else max(clean, since)), 0.0
        resumes = table.first_start[job] < math.inf
        start_s = (overhead.resume_s if resumes else overhead.start_s)(table, job)
        cost_s = start_s + overhead.save_s(table, job)
        begin = clean + start_s
        if run.hosts:
            self._host_nodes[job] = self._gangs.of(run.hosts[0])
        for host in run.hosts if overhead.follows else ():
            last_step = self._last_step(host)
            saved = last_step + overhead.save_s(table, host)
            begin = max(begin, saved, last_step + overhead.handover_s(table, job))
        return begin, cost_s

    def _nodes(self, run: Run) -> Nodes:
        """Nodes of a gang; a guest without own GPUs has those of its first host."""
        leader = run.jobs[0]
        return self._gangs.of(leader) or self._host_nodes.get(leader, ())

    def _last_step(self, job: int) -> float:
        """Instant of the last step of a running job (s)."""
        table = self._table
        return table.since[job] + table.work_left[job] / table.rate[job]
