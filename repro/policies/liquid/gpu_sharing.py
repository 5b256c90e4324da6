"""Speed of jobs that share a GPU, from their utilisation alone (Liquid).

Liquid, TPDS 2022, section 6.2. The slow-down is ours, fitted to the published times of Figure 15:
jobs of mean GPU utilisations u_i (%) that share a GPU of capacity c take

    max(1, sum_i u_i / c) + offset

times as long as alone.
"""

from dataclasses import dataclass
from typing import ClassVar

from repro.base.errors import TraceError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes

#: Offset of a pair, between the fits of published pairs on K80 and on T4.
DEFAULT_OFFSET = 0.24


def slow_down(total_util: float, offset: float = DEFAULT_OFFSET, capacity: float = 100.0) -> float:
    """Time of jobs on a shared GPU over their time alone: max(1, U / capacity) + offset.

    ``total_util`` is U, the sum of their mean GPU utilisations alone (%).

    >>> slow_down(70.6), slow_down(150.0)
    (1.24, 1.74)
    """
    return max(1.0, total_util / capacity) + offset


@dataclass(frozen=True)
class ByUtilisation:
    """Performance model of groups: `slow_down` of the trace column ``gpu_util`` (%)."""

    offset: float = DEFAULT_OFFSET
    capacity: float = 100.0
    #: measured throughputs of a pair take the place of this model (`repro.perf.OnTypes`)
    yields_to_pairs: ClassVar[bool] = True

    #: rates are the same on any nodes
    reads_nodes: ClassVar[bool] = False

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Rate of every member, relative to running alone."""
        if len(run.jobs) == 1:
            return [1.0]
        if "gpu_util" not in table.frame:
            raise TraceError(
                f"job {table.ids[run.jobs[0]]!r} is to share a GPU, but the trace has no "
                f"'gpu_util'; give the mean GPU utilisation of every job alone in %"
            )
        total_util = sum(float(table.column("gpu_util")[job]) for job in run.jobs)
        return [1.0 / slow_down(total_util, self.offset, self.capacity)] * len(run.jobs)
