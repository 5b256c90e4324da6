"""Training with parameter servers: how long it takes, given where the tasks sit (Liquid)."""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from repro.core.decision import Run
from repro.core.jobs import JobTable
from repro.core.records import Nodes
from repro.errors import ParamError, TraceError


def pattern(tasks: Sequence[int], num_ps: int = 1) -> str:
    """Return who shares a node with whom, as the public simulator of Liquid writes it."""
    held: dict[int, list[str]] = defaultdict(list)
    for task, node in enumerate(tasks):
        held[node].append("p" if task < num_ps else "w")
    names = sorted(held.values(), key=lambda roles: (-roles.count("p"), -roles.count("w")))
    return "_".join("".join(roles) for roles in names)


@dataclass(frozen=True)
class MeasuredPlans:
    """Performance model that looks the time of a placement plan up in a table of measurements.

    ``seconds``: model to `pattern` to run time (s); the duration of a job in the trace is that of
    the pattern ``reference``.
    """

    seconds: Mapping[str, Mapping[str, float]]
    reference: str = "pww"

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return the time of the reference plan over that of the plan held."""
        job = run.jobs[0]
        row = self.seconds.get(str(table.models[job]), {})
        plan = pattern(_tasks(table, run), _num_ps(table, job))
        for wanted in (plan, self.reference):
            if wanted not in row:
                raise ParamError(
                    f"no measured time for {table.models[job]!r} placed as {wanted!r}; measured: "
                    f"{', '.join(row) or 'nothing'}"
                )
        return [row[self.reference] / row[plan]]


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
class IterationModel:
    """T = T_l + T_sa + N (T_t + T_sy): compute time plus the slowest of the links in use.

    ``pair_mb_s``, ``node_mb_s`` and ``local_mb_s`` are the bandwidths between two nodes, of one
    node to all others, and inside a node (MB/s, in and out together); ``reference`` holds the nodes
    of the tasks of the plan whose time is the duration in the trace, by default all on one node.

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
    reference: tuple[int, ...] | None = None

    def sync_s(self, model_mb: float, tasks: Sequence[int], num_ps: int = 1) -> float:
        """Return the time to move the parameters of one iteration over the slowest link (s)."""
        servers, workers = tasks[:num_ps], tasks[num_ps:]
        if not servers or not workers:
            raise ParamError(f"tasks {tuple(tasks)}: need a parameter server and a worker")
        volume = 2 * model_mb / num_ps
        bandwidth = {"local": self.local_mb_s, "pair": self.pair_mb_s, "node": self.node_mb_s}
        moved: dict[tuple[str, frozenset[int]], float] = defaultdict(float)
        for server, worker in itertools.product(servers, workers):
            both = frozenset((server, worker))
            if server == worker:
                moved["local", both] += volume
                continue
            moved["pair", both] += volume
            moved["node", frozenset((server,))] += volume
            moved["node", frozenset((worker,))] += volume
        return max(mb / bandwidth[link] for (link, _), mb in moved.items())

    def run_s(
        self, model: str, tasks: Sequence[int], batch: float, iterations: float, num_ps: int = 1
    ) -> float:
        """Return the time of a whole run (s)."""
        if model not in self.models:
            raise ParamError(
                f"no parameters for model {model!r}; known: {', '.join(self.models) or 'none'}"
            )
        known = self.models[model]
        sync = known.exposed * self.sync_s(known.model_mb, tasks, num_ps)
        return known.fixed_s + iterations * (batch / known.images_per_s + sync)

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> list[float]:
        """Return the time of the reference plan over that of the plan held."""
        job, tasks = run.jobs[0], _tasks(table, run)
        model, num_ps = str(table.models[job]), _num_ps(table, job)
        size = _needed(table, job, "batch_size"), _needed(table, job, "iterations")
        reference = self.reference or (0,) * len(tasks)
        alone = self.run_s(model, reference, *size, num_ps)
        return [alone / self.run_s(model, tasks, *size, num_ps)]


def _tasks(table: JobTable, run: Run) -> tuple[int, ...]:
    if len(run.jobs) > 1 or not run.tasks:
        raise ParamError(
            f"job {table.ids[run.jobs[0]]!r}: a parameter-server model needs to know the node of "
            f"every task of one job; use a policy that names them (Run.tasks)"
        )
    return run.tasks


def _num_ps(table: JobTable, job: int) -> int:
    return int(table.column("num_ps")[job]) if "num_ps" in table.frame else 1


def _needed(table: JobTable, job: int, name: str) -> float:
    value = float(table.column(name)[job]) if name in table.frame else math.nan
    if not value > 0:
        raise TraceError(
            f"job {table.ids[job]!r} has no {name!r}; the iteration model needs a positive value "
            f"in that trace column"
        )
    return value
