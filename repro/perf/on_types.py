"""Speed of jobs on unequal GPU types under a performance model that knows no types."""

from collections.abc import Sequence
from dataclasses import dataclass

from repro.base.errors import ParamError, PolicyError
from repro.base.typing import Floats
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Paced, Performance, Renewing, paces_of, rates_of, reads_nodes
from repro.model.records import Nodes
from repro.perf.throughput import ThroughputTable


@dataclass(frozen=True)
class OnTypes:
    """Performance model of jobs on GPU types: the rate of a base model times the speed of the type.

    rate = rate of ``base`` * T[model, type] / T[model, reference], with the throughput T (steps/s)

    The members of a group keep their common period, and the slowest member sets the factor of the
    group. Muri's stages thus all grow by the same factor on a slower GPU. If the base sets
    ``yields_to_pairs`` and the table has pairs, the table gives the rates of two jobs on the same
    GPUs.

    Parameters
    ----------
    base : Performance
        A model without GPU types, such as `repro.perf.Interleaving` or `repro.perf.SpeedUp`.
    throughputs : ThroughputTable
        Steps per second of each model on each GPU type.

    Raises
    ------
    ParamError
        If ``base`` changes rates while jobs run.

    Examples
    --------
    >>> from repro.perf import Interleaving
    >>> table = ThroughputTable.of({"a3c": {"v100": 40, "k80": 10}}, "v100")
    >>> OnTypes(Interleaving(), table).speeds("a3c", 1, ("k80", "v100"))
    [10, 40]
    """

    base: Performance
    throughputs: ThroughputTable

    def __post_init__(self) -> None:
        if isinstance(self.base, Renewing):
            raise ParamError(
                f"{type(self.base).__name__} changes rates while jobs run, which does not go with "
                f"a throughput table; leave out the table, or use a cluster without GPU types"
            )

    @property
    def reads_nodes(self) -> bool:
        """Whether rates depend on the nodes of a gang."""
        return reads_nodes(self.base) or reads_nodes(self.throughputs)

    @property
    def reference(self) -> str:
        """GPU type to which the durations of the trace refer."""
        return self.throughputs.reference

    def speeds(self, model: str | None, gpus: int, gpu_types: Sequence[str | None]) -> list[float]:
        """Throughput of a gang on each GPU type (steps/s), (GPU types,)."""
        return self.throughputs.speeds(model, gpus, gpu_types)

    def pair_speeds(
        self,
        model_a: str | None,
        gpus_a: int,
        model_b: str | None,
        gpus_b: int,
        gpu_types: Sequence[str | None],
    ) -> Floats:
        """Throughput of two jobs on the same GPUs (steps/s), (2, GPU types)."""
        return self.throughputs.pair_speeds(model_a, gpus_a, model_b, gpus_b, gpu_types)

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Rate of each member, relative to running alone on the reference type."""
        has_pairs = bool(self.throughputs.pairs) and getattr(self.base, "yields_to_pairs", False)
        if has_pairs and len(run.jobs) == 2:
            return self.throughputs.rates(table, run, nodes)
        factor = self._factor(table, run, nodes)
        return [rate * factor for rate in rates_of(self.base, table, run, nodes)]

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Seconds of a unit of work for each member."""
        if not isinstance(self.base, Paced):
            rates = self.rates(table, run, nodes)
            return [table.solo[job] / rate for job, rate in zip(run.jobs, rates, strict=True)]
        factor = self._factor(table, run, nodes)
        return [seconds / factor for seconds in paces_of(self.base, table, run, nodes)]

    def _factor(self, table: JobTable, run: Run, nodes: Nodes) -> float:
        """Speed of the slowest member on the GPU type of its gang, over its reference speed."""
        factors: list[float] = []
        for job in run.jobs:
            # the rate of the base already depends on the GPUs held, so the factor is that of a job
            # which holds its demand
            gang = Run((job,), table.gpus[job], run.gpu_type)
            factors += self.throughputs.rates(table, gang, nodes)
            if not factors[-1] > 0:
                raise PolicyError(
                    f"job {table.ids[job]!r} runs on GPUs of type {run.gpu_type!r}, on which the "
                    f"throughput table has 0 steps/s for {table.models[job]!r}; give it GPUs of "
                    f"another type"
                )
        return min(factors)
