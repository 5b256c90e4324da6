"""Rates of the jobs of a gang under the performance model.

A gang is one job, or a group of jobs on the same GPUs.
"""

from collections.abc import Sequence

from repro.base.errors import ParamError, PolicyError
from repro.model.cluster.spec import Cluster
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Paced, Performance, paces_of, rates_of
from repro.model.records import Nodes
from repro.model.speeds import ByType
from repro.perf.slowdown import base_of


class RunRates:
    """Rates of gangs under the performance model of a simulation.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    cluster : Cluster
        Cluster of the simulation.
    policy : str
        Name of the policy, for messages.
    perf : Performance or None
        The performance model. None: the rate of a job is its number of GPUs over its demand.
    needs_unit_s : bool
        Ask a model that is `Paced` for the seconds of a unit of work instead of the rates.
    """

    def __init__(
        self,
        table: JobTable,
        cluster: Cluster,
        policy: str,
        perf: Performance | None,
        *,
        needs_unit_s: bool,
    ) -> None:
        self._table = table
        self._cluster = cluster
        self._policy = policy
        self._perf = perf
        self._paced = perf if needs_unit_s and isinstance(perf, Paced) else None
        self._by_type = isinstance(base_of(perf), ByType)

    def of(self, run: Run, nodes: Nodes) -> tuple[Sequence[float], Sequence[float]]:
        """Speed of every job of a gang relative to running alone, and seconds per unit of its work.

        The seconds are empty unless ``needs_unit_s`` is set and the model is `Paced`.
        """
        table = self._table
        if self._perf is None:
            if len(run.jobs) > 1:
                raise PolicyError(
                    f"policy {self._policy!r} groups jobs; simulate it with a performance model "
                    f"(perf=...) that has the rates of grouped jobs"
                )
            return (run.gpus / table.gpus[run.jobs[0]],), ()
        if self._by_type and run.gpu_type is None:
            raise self._untyped()
        if self._paced is None:
            return rates_of(self._perf, table, run, nodes), ()
        unit_s = paces_of(self._paced, table, run, nodes)
        pairs = zip(run.jobs, unit_s, strict=True)
        return [table.solo[job] / seconds for job, seconds in pairs], unit_s

    def positive(self, job: int, rate: float) -> float:
        """Rate of a job, after a check that it is a positive number."""
        if not rate > 0:
            raise PolicyError(
                f"policy {self._policy!r} runs job {self._table.ids[job]!r} at rate {rate:g}"
            )
        return rate

    def _untyped(self) -> ParamError:
        """Error of a gang under a throughput table on a cluster without GPU types."""
        return ParamError(
            f"a throughput table has speeds by GPU type, but {self._cluster} names no types; "
            f"give a cluster of types (such as 2xv100,2xk80), or leave the table out"
        )
