"""Training with parameter servers: how long it takes, given where the tasks sit (Liquid)."""

import itertools
import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from repro.base.errors import ParamError, TraceError, refuse_unknown
from repro.files.tables import ModelTable
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes

#: Performance models by name, see `named`.
TIMES = ("measured", "k80", "t4")
_PLANS = ModelTable("liquid_plans.csv", ("model", "mode", "plan", "duration_s"))
_LINKS = ("pair_mb_s", "node_mb_s", "local_mb_s")
_NETWORK = ("model_mb", "images_per_s", "exposed", "fixed_s")
_MODELS = ModelTable("liquid_models.csv", ("gpu", "model", *_NETWORK, *_LINKS))


def pattern(tasks: Sequence[int], num_ps: int = 1) -> str:
    """Return who shares a node with whom, as the public simulator of Liquid writes it."""
    held: dict[int, list[str]] = defaultdict(list)
    for task, node in enumerate(tasks):
        held[node].append("p" if task < num_ps else "w")
    names = sorted(held.values(), key=lambda roles: (-roles.count("p"), -roles.count("w")))
    return "_".join("".join(roles) for roles in names)


class PlanTimes:
    """A model of the run time of a plan; a job takes that long whatever its trace says."""

    #: batch size and iterations make no difference
    sizeless: ClassVar[bool] = False

    def run_s(
        self,
        model: str,
        tasks: Sequence[int],
        batch: float = math.nan,
        iterations: float = math.nan,
        num_ps: int = 1,
    ) -> float:
        """Return the time of a whole run (s); ``tasks`` are nodes, parameter servers first."""
        return self._run_s(model, tasks, num_ps, batch, iterations)

    @abstractmethod
    def _run_s(self, model: str, tasks: Sequence[int], num_ps: int, *sizes: float) -> float: ...

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return the duration in the trace over the time of the plan held."""
        job = run.jobs[0]
        if len(run.jobs) > 1 or not run.tasks:
            raise ParamError(
                f"job {table.ids[job]!r}: a parameter-server model needs to know the node of "
                f"every task of one job; use a policy that names them (Run.tasks)"
            )
        num_ps = num_servers(len(run.tasks))
        if "num_ps" in table.frame:
            num_ps = int(table.column("num_ps")[job])
        batch = math.nan
        iterations = math.nan
        if not self.sizeless:
            batch, iterations = (_needed(table, job, name) for name in ("batch_size", "iterations"))
        model = table.named_models("a model of run times")[job]
        seconds = self.run_s(model, run.tasks, batch, iterations, num_ps)
        return [table.duration[job] / seconds]


@dataclass(frozen=True)
class MeasuredPlans(PlanTimes):
    """Looks the time of a placement plan up in a table: model to `pattern` to run time (s)."""

    seconds: Mapping[str, Mapping[str, float]]

    sizeless = True

    def _run_s(self, model: str, tasks: Sequence[int], num_ps: int, *sizes: float) -> float:
        row = self.seconds.get(model, {})
        plan = pattern(tasks, num_ps)
        if plan not in row:
            raise ParamError(
                f"no measured time for {model!r} placed as {plan!r}; measured: "
                f"{', '.join(row or self.seconds) or 'nothing'}"
            )
        return row[plan]


@dataclass(frozen=True)
class TrainedModel:
    """What the iteration model needs to know of a network."""

    #: size of the parameters (MB); a worker pushes and pulls that much per iteration
    model_mb: float
    #: compute rate of one worker
    images_per_s: float
    #: share of the synchronisation that computation does not hide (e)
    exposed: float = 1.0
    #: launch and save time of a run (s)
    fixed_s: float = 0.0


@dataclass(frozen=True)
class IterationModel(PlanTimes):
    """T = T_l + T_sa + N (T_t + T_sy): compute time plus the slowest of the links in use.

    ``pair_mb_s``, ``node_mb_s`` and ``local_mb_s`` are the bandwidths between two nodes, of one
    node to all others, and inside a node (MB/s, in and out together).

    Liquid, TPDS 2022, Eq 1; the network terms are ours, fitted to its Figures 1b and 6.

    Examples
    --------
    >>> vgg = TrainedModel(model_mb=553, images_per_s=35.4, fixed_s=30)
    >>> model = IterationModel({"vgg16": vgg}, pair_mb_s=463, node_mb_s=798, local_mb_s=1487)
    >>> [round(model.run_s("vgg16", plan, 32, 210)) for plan in [(0, 0, 0), (0, 1, 2)]]
    [532, 802]
    """

    models: Mapping[str, TrainedModel]
    pair_mb_s: float
    node_mb_s: float
    local_mb_s: float

    def sync_s(self, model_mb: float, tasks: Sequence[int], num_ps: int = 1) -> float:
        """Return the time to move the parameters of one iteration over the slowest link (s).

        One worker without a server has nothing to move.
        """
        servers = tasks[:num_ps]
        workers = tasks[num_ps:]
        if len(workers) == 1 and not servers:
            return 0.0
        if not servers or not workers:
            raise ParamError(f"tasks {tuple(tasks)}: need a parameter server and a worker")
        volume = 2 * model_mb / num_ps
        bandwidth = {"local": self.local_mb_s, "pair": self.pair_mb_s, "node": self.node_mb_s}
        moved: dict[tuple[str, frozenset[int]], float] = defaultdict(float)
        for server, worker in itertools.product(servers, workers):
            both = frozenset((server, worker))
            moved["local" if server == worker else "pair", both] += volume
            for node in both if server != worker else ():
                moved["node", frozenset((node,))] += volume
        return max(mb / bandwidth[link] for (link, _), mb in moved.items())

    def iteration_s(
        self, model: str, tasks: Sequence[int], batch: float, num_ps: int = 1
    ) -> tuple[float, float]:
        """Return the time an iteration computes, and the time it then waits for parameters (s)."""
        known = self._known(model)
        sync = known.exposed * self.sync_s(known.model_mb, tasks, num_ps)
        return batch / known.images_per_s, sync

    def _run_s(self, model: str, tasks: Sequence[int], num_ps: int, *sizes: float) -> float:
        batch, iterations = sizes
        per_iteration = sum(self.iteration_s(model, tasks, batch, num_ps))
        return self._known(model).fixed_s + iterations * per_iteration

    def _known(self, model: str) -> TrainedModel:
        refuse_unknown("no parameters for model", [model], self.models)
        return self.models[model]


def named(name: str) -> PlanTimes:
    """Return the plans that the public simulator holds (``measured``), or the model of a GPU type.

    Examples
    --------
    >>> named("measured").run_s("vgg16", (0, 0, 0))
    510.0
    >>> round(named("t4").run_s("vgg16", (0, 0, 1), batch=12, iterations=260))
    458
    """
    if name == "measured":
        plans = _PLANS.frame.dropna(subset="plan").astype({"duration_s": float}).groupby("model")
        return MeasuredPlans(
            {str(model): dict(rows[["mode", "duration_s"]].to_numpy()) for model, rows in plans}
        )
    table = _MODELS.frame
    refuse_unknown("there are no times", [name], TIMES)
    table = table[table["gpu"] == name].set_index("model")
    networks = table[list(_NETWORK)].astype(float).T
    models = {str(model): TrainedModel(*network) for model, network in networks.items()}
    return IterationModel(models, *table[list(_LINKS)].iloc[0].astype(float))


def num_servers(gpus: int) -> int:
    """Return the parameter servers of a gang whose trace does not say: one, if it is no single."""
    return int(gpus > 1)


def _needed(table: JobTable, job: int, name: str) -> float:
    value = math.nan
    if name in table.frame:
        value = float(table.column(name, gaps=True)[job])
    if not value > 0:
        raise TraceError(
            f"{table.source}: {table.row(job)} has no {name}; the iteration model needs a positive "
            f"value in that column"
        )
    return value
