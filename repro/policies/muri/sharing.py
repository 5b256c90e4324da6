"""Speed of a job on GPUs that belong to other jobs and lend only the time their stages leave."""

import math
from dataclasses import dataclass
from functools import lru_cache

from repro.base.errors import PolicyError, TraceError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.perf.stages import MERGED_COLUMNS, ThreeStages


@lru_cache(maxsize=100_000)
def host_iterations(guest: ThreeStages, host: ThreeStages) -> int:
    """Return how many iterations of the host one iteration of the guest beside it takes.

    Stages are (data, GPU, network) alone (s). The guest uses a resource only while the host is in
    its other two stages. Where its data stage ends early in such a gap, part of its GPU stage still
    runs in the same iteration of the host, and likewise its network stage after the GPU stage
    (``antman_calc_iter_time`` of Muri's simulator).
    """
    data, gpu, network = guest
    host_data, host_gpu, host_network = host
    gaps = (host_gpu + host_network, host_data + host_network, host_data + host_gpu)
    if not all(gaps):
        raise TraceError(
            f"a job with stage times (data, GPU, network) {host} leaves no time in one of them, so "
            f"no other job can share its GPUs; give at least two stages a time above 0"
        )
    count = math.floor(data / gaps[0])
    over = data % gaps[0]
    if over > 0:
        count += 1
        gpu -= min(gpu, host_network, gaps[0] - over)
    count += math.floor(gpu / gaps[1])
    over = gpu % gaps[1]
    if over > 0:
        count += 1
        if over < host_data:
            network -= min(network, gaps[2] - over)
    count += math.floor(network / gaps[2])
    return count + (network % gaps[2] > host_data)


@dataclass(frozen=True)
class Sharing:
    """Performance model of guests: owners run as if alone, guests in the gaps owners leave.

    A guest takes max(its own iteration time, `host_iterations` times the iteration time of the
    host) per iteration, the maximum over the jobs whose GPUs it uses. Jobs that share with nobody
    run at nominal speed; only a job that shares GPUs needs stage times and ``iteration_time``.
    """

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return the guest's speed relative to running alone."""
        if len(run.jobs) > 1:
            raise PolicyError(
                f"jobs {[table.ids[job] for job in run.jobs]} form a group; this performance "
                f"model knows only owners and guests: name the owners in `hosts`"
            )
        job = run.jobs[0]
        nominal = run.gpus / table.gpus[job]
        if not run.hosts:
            return [nominal]
        period = self._period(table, run)
        return [nominal * _alone(table, job) / period]

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return the seconds of one iteration of a guest, to the last bit."""
        if run.hosts and table.counts_iterations and run.gpus == table.gpus[run.jobs[0]]:
            return [self._period(table, run)]
        return [table.solo[run.jobs[0]] / rate for rate in self.rates(table, run, nodes)]

    def _period(self, table: JobTable, run: Run) -> float:
        """Return the seconds of one iteration of a guest beside its hosts."""
        guest = self._stages(table, run.jobs[0])
        period = _alone(table, run.jobs[0])
        for host in run.hosts:
            rounds = host_iterations(guest, self._stages(table, host))
            period = max(period, rounds * _alone(table, host))
        return period

    def _stages(self, table: JobTable, job: int) -> ThreeStages:
        """Return the stage times of a job (s)."""
        data, gpu, network = (self._stage(table, job, name) for name in MERGED_COLUMNS)
        return data, gpu, network

    def _stage(self, table: JobTable, job: int, name: str) -> float:
        """Return the time of one stage of a job (s)."""
        seconds = math.nan
        if name in table.frame:
            # jobs that share with nobody need no stage times
            seconds = float(table.column(name, gaps=True)[job])
        if math.isnan(seconds):
            raise _needs(table, job, name)
        return seconds


def _alone(table: JobTable, job: int) -> float:
    """Return the iteration time of a job alone (s)."""
    alone = table.iteration_s(job)
    if not alone > 0:
        raise _needs(table, job, "iteration_time")
    return alone


def _needs(table: JobTable, job: int, column: str) -> TraceError:
    """Return the error of a job that lacks a column it needs to share GPUs."""
    return TraceError(
        f"{table.source}: {table.row(job)} is to share GPUs, but has no {column}; give "
        f"{', '.join(MERGED_COLUMNS)} and iteration_time in seconds, or make no job opportunistic"
    )
