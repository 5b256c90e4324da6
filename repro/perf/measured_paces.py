"""Iteration times measured on a testbed, relative to those of the trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from repro.base.errors import ParamError, near
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Paced
from repro.model.records import Nodes
from repro.perf.muri_models import nearest_count


@dataclass(frozen=True)
class MeasuredPaces:
    """Jobs alone take a measured iteration time; groups follow another performance model.

    Parameters
    ----------
    ratios : mapping
        Measured iteration time over that of the trace, by model and number of GPUs. A number of
        GPUs that is not listed has the ratio of the nearest one (ties: the larger number).
    groups : Paced, optional
        Model of the jobs that share GPUs; None: there are none.

    Examples
    --------
    >>> MeasuredPaces({("bert", 1): 1.02, ("bert", 8): 1.1}).ratio("bert", 4)
    1.02
    """

    ratios: Mapping[tuple[str, int], float]
    groups: Paced | None = None

    #: rates are the same on any nodes
    reads_nodes: ClassVar[bool] = False

    def ratio(self, model: str, gpus: int) -> float:
        """Measured iteration time of a model on these GPUs over that of the trace."""
        counts = [count for name, count in self.ratios if name == model]
        if not counts:
            names = sorted({name for name, _ in self.ratios})
            raise ParamError(f"no measured pace of model {model!r}{near(model, names)}")
        return self.ratios[model, nearest_count(counts, gpus)]

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Rate of each member, (members,): `JobTable.solo` over the seconds that `paces` gives.

        `JobTable.solo` has the seconds per unit of work of a job alone, by trace and rule set.
        """
        pairs = zip(run.jobs, self.paces(table, run, nodes), strict=True)
        return [table.solo[job] / seconds for job, seconds in pairs]

    def paces(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Seconds per unit of work of each member, (members,)."""
        if len(run.jobs) > 1:
            if self.groups is None:
                raise ParamError("jobs share GPUs; give the model of groups (groups=...)")
            return list(self.groups.paces(table, run, nodes))
        job = run.jobs[0]
        models = table.named_models("a table of measured paces")
        seconds = table.solo[job]
        if table.counts_iterations:
            # the time in the trace, without the factor of `Rules.iterations`
            seconds = float(table.column("iteration_time")[job])
        ratio = self.ratio(models[job], table.gpus[job])
        return [seconds * ratio * table.gpus[job] / run.gpus]
