"""Run times of parameter-server jobs by the nodes of their tasks (Liquid)."""

import itertools
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from repro.base.errors import ParamError, TraceError, refuse_unknown
from repro.files.tables import ModelTable
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.records import Nodes
from repro.perf.model_names import further_names

#: Names of the performance models of `named`.
RUN_TIME_MODELS = ("measured", "k80", "t4")
_PLANS = ModelTable("liquid_plans.csv", ("model", "mode", "plan", "duration_s"))
_LINKS = ("pair_mb_s", "node_mb_s", "local_mb_s")
_CONSTANTS = ("model_mb", "images_per_s", "exposed", "fixed_s")
_MODELS = ModelTable("liquid_models.csv", ("gpu", "model", *_CONSTANTS, *_LINKS))


def pattern(tasks: Sequence[int], num_ps: int = 1) -> str:
    """Roles per node, as Liquid's public simulator writes a plan: ``pw_w``, one word per node.

    ``tasks`` has the node of each task, parameter servers first.
    """
    roles_of: dict[int, list[str]] = defaultdict(list)
    for task, node in enumerate(tasks):
        roles_of[node].append("p" if task < num_ps else "w")
    nodes = sorted(roles_of.values(), key=lambda roles: (-roles.count("p"), -roles.count("w")))
    return "_".join("".join(roles) for roles in nodes)


class PlanTimes(ABC):
    """Model of the run time of a placement plan. This time replaces the duration in the trace.

    In a trace with the column ``iteration_time``, the duration of a job was computed from this
    column. The duration is then the run time with all tasks on one node. Another plan multiplies
    it by a ratio: run time of the plan over run time on one node, both of this model.
    """

    #: name of the table of these models in the map of names (`repro.perf.model_names`)
    table_name: ClassVar[str] = "liquid"
    #: whether run times do not depend on batch size and iterations
    ignores_batches: ClassVar[bool] = False

    #: further names of models, each with the name that the model has here
    names: Mapping[str, str]

    def own_name(self, model: str) -> str:
        """Name under which a model of a trace has run times here; by default the given name."""
        return self.names.get(model, model)

    def run_s(
        self,
        model: str,
        tasks: Sequence[int],
        batch: float = math.nan,
        iterations: float = math.nan,
        num_ps: int = 1,
    ) -> float:
        """Time of a whole run (s); ``tasks`` are nodes, parameter servers first."""
        return self._run_s(model, tasks, num_ps, batch, iterations)

    @abstractmethod
    def _run_s(
        self, model: str, tasks: Sequence[int], num_ps: int, batch: float, iterations: float
    ) -> float: ...

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Rate of a single job: its duration over the run time of the plan.

        In a trace with the column ``iteration_time``, it is the run time of the model with all
        tasks on one node over the run time of the plan.
        """
        job = run.jobs[0]
        if len(run.jobs) > 1 or not run.tasks:
            raise ParamError(
                f"job {table.ids[job]!r}: a parameter-server model needs the node of every task of "
                f"one job; use a policy that names them (Run.tasks)"
            )
        num_ps = default_num_ps(len(run.tasks))
        if "num_ps" in table.frame:
            num_ps = int(table.column("num_ps")[job])
        batch = math.nan
        iterations = math.nan
        if not self.ignores_batches:
            batch = _needed(table, job, "batch_size")
            iterations = _needed(table, job, "iterations")
        model = table.named_models("a model of run times")[job]
        try:
            seconds = self.run_s(model, run.tasks, batch, iterations, num_ps)
        except ParamError as error:
            raise ParamError(f"job {table.ids[job]!r}: {error}") from None
        if table.has("iteration_time"):
            table.read.add("iteration_time")
            on_one_node = (0,) * len(run.tasks)
            return [self.run_s(model, on_one_node, batch, iterations, num_ps) / seconds]
        return [table.duration[job] / seconds]


@dataclass(frozen=True)
class MeasuredPlans(PlanTimes):
    """Measured times of placement plans: model to `pattern` to run time (s).

    Parameters
    ----------
    seconds : mapping of str to mapping of str to float
        Model to plan to run time (s). A plan has a word per node, with a ``p`` per parameter server
        and a ``w`` per worker, such as ``pw_w``.
    names : mapping of str to str
        Further names of models, each with its name in ``seconds``.

    Examples
    --------
    >>> plans = MeasuredPlans({"vgg16": {"pww": 510.0, "pw_w": 540.0}})
    >>> plans.run_s("vgg16", (0, 0, 1))
    540.0
    """

    seconds: Mapping[str, Mapping[str, float]]
    names: Mapping[str, str] = field(default_factory=dict)

    ignores_batches = True

    def _run_s(
        self, model: str, tasks: Sequence[int], num_ps: int, batch: float, iterations: float
    ) -> float:
        row = self.seconds.get(self.own_name(model), {})
        plan = pattern(tasks, num_ps)
        if plan not in row:
            measured = f"plans of {model!r}: {', '.join(row)}"
            if not row:
                measured = f"models: {', '.join(self.seconds) or 'none'}"
            raise ParamError(
                f"no measured time for {model!r} placed as {plan!r}; measured {measured}"
            )
        return row[plan]


@dataclass(frozen=True)
class TrainedModel:
    """Constants of a trained model in the iteration model (Liquid, TPDS 2022, Eq 1).

    Parameters
    ----------
    model_mb : float
        Size of the parameters (MB). A worker pushes and pulls them in every iteration.
    images_per_s : float
        Throughput of the computation of one worker (images/s).
    exposed : float
        Part of the synchronisation that computation does not hide, 0 to 1.
    fixed_s : float
        Launch and save time of a job, T_l + T_sa (s).

    Examples
    --------
    >>> TrainedModel(model_mb=553, images_per_s=35.4, fixed_s=30).exposed
    1.0
    """

    model_mb: float
    images_per_s: float
    exposed: float = 1.0
    fixed_s: float = 0.0


@dataclass(frozen=True)
class IterationModel(PlanTimes):
    """Run time T = T_l + T_sa + N (T_t + T_sy) of launch, save and N iterations.

    An iteration computes for T_t and then synchronises for T_sy over the slowest link in use.
    Bandwidths count both directions together.

    In its methods, ``tasks`` are the nodes of the tasks, parameter servers first, ``num_ps`` is the
    number of parameter servers, ``model`` the name of a model, ``model_mb`` the size of its
    parameters (MB), and ``batch`` the batch size of a worker (images).

    Parameters
    ----------
    models : mapping of str to TrainedModel
        Constants of each model.
    pair_mb_s : float
        Bandwidth between two nodes (MB/s).
    node_mb_s : float
        Bandwidth of a node to all others (MB/s).
    local_mb_s : float
        Bandwidth inside a node (MB/s).
    names : mapping of str to str
        Further names of models, each with its name in ``models``.

    References
    ----------
    Liquid, TPDS 2022, Eq 1; the terms of the links are ours, fitted to its Figures 1b and 6.

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
    names: Mapping[str, str] = field(default_factory=dict)

    def sync_s(self, model_mb: float, tasks: Sequence[int], num_ps: int = 1) -> float:
        """Seconds to move the parameters of one iteration over the slowest link (T_sy).

        A single worker without a server moves nothing.
        """
        servers = tasks[:num_ps]
        workers = tasks[num_ps:]
        if len(workers) == 1 and not servers:
            return 0.0
        if not servers or not workers:
            raise ParamError(
                f"{len(servers)} parameter servers and {len(workers)} workers: give at least one "
                "of each (num_ps from 1 to num_gpus - 1)"
            )
        volume = 2 * model_mb / num_ps
        bandwidth = {"local": self.local_mb_s, "pair": self.pair_mb_s, "node": self.node_mb_s}
        moved: dict[tuple[str, frozenset[int]], float] = defaultdict(float)
        for server, worker in itertools.product(servers, workers):
            ends = frozenset((server, worker))
            if server == worker:
                moved["local", ends] += volume
                continue
            moved["pair", ends] += volume
            for node in ends:
                moved["node", frozenset((node,))] += volume
        return max(mb / bandwidth[link] for (link, _), mb in moved.items())

    def iteration_s(
        self, model: str, tasks: Sequence[int], batch: float, num_ps: int = 1
    ) -> tuple[float, float]:
        """Seconds an iteration computes, and seconds it then waits for parameters."""
        trained = self._model(model)
        sync = trained.exposed * self.sync_s(trained.model_mb, tasks, num_ps)
        return batch / trained.images_per_s, sync

    def _run_s(
        self, model: str, tasks: Sequence[int], num_ps: int, batch: float, iterations: float
    ) -> float:
        per_iteration = sum(self.iteration_s(model, tasks, batch, num_ps))
        return self._model(model).fixed_s + iterations * per_iteration

    def _model(self, model: str) -> TrainedModel:
        name = self.own_name(model)
        refuse_unknown("no iteration model for", [name], self.models)
        return self.models[name]


def named(name: str, *, relatives: bool = False) -> PlanTimes:
    """Make a performance model: ``measured`` plans, or the iteration model of a GPU type.

    The measured plans are from the table of Liquid's public simulator. With ``relatives``, further
    models of the map of names (`repro.perf.model_names`) have the times of their relatives.

    Examples
    --------
    >>> named("measured").run_s("vgg16", (0, 0, 0))
    510.0
    >>> round(named("t4").run_s("vgg16", (0, 0, 1), batch=12, iterations=260))
    458
    """
    return _named(name, _PLANS.path, _MODELS.path, relatives)


# Each run of a sweep asks for a model twice: when its jobs are generated, and in its policy.
# Therefore models are cached.
@lru_cache(maxsize=16)
def _named(name: str, plans: Path, models: Path, relatives: bool) -> PlanTimes:
    """Performance model from the tables ``plans`` and ``models``; callers must not change it."""
    names = further_names("liquid") if relatives else {}
    if name == "measured":
        # Column ``mode`` has the plan in the form of `pattern`. Column ``plan`` has its letter in
        # Figure 1. It is empty for jobs of a single task.
        rows = _PLANS.frame.dropna(subset="plan").astype({"duration_s": float})
        return MeasuredPlans(
            {
                str(model): dict(model_rows[["mode", "duration_s"]].to_numpy())
                for model, model_rows in rows.groupby("model")
            },
            names,
        )
    table = _MODELS.frame
    refuse_unknown("unknown run times", [name], RUN_TIME_MODELS)
    table = table[table["gpu"] == name].set_index("model")
    columns = table[list(_CONSTANTS)].astype(float).T
    trained = {str(model): TrainedModel(*constants) for model, constants in columns.items()}
    pair_mb_s, node_mb_s, local_mb_s = table[list(_LINKS)].iloc[0].astype(float)
    return IterationModel(trained, pair_mb_s, node_mb_s, local_mb_s, names)


def default_num_ps(gpus: int) -> int:
    """Parameter servers of a job if the trace has no num_ps: one, or none for a single GPU."""
    return int(gpus > 1)


def _needed(table: JobTable, job: int, name: str) -> float:
    """Value of a job in a column; TraceError unless it is positive."""
    value = math.nan
    if name in table.frame:
        value = float(table.column(name, gaps=True)[job])
    if not value > 0:
        raise TraceError(
            f"{table.source}: {table.row_label(job)} has no {name}; the iteration model needs a "
            f"positive value in that column"
        )
    return value
