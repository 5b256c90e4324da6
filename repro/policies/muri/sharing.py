"""Speed of opportunistic jobs on the GPUs of guaranteed jobs (AntMan).

Muri, SIGCOMM 2022, public simulator (``antman_calc_iter_time``). An opportunistic job has stages
t_0, t_1, t_2 (data, GPU, network). Its host c, a guaranteed job, has c_0, c_1, c_2. The
opportunistic job uses a resource only during the other two stages of c. One of its iterations takes
m iterations of c:

    m = floor(t_0 / (c_1 + c_2)); x = t_0 mod (c_1 + c_2)
    if x > 0: m += 1 and t_1 -= min(t_1, c_2, c_1 + c_2 - x)
    m += floor(t_1 / (c_0 + c_2)); y = t_1 mod (c_0 + c_2)
    if y > 0: m += 1 and, if y < c_0, t_2 -= min(t_2, c_0 + c_1 - y)
    m += floor(t_2 / (c_0 + c_1)); z = t_2 mod (c_0 + c_1)
    if z > c_0: m += 1

A data stage that ends early leaves time for part of the GPU stage in the same iteration of c. A GPU
stage that ends early does so for the network stage. The iteration time is

    tau = max(own solo time, max over c of m tau_c).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from repro.base.errors import PolicyError, TraceError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.perf.stages import MERGED_COLUMNS, ThreeStages


@lru_cache(maxsize=100_000)
def host_iterations(stages: ThreeStages, host_stages: ThreeStages) -> int:
    """Count the iterations m of a host per iteration of an opportunistic job on its GPUs.

    Stages are times alone (s) on data (storage and CPU), GPU and network. See the module for m.
    """
    data, gpu, network = stages
    host_data, host_gpu, host_network = host_stages
    data_gap = host_gpu + host_network
    gpu_gap = host_data + host_network
    network_gap = host_data + host_gpu
    if not (data_gap and gpu_gap and network_gap):
        raise TraceError(
            f"a job with stage times (data, GPU, network) {host_stages} leaves no time in one of "
            f"them, so no other job can share its GPUs; give at least two stages a time above 0"
        )
    count = math.floor(data / data_gap)
    excess = data % data_gap
    if excess > 0:
        count += 1
        gpu -= min(gpu, host_network, data_gap - excess)
    count += math.floor(gpu / gpu_gap)
    excess = gpu % gpu_gap
    if excess > 0:
        count += 1
        if excess < host_data:
            network -= min(network, network_gap - excess)
    count += math.floor(network / network_gap)
    return count + (network % network_gap > host_data)


@dataclass(frozen=True)
class Sharing:
    """Performance model in which guaranteed jobs run as if alone, opportunistic jobs in the gaps.

    An opportunistic job takes tau seconds per iteration, see the module. A job without hosts runs
    at nominal speed. Only hosts and jobs with hosts need stage times and ``iteration_time``.
    """

    #: rates are the same on any nodes
    reads_nodes: ClassVar[bool] = False

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Rate of a single job."""
        if len(run.jobs) > 1:
            raise PolicyError(
                f"jobs {[table.ids[job] for job in run.jobs]} form a group; this performance "
                f"model has rates of single jobs and their hosts: name the hosts in `hosts`"
            )
        job = run.jobs[0]
        nominal = run.gpus / table.gpus[job]
        if not run.hosts:
            return [nominal]
        period = self._period(table, run)
        return [nominal * _alone(table, job) / period]

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Seconds of a unit of work of a single job.

        If the unit is an iteration, the time of a job with hosts is tau, exact to the last bit.
        """
        if run.hosts and table.counts_iterations and run.gpus == table.gpus[run.jobs[0]]:
            return [self._period(table, run)]
        return [table.solo[run.jobs[0]] / rate for rate in self.rates(table, run, nodes)]

    def _period(self, table: JobTable, run: Run) -> float:
        """Seconds per iteration (tau) of a job with hosts."""
        job = run.jobs[0]
        stages = self._stages(table, job)
        period = _alone(table, job)
        for host in run.hosts:
            iterations = host_iterations(stages, self._stages(table, host))
            period = max(period, iterations * _alone(table, host))
        return period

    def _stages(self, table: JobTable, job: int) -> ThreeStages:
        """Stage times of a job (s)."""
        data, gpu, network = (self._stage(table, job, name) for name in MERGED_COLUMNS)
        return data, gpu, network

    def _stage(self, table: JobTable, job: int, name: str) -> float:
        """Time of one stage of a job (s)."""
        seconds = math.nan
        if name in table.frame:
            # A job that shares no GPUs may lack stage times.
            seconds = float(table.column(name, gaps=True)[job])
        if math.isnan(seconds):
            raise _missing(table, job, name)
        return seconds


def _alone(table: JobTable, job: int) -> float:
    """Seconds per iteration of a job alone."""
    alone = table.iteration_s(job)
    if not alone > 0:
        raise _missing(table, job, "iteration_time")
    return alone


def _missing(table: JobTable, job: int, column: str) -> TraceError:
    """Error for a job that shares GPUs without a value in a column."""
    return TraceError(
        f"{table.source}: {table.row_label(job)} is to share GPUs, but has no {column}; give "
        f"{', '.join(MERGED_COLUMNS)} and iteration_time in seconds, or make no job opportunistic"
    )
