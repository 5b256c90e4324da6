"""Cost, Fitness and Score of a placement plan on nodes that are partly in use (Liquid).

A container runs one task of a job and holds one GPU. A plan (``tasks``) has the node of each
container, parameter servers first. The artifact is Liquid's public code: its scheduler and its
evaluator of plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from repro.base.compiled import njit
from repro.base.errors import ParamError, refuse_unknown
from repro.base.typing import Flags, Floats, Ints
from repro.model.cluster.spec import Cluster

#: Assumed needs of a container before a model estimates them: GPU memory (MB) and bandwidth (MB/s).
#: Values of the artifact.
DEFAULT_GPU_MEM_MB = 8192.0
DEFAULT_BANDWIDTH_MB_S = 100.0
#: Scores that differ by less are equal. The first of nodes with equal scores is chosen.
TIE = 1e-9
#: The artifact's cost of two containers in one rack, and in one domain.
_RACK = 1.0
_DOMAIN = 4.0

Formula = Literal["paper", "artifact"]


@dataclass(frozen=True)
class Gang:
    """The containers of one job: number in each role, and needs of each container.

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
        """Number of containers, and of GPUs."""
        return self.num_ps + self.num_workers

    @property
    def bandwidth_units(self) -> int:
        """Bandwidth of a container in whole units of 100 MB/s, as in the artifact."""
        return max(1, int(np.ceil(self.bandwidth_mb_s / 100.0)))


@dataclass(frozen=True)
class Scoring:
    """Formula of the score of a plan. The least score is best.

    ``paper``: lambda * Cost + (1 - lambda) * sum of Fitness over the nodes of the plan, with
    Fitness = -(requested + used) / total GPUs (Liquid, TPDS 2022, Eqs 2 to 6). ``artifact``: see
    `NodeResources.score`. ``weight`` is lambda.
    """

    weight: float = 0.5
    formula: Formula = "paper"

    def __post_init__(self) -> None:
        is_number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not is_number or not 0 <= self.weight <= 1:
            raise ParamError(f"lambda is {self.weight!r:.40}; give a number from 0 to 1")
        refuse_unknown("score cannot be", [self.formula], get_args(Formula))


class NodeResources:
    """The nodes of a cluster and their idle resources while jobs are placed in order.

    Parameters
    ----------
    cluster : Cluster
        `Cluster.racks` has the rack and the domain of each node.
    idle : sequence of int, optional
        Idle GPUs of each node. Default: ``node.gpus``, the GPUs that jobs can get. ``node.total``
        also counts GPUs that jobs outside the trace use.

    Examples
    --------
    >>> site = NodeResources(Cluster.parse("3x2"))
    >>> site.cost((0, 0, 1), num_ps=1)
    3.0
    >>> site.score((0, 0, 1), Gang(1, 2), Scoring())
    0.75
    """

    def __init__(self, cluster: Cluster, idle: Sequence[int] | None = None) -> None:
        limits = cluster.limits
        self._limits = limits
        self.total = limits.total
        self.idle = np.array(limits.gpus if idle is None else idle, np.int64)
        racks = cluster.racks
        self.domain = racks.domain
        self.rack = racks.rack
        self._domain_sizes = racks.domain_sizes
        self._rack_sizes = racks.rack_sizes
        self.gpu_mem_mb = limits.gpu_mem_mb
        self.link_mb_s = limits.bandwidth_mb_s.copy()

    @property
    def used(self) -> Floats:
        """GPUs in use on each node, shape (nodes,)."""
        return self.total - self.idle

    def candidates(self, gang: Gang, tasks: Sequence[int] = ()) -> Flags:
        """Nodes that can take one more container, in the domain of ``tasks``; shape (nodes,)."""
        fits = (self.idle > 0) & (self.gpu_mem_mb >= gang.gpu_mem_mb)
        fits &= self.link_mb_s >= gang.bandwidth_mb_s
        if len(tasks):
            fits &= self.domain == self.domain[tasks[0]]
        return fits

    def capacity(self, gang: Gang, per_node: float = np.inf) -> int:
        """Largest number of containers of a gang in one domain, at most ``per_node`` on a node."""
        limit = np.minimum(np.floor(self.link_mb_s / gang.bandwidth_mb_s), per_node)
        containers = np.where(self.candidates(gang), np.minimum(self.idle, limit), 0)
        return int(np.bincount(self.domain, containers).max())

    def in_large_domain(self, gang: Gang) -> Flags:
        """Nodes whose domain has room for a whole gang if all GPUs are idle, shape (nodes,)."""
        limits = self._limits
        limit = np.floor(limits.bandwidth_mb_s / gang.bandwidth_mb_s)
        has_memory = limits.gpu_mem_mb >= gang.gpu_mem_mb
        containers = np.where(has_memory, np.minimum(limits.gpus, limit), 0)
        return np.bincount(self.domain, containers)[self.domain] >= gang.size

    def allocate(self, tasks: Sequence[int], gang: Gang) -> None:
        """Take the GPUs and the bandwidth of a plan."""
        np.subtract.at(self.idle, list(tasks), 1)
        np.subtract.at(self.link_mb_s, list(tasks), gang.bandwidth_mb_s)

    def free(self, tasks: Sequence[int], gang: Gang) -> None:
        """Give the GPUs and the bandwidth of a plan back."""
        np.add.at(self.idle, list(tasks), 1)
        np.add.at(self.link_mb_s, list(tasks), gang.bandwidth_mb_s)

    def pair_costs(self, n1: Ints, n2: Ints, formula: Formula = "paper") -> Floats:
        """Cost(n1, n2) of nodes, entry by entry.

        0 on one node, else the number of nodes in the rack or domain that both share, infinite
        between domains (Liquid, section 5.1). The artifact has 1 in a rack and 4 in a domain.
        """
        in_rack: Floats | float = self._rack_sizes[n1] if formula == "paper" else _RACK
        in_domain: Floats | float = self._domain_sizes[n1] if formula == "paper" else _DOMAIN
        across_racks = np.where(self.domain[n1] == self.domain[n2], in_domain, np.inf)
        across_nodes = np.where(self.rack[n1] == self.rack[n2], in_rack, across_racks)
        return np.where(n1 == n2, 0.0, across_nodes)

    def cost(self, tasks: Sequence[int], num_ps: int, formula: Formula = "paper") -> float:
        """Cost of a plan, summed over its pairs of a parameter server and a worker."""
        nodes = np.array(tasks, np.int64)
        if len(set(self.domain[nodes].tolist())) > 1:
            return float("inf")
        pairs = self.pair_costs(nodes[:num_ps, None], nodes[None, num_ps:], formula)
        return float(pairs.sum())

    def score(self, tasks: Sequence[int], gang: Gang, scoring: Scoring) -> float:
        """Score of a plan on the nodes as they are now, infinite across domains.

        The artifact's score is Cost * `Gang.bandwidth_units` + (nodes - sum of loads) / containers.
        The load of a container is (used + 2) / total GPUs of its node.
        """
        cost = self.cost(tasks, gang.num_ps, scoring.formula)
        nodes = list(dict.fromkeys(tasks))
        if scoring.formula == "artifact":
            # The GPUs of earlier containers of the plan count as used.
            used = (
                self.used[node] + tasks[:position].count(node)
                for position, node in enumerate(tasks)
            )
            load = sum(
                (gpus + 2) / self.total[node] for node, gpus in zip(tasks, used, strict=True)
            )
            return float(cost * gang.bandwidth_units + (len(nodes) - load) / gang.size)
        if cost == np.inf:
            return cost
        fitness = sum(-(tasks.count(node) + self.used[node]) / self.total[node] for node in nodes)
        return float(scoring.weight * cost + (1 - scoring.weight) * fitness)

    def objectives(self, plans: Ints, gangs: Sequence[Gang], weight: float) -> Floats:
        """Objective of many plans for a batch of jobs: sum of scores plus number of nodes used.

        Parameters
        ----------
        plans : ndarray, shape (plans, containers)
            Nodes, job by job, parameter servers first.
        gangs : sequence of Gang
            Jobs in order; each counts the GPUs of the jobs before it as used.
        weight : float
            lambda of the paper's score.

        Returns
        -------
        ndarray, shape (plans,)
            The least is best, infinite across domains: Liquid, TPDS 2022, Eqs 7 and 8 with the
            sign reversed.
        """
        sizes = np.array([[gang.num_ps, gang.size] for gang in gangs])
        nodes = (
            self.used,
            self.total,
            self.rack,
            self.domain,
            self._rack_sizes,
            self._domain_sizes,
        )
        return np.asarray(_objectives(plans, sizes, nodes, weight))

    def best_fit(
        self, gang: Gang, scoring: Scoring, drop: Literal["full", "always"] = "full"
    ) -> tuple[int, ...] | None:
        """Plan that places each container in order where it adds least to the score (Algorithm 1).

        Ties go to the lowest node index. None: a container has no candidate. A node leaves the
        candidates once it is full (``full``), or after one container, as Algorithm 1 is printed
        (``always``).
        """
        index = np.arange(len(self.idle))
        tasks: list[int] = []
        # Cost of each node to all servers, which are placed before the workers.
        to_servers = np.zeros(len(index))
        chosen = np.zeros(len(index), np.bool_)
        used_before = self.used
        paper = scoring.formula == "paper"
        for container in range(gang.size):
            is_server = container < gang.num_ps
            candidates = self.candidates(gang, tasks)
            if drop == "always":
                candidates &= ~chosen
            if not candidates.any():
                self.free(tasks, gang)
                return None
            cost = 0.0 if is_server else to_servers
            if paper:
                # A further container on a chosen node adds only its own GPU to the Fitness.
                fitness = -(1 + np.where(chosen, 0.0, used_before)) / self.total
                added = scoring.weight * cost + (1 - scoring.weight) * fitness
            else:
                load = (self.used + 2) / self.total
                # The artifact prefers idle nodes for servers and loaded nodes for workers.
                signed_load = load if is_server else -load
                is_new_node = ~chosen
                added = cost * gang.bandwidth_units + (signed_load + is_new_node) / gang.size
            added = np.where(candidates, added, np.inf)
            node = int(np.argmax(added <= added.min() + TIE))
            if is_server:
                costs = self.pair_costs(np.full(len(index), node), index, scoring.formula)
                # Nodes of other domains, at infinite cost, are not candidates any more.
                to_servers += np.where(costs < np.inf, costs, 0.0)
            tasks.append(node)
            chosen[node] = True
            self.allocate([node], gang)
        self.free(tasks, gang)
        return tuple(tasks)


@njit(allocates=True)
def _objectives(plans: Ints, sizes: Ints, nodes: Any, weight: float) -> Floats:
    """Compute `NodeResources.objectives`. ``sizes`` has (servers, containers) of each job."""
    used, total, rack, domain, rack_sizes, domain_sizes = nodes
    values = np.empty(len(plans))
    for index in range(len(plans)):
        plan = plans[index]
        used_now = used.copy()
        value = 0.0
        begin = 0
        # The last job that each node was counted for.
        counted = np.full(len(used), -1)
        for job in range(len(sizes)):
            first_worker = begin + sizes[job, 0]
            end = begin + sizes[job, 1]
            for task in range(begin, end):
                node = plan[task]
                used_now[node] += 1.0
                if domain[node] != domain[plan[begin]]:
                    value = np.inf
                # Only a worker pairs with servers.
                servers_end = first_worker if task >= first_worker else begin
                for server in range(begin, servers_end):
                    if plan[server] != node:
                        same_rack = rack[plan[server]] == rack[node]
                        value += weight * (rack_sizes[node] if same_rack else domain_sizes[node])
            for task in range(begin, end):
                node = plan[task]
                if counted[node] != job:
                    # The first job on a node also adds the node itself.
                    value += 1.0 if counted[node] < 0 else 0.0
                    value -= (1.0 - weight) * used_now[node] / total[node]
                    counted[node] = job
            begin = end
        values[index] = value
    return values
