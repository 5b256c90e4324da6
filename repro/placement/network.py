"""Cost, Fitness and Score of a placement plan, and the nodes with what is left of them (Liquid).

A plan names a node for each container of a job, parameter servers first; one container holds one
GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from repro.base.compiled import njit
from repro.base.errors import ParamError, refuse_unknown
from repro.base.typing import Flags, Floats, Ints
from repro.model.cluster.spec import Cluster

#: What a container is thought to need before there is a model that estimates it: GPU memory (MB),
#: bandwidth (MB/s). The public scheduler's values.
DEFAULT_GPU_MEM_MB = 8192.0
DEFAULT_BANDWIDTH_MB_S = 100.0
#: Scores that differ by less are equal; the first node wins.
TIE = 1e-9
#: The public evaluator's cost of two containers in one rack, and in one domain.
_RACK = 1.0
_DOMAIN = 4.0

Formula = Literal["paper", "artifact"]


@dataclass(frozen=True)
class Gang:
    """The containers of one job, all alike but for their roles; GPU memory and bandwidth of each.

    Examples
    --------
    >>> Gang(num_ps=1, num_workers=2).size
    3
    """

    num_ps: int
    num_workers: int
    gpu_mem_mb: float = DEFAULT_GPU_MEM_MB
    bandwidth_mb_s: float = DEFAULT_BANDWIDTH_MB_S

    @property
    def size(self) -> int:
        """Number of containers, hence of GPUs."""
        return self.num_ps + self.num_workers

    @property
    def units(self) -> int:
        """Bandwidth of a container as the public scheduler counts it, in units of 100 MB/s."""
        return max(1, int(np.ceil(self.bandwidth_mb_s / 100.0)))


@dataclass(frozen=True)
class Scoring:
    """How a plan is scored; the least score is best.

    ``paper``: lambda * Cost + (1 - lambda) * sum of Fitness, the sum over the nodes of the plan of
    -(requested + used) / total GPUs (Liquid, TPDS 2022, Eqs 2 to 6). ``artifact``: what the public
    evaluator adds up, see `Site.score`.
    """

    weight: float = 0.5
    formula: Formula = "paper"

    def __post_init__(self) -> None:
        number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not number or not 0 <= self.weight <= 1:
            raise ParamError(f"lambda is {self.weight!r:.40}; give a number from 0 to 1")
        refuse_unknown("score cannot be", [self.formula], get_args(Formula))


class Site:
    """The nodes of a cluster and what is left of them, while jobs are placed one after another.

    Parameters
    ----------
    cluster : Cluster
        Nodes under one switch are a rack; switches of one domain are a domain.
    idle : sequence of int, optional
        Idle GPUs of each node; all that jobs can get unless given.

    Examples
    --------
    >>> site = Site(Cluster.parse("3x2"))
    >>> site.cost((0, 0, 1), num_ps=1)
    3.0
    >>> site.score((0, 0, 1), Gang(1, 2), Scoring())
    0.75
    """

    def __init__(self, cluster: Cluster, idle: Sequence[int] | None = None) -> None:
        nodes = cluster.nodes
        self.total = np.array([node.total for node in nodes], dtype=float)
        self.idle = np.array([node.gpus for node in nodes] if idle is None else idle, np.int64)
        places = [(node.domain, node.switch) for node in nodes]
        self.domain, self._in_domain = _groups([domain for domain, _ in places])
        self.rack, self._in_rack = _groups(places)
        self.gpu_mem_mb = np.array([node.gpu_mem_mb for node in nodes])
        self.link_mb_s = np.array([node.bandwidth_mb_s for node in nodes])

    @property
    def used(self) -> Floats:
        """GPUs of each node that somebody holds."""
        return self.total - self.idle

    def open(self, gang: Gang, tasks: Sequence[int] = ()) -> Flags:
        """Tell which nodes have room for one more container, in the domain of those placed."""
        room = (self.idle > 0) & (self.gpu_mem_mb >= gang.gpu_mem_mb)
        room &= self.link_mb_s >= gang.bandwidth_mb_s
        return room & (self.domain == self.domain[tasks[0]]) if len(tasks) else room

    def capacity(self, gang: Gang, per_node: float = np.inf) -> int:
        """Return how many containers of a gang one domain can take at most.

        ``per_node``: the most that a node may take.
        """
        lines = np.minimum(np.floor(self.link_mb_s / gang.bandwidth_mb_s), per_node)
        room = np.where(self.open(gang), np.minimum(self.idle, lines), 0)
        return int(np.bincount(self.domain, room).max())

    def hold(self, tasks: Sequence[int], gang: Gang, sign: int = 1) -> None:
        """Take the GPUs and the bandwidth of a plan, or give them back (``sign`` -1)."""
        np.subtract.at(self.idle, list(tasks), sign)
        np.subtract.at(self.link_mb_s, list(tasks), sign * gang.bandwidth_mb_s)

    def pair_costs(self, one: Ints, other: Ints, formula: Formula = "paper") -> Floats:
        """Return Cost(n1, n2) of nodes, entry by entry; infinite between domains.

        0 on one node, else the number of nodes in the rack or domain they share (Liquid, section
        5.1); the public evaluator counts 1 and 4.
        """
        in_rack: Floats | float = self._in_rack[one] if formula == "paper" else _RACK
        in_domain: Floats | float = self._in_domain[one] if formula == "paper" else _DOMAIN
        apart = np.where(self.domain[one] == self.domain[other], in_domain, np.inf)
        near = np.where(self.rack[one] == self.rack[other], in_rack, apart)
        return np.where(one == other, 0.0, near)

    def cost(self, tasks: Sequence[int], num_ps: int, formula: Formula = "paper") -> float:
        """Return Cost of a plan: the sum over its pairs of a parameter server and a worker."""
        nodes = np.array(tasks, np.int64)
        if len(set(self.domain[nodes].tolist())) > 1:
            return float("inf")
        pairs = self.pair_costs(nodes[:num_ps, None], nodes[None, num_ps:], formula)
        return float(pairs.sum())

    def score(self, tasks: Sequence[int], gang: Gang, how: Scoring) -> float:
        """Return the score of a plan on what is left of the nodes, infinite across domains.

        The public evaluator: Cost * bandwidth - (sum of the loads) / containers + nodes /
        containers, where the load of a container is (used + 2) / total GPUs of its node.
        """
        cost = self.cost(tasks, gang.num_ps, how.formula)
        nodes = list(dict.fromkeys(tasks))
        if how.formula == "artifact":
            held = (self.used[node] + tasks[:at].count(node) for at, node in enumerate(tasks))
            load = sum(
                (used + 2) / self.total[node] for node, used in zip(tasks, held, strict=True)
            )
            return float(cost * gang.units + (len(nodes) - load) / gang.size)
        if cost == np.inf:
            return cost
        fitness = sum(-(tasks.count(node) + self.used[node]) / self.total[node] for node in nodes)
        return float(how.weight * cost + (1 - how.weight) * fitness)

    def objectives(self, plans: Ints, gangs: Sequence[Gang], weight: float) -> Floats:
        """Return what many plans for a batch of jobs come to: sum of scores plus nodes used.

        Parameters
        ----------
        plans : ndarray, shape (plans, containers)
            Nodes, job by job, parameter servers first.
        gangs : sequence of Gang
            Jobs in order; each counts the GPUs of those before it as used.
        weight : float
            lambda of the printed score.

        Returns
        -------
        ndarray, shape (plans,)
            The less the better, infinite across domains. Liquid, TPDS 2022, Eqs 7 and 8 turned
            round.
        """
        sizes = np.array([[gang.num_ps, gang.size] for gang in gangs])
        places = self.used, self.total, self.rack, self.domain, self._in_rack, self._in_domain
        return np.asarray(_objectives(plans, sizes, places, weight))

    def best_fit(
        self, gang: Gang, how: Scoring, drop: Literal["full", "always"] = "full"
    ) -> tuple[int, ...] | None:
        """Return the plan that places container by container where the score grows least.

        Ties go to the lowest node index. None: some container has no candidate. A node leaves the
        candidates when it is full, or, as Algorithm 1 is printed, once it is chosen (``always``).
        """
        index = np.arange(len(self.idle))
        tasks: list[int] = []
        #: cost of a node to all servers, which are placed before there are workers
        to_servers = np.zeros(len(index))
        chosen = np.zeros(len(index), np.bool_)
        before = self.used
        paper = how.formula == "paper"
        for container in range(gang.size):
            server = container < gang.num_ps
            opened = self.open(gang, tasks)
            if drop == "always":
                opened &= ~chosen
            if not opened.any():
                self.hold(tasks, gang, -1)
                return None
            cost = 0.0 if server else to_servers
            if paper:
                grows = -(1 + np.where(chosen, 0.0, before)) / self.total
                value = how.weight * cost + (1 - how.weight) * grows
            else:
                load = (self.used + 2) / self.total
                side = load if server else -load
                value = cost * gang.units + (side + ~chosen) / gang.size
            value = np.where(opened, value, np.inf)
            node = int(np.argmax(value <= value.min() + TIE))
            if server:
                row = self.pair_costs(np.full(len(index), node), index, how.formula)
                # other domains are no candidates any more
                to_servers += np.where(row < np.inf, row, 0.0)
            tasks.append(node)
            chosen[node] = True
            self.hold([node], gang)
        self.hold(tasks, gang, -1)
        return tuple(tasks)


def _groups(keys: Sequence[object]) -> tuple[Ints, Floats]:
    """Return the number of the group of every node, and the nodes in its group."""
    numbers: dict[object, int] = {}
    code = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    return code, np.bincount(code)[code].astype(float)


@njit()
def _objectives(plans: Ints, sizes: Ints, places: Any, weight: float) -> Floats:
    """Return what `Site.objectives` says; ``sizes``: parameter servers and containers of jobs."""
    used, total, rack, domain, in_rack, in_domain = places
    values = np.empty(len(plans))
    for number in range(len(plans)):
        plan = plans[number]
        held = used.copy()
        value = 0.0
        begin = 0
        # the last job that was counted on each node
        counted = np.full(len(used), -1)
        for job in range(len(sizes)):
            workers = begin + sizes[job, 0]
            end = begin + sizes[job, 1]
            for task in range(begin, end):
                node = plan[task]
                held[node] += 1.0
                if domain[node] != domain[plan[begin]]:
                    value = np.inf
                for server in range(begin, workers if task >= workers else begin):
                    if plan[server] != node:
                        near = rack[plan[server]] == rack[node]
                        value += weight * (in_rack[node] if near else in_domain[node])
            for task in range(begin, end):
                node = plan[task]
                if counted[node] != job:
                    # the first job on a node also brings the node
                    value += 1.0 if counted[node] < 0 else 0.0
                    value -= (1.0 - weight) * held[node] / total[node]
                    counted[node] = job
            begin = end
        values[number] = value
    return values
