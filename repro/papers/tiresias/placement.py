"""Tiresias's placement programme beside exhaustive search and the placement rules (appendix D)."""

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
    """One job to place: a gang with as many servers as it names sizes, on nodes in use."""

    name: str
    #: workers W, one GPU each
    workers: int
    #: parameter servers (MB); they sum up to the model
    sizes: Sequence[float]
    #: idle GPUs of each node, and the traffic already on it (MB per iteration)
    free: Sequence[int]
    traffic: Sequence[float]
    #: what it trains, for rules that look at it
    model: str | None = None


def drawn(
    rng: np.random.Generator,
    models: pd.DataFrame,
    *,
    count: int,
    nodes: Sequence[int],
    workers: Sequence[int],
    node_gpus: int,
    busy_mb: float,
) -> list[Instance]:
    """Draw small instances; half of the nodes carry up to ``busy_mb`` of traffic already."""
    found = []
    for number in range(count):
        size = int(rng.integers(nodes[0], nodes[1] + 1))
        free = rng.integers(1, node_gpus + 1, size)
        gang = int(min(rng.integers(workers[0], workers[1] + 1), free.sum()))
        model = str(rng.choice(sorted(models.index)))
        load = (rng.random(size) < 0.5) * rng.random(size) * busy_mb
        sizes = sizes_of(models, model, gang)
        found.append(Instance(f"{number + 1}", gang, sizes, free.tolist(), load.tolist(), model))
    return found


def sizes_of(models: pd.DataFrame, model: str, servers: int) -> list[float]:
    """Return what each parameter server of a model holds (MB)."""
    size, ratio = map(float, models.loc[model, ["size_mb", "largest_ratio"]].to_numpy())
    return server_sizes(size, servers, ratio)


def program(instance: Instance) -> float:
    """Return the busiest node's traffic (MB per iteration) under the programme's placement."""
    sizes = list(instance.sizes)
    free = list(instance.free)
    traffic = list(instance.traffic)
    return solve(sum(sizes), instance.workers, sizes, free, traffic).max_traffic


def exhaustive(instance: Instance) -> float:
    """Return the least traffic of the busiest node (MB per iteration) over all placements."""
    nodes = len(instance.free)
    total = instance.workers
    homes = np.array(list(itertools.product(range(nodes), repeat=len(instance.sizes))))
    sizes = np.array(instance.sizes)
    held = np.stack([(homes == node) @ sizes for node in range(nodes)], axis=1)
    best = np.inf
    for counts in itertools.product(*(range(min(gpus, total) + 1) for gpus in instance.free)):
        if sum(counts) == total:
            w = np.array(counts)
            load = np.array(instance.traffic) + w * (sizes.sum() - held) + held * (total - w)
            best = min(best, float(load.max(axis=1).min()))
    return best


def placements(workers: int, servers: int, free: Sequence[int]) -> int:
    """Return how many placements there are: workers over nodes times a node per server."""
    ways = [1] + [0] * workers
    for gpus in free:
        ways = [sum(ways[max(0, total - gpus) : total + 1]) for total in range(workers + 1)]
    return ways[workers] * int(len(free) ** servers)


def heuristic(
    instance: Instance, rule: str, rng: np.random.Generator, draws: int = 1, **settings: object
) -> float:
    """Return the busiest node's traffic under a rule, with server j beside worker j (mean)."""
    cluster = Cluster(tuple(Node(gpus) for gpus in instance.free), "instance")
    found = []
    for _ in range(draws):
        placer = make(rule, **settings).bind(cluster, rng)
        counts = [0] * len(instance.free)
        for node, gpus in placer.take(0, instance.workers, instance.model):
            counts[node] = gpus
        beside = [node for node, gpus in enumerate(counts) for _ in range(gpus)]
        found.append(max(node_traffic(counts, beside, instance.sizes, instance.traffic)))
    return float(np.mean(found))


def compare(
    instances: Sequence[Instance],
    rng: np.random.Generator,
    models: pd.DataFrame,
    draws: int,
    *,
    search: bool = True,
) -> pd.DataFrame:
    """Return the busiest node's traffic (MB per iteration) under the programme and the rules."""
    shares = models["largest_ratio"].to_dict()
    rows = [
        {
            "instance": one.name,
            "model": one.model,
            "workers": one.workers,
            "nodes": len(one.free),
            "exhaustive": exhaustive(one) if search else np.nan,
            "ilp": program(one),
            "yarn": heuristic(one, "yarn", rng),
            "skew": heuristic(one, "skew", rng, skew=shares),
            "random": heuristic(one, "random", rng, draws),
        }
        for one in instances
    ]
    return pd.DataFrame(rows)


def growth(nodes: Iterable[int], workers: int, node_gpus: int) -> pd.DataFrame:
    """Return how the programme and the placements (feasible ones) grow with the number of nodes."""
    rows = [
        (n, *program_size(n, workers), float(placements(workers, workers, [node_gpus] * n)))
        for n in nodes
    ]
    return pd.DataFrame(rows, columns=["nodes", "variables", "constraints", "placements"])
