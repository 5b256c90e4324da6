"""Tiresias's placement ILP, exhaustive search and placement rules compared (appendix D)."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.model.cluster.node import Node
from repro.model.cluster.spec import Cluster
from repro.placement.base import make
from repro.placement.ilp import server_sizes
from repro.solve.placement_ilp import node_traffic, program_size, solve


@dataclass(frozen=True)
class Instance:
    """One job to place: a gang and its parameter servers, on nodes partly in use."""

    name: str
    #: workers W, one GPU each
    workers: int
    #: size of each parameter server (MB); the sum is the model's
    sizes: Sequence[float]
    #: idle GPUs of each node, and the traffic already on it (MB per iteration)
    free: Sequence[int]
    traffic: Sequence[float]
    #: model name, for rules that depend on it
    model: str | None = None


def sampled_instances(
    rng: np.random.Generator,
    models: pd.DataFrame,
    *,
    count: int,
    nodes: Sequence[int],
    workers: Sequence[int],
    node_gpus: int,
    busy_mb: float,
) -> list[Instance]:
    """Sample small instances.

    ``nodes`` is the smallest and the largest number of nodes, and ``workers`` that of workers. A
    node already carries traffic with probability 1/2, at most ``busy_mb`` (MB per iteration).
    """
    instances = []
    for number in range(count):
        num_nodes = int(rng.integers(nodes[0], nodes[1] + 1))
        free = rng.integers(1, node_gpus + 1, num_nodes)
        gang = int(min(rng.integers(workers[0], workers[1] + 1), free.sum()))
        model = str(rng.choice(sorted(models.index)))
        load = (rng.random(num_nodes) < 0.5) * rng.random(num_nodes) * busy_mb
        sizes = server_sizes_of(models, model, gang)
        instances.append(
            Instance(f"{number + 1}", gang, sizes, free.tolist(), load.tolist(), model)
        )
    return instances


def server_sizes_of(models: pd.DataFrame, model: str, servers: int) -> list[float]:
    """Size of each parameter server of a model (MB)."""
    size, ratio = map(float, models.loc[model, ["size_mb", "largest_ratio"]].to_numpy())
    return server_sizes(size, servers, ratio)


def ilp_traffic(instance: Instance) -> float:
    """Traffic of the busiest node under the ILP's placement, MB per iteration."""
    sizes = list(instance.sizes)
    free = list(instance.free)
    traffic = list(instance.traffic)
    return solve(sum(sizes), instance.workers, sizes, free, traffic).max_traffic


def least_traffic(instance: Instance) -> float:
    """Least traffic of the busiest node over all placements, MB per iteration.

    Each worker exchanges data with each parameter server. Pairs on one node cause no traffic.
    """
    nodes = len(instance.free)
    total = instance.workers
    server_nodes = np.array(list(itertools.product(range(nodes), repeat=len(instance.sizes))))
    sizes = np.array(instance.sizes)
    # (ways to place the servers, nodes)
    server_mb = np.stack([(server_nodes == node) @ sizes for node in range(nodes)], axis=1)
    best = np.inf
    for counts in itertools.product(*(range(min(gpus, total) + 1) for gpus in instance.free)):
        if sum(counts) == total:
            workers = np.array(counts)
            to_workers = workers * (sizes.sum() - server_mb)
            to_servers = server_mb * (total - workers)
            load = np.array(instance.traffic) + to_workers + to_servers
            best = min(best, float(load.max(axis=1).min()))
    return best


def count_placements(workers: int, servers: int, free: Sequence[int]) -> int:
    """Number of placements: ways to spread the workers x choices of a node for each server."""
    # ways to place 0, 1, … workers on the nodes so far
    ways = [1] + [0] * workers
    for gpus in free:
        ways = [sum(ways[max(0, total - gpus) : total + 1]) for total in range(workers + 1)]
    return ways[workers] * int(len(free) ** servers)


def rule_traffic(
    instance: Instance, rule: str, rng: np.random.Generator, draws: int = 1, **settings: object
) -> float:
    """Mean traffic of the busiest node under a rule, MB per iteration.

    Server j is on the node of worker j.
    """
    cluster = Cluster(tuple(Node(gpus) for gpus in instance.free), "instance")
    traffic = []
    for _ in range(draws):
        placer = make(rule, **settings).bind(cluster, rng)
        counts = [0] * len(instance.free)
        for node, gpus in placer.take(0, instance.workers, instance.model):
            counts[node] = gpus
        servers = [node for node, gpus in enumerate(counts) for _ in range(gpus)]
        traffic.append(max(node_traffic(counts, servers, instance.sizes, instance.traffic)))
    return float(np.mean(traffic))


def compare(
    instances: Sequence[Instance],
    rng: np.random.Generator,
    models: pd.DataFrame,
    draws: int,
    *,
    search: bool = True,
) -> pd.DataFrame:
    """Traffic of the busiest node (MB per iteration) under exhaustive search, ILP and rules."""
    largest_ratios = models["largest_ratio"].to_dict()
    rows = [
        {
            "instance": instance.name,
            "model": instance.model,
            "workers": instance.workers,
            "nodes": len(instance.free),
            "exhaustive": least_traffic(instance) if search else np.nan,
            "ilp": ilp_traffic(instance),
            "yarn": rule_traffic(instance, "yarn", rng),
            "skew": rule_traffic(instance, "skew", rng, skew=largest_ratios),
            "random": rule_traffic(instance, "random", rng, draws),
        }
        for instance in instances
    ]
    return pd.DataFrame(rows)


def growth(nodes: Iterable[int], workers: int, node_gpus: int) -> pd.DataFrame:
    """Variables and constraints of the ILP and feasible placements by number of nodes."""
    rows = [
        (n, *program_size(n, workers), float(count_placements(workers, workers, [node_gpus] * n)))
        for n in nodes
    ]
    return pd.DataFrame(rows, columns=["nodes", "variables", "constraints", "placements"])
