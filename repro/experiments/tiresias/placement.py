"""Tiresias's placement program beside exhaustive search and the placement rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.cluster.node import Node
from repro.cluster.spec import Cluster
from repro.placement.base import make
from repro.placement.ilp import node_traffic, program_size, server_sizes, solve


@dataclass(frozen=True)
class Instance:
    """One job to place: a gang with as many servers as it names sizes, on nodes in use.

    Parameters
    ----------
    name : str
        For tables.
    workers : int
        Workers W, one GPU each.
    sizes : tuple of float
        Parameter servers, MB; they sum up to the model.
    free : tuple of int
        Idle GPUs of each node.
    traffic : tuple of float
        Traffic already on each node, MB per iteration.
    model : str or None
        Model it trains, for rules that look at it.
    """

    name: str
    workers: int
    sizes: tuple[float, ...]
    free: tuple[int, ...]
    traffic: tuple[float, ...]
    model: str | None = None


def listed(entries: Iterable[Mapping[str, object]]) -> list[Instance]:
    """Return the instances a parameter file lists.

    Parameters
    ----------
    entries : iterable of mapping
        ``name``, ``workers``, ``sizes``, ``free`` and ``traffic`` of each.

    Examples
    --------
    >>> one = {"name": "a", "workers": 2, "sizes": [5], "free": [2], "traffic": [0]}
    >>> listed([one])[0].sizes
    (5.0,)
    """
    frame = pd.DataFrame(list(entries))
    columns = (frame[name] for name in ("name", "workers", "sizes", "free", "traffic"))
    return [
        Instance(str(name), int(workers), floats(sizes), tuple(map(int, free)), floats(traffic))
        for name, workers, sizes, free, traffic in zip(*columns, strict=True)
    ]


def floats(values: Iterable[float]) -> tuple[float, ...]:
    """Return values as a tuple of floats."""
    return tuple(map(float, values))


def drawn(
    rng: np.random.Generator,
    *,
    count: int,
    model_mb: Mapping[str, float],
    shares: Mapping[str, float],
    nodes: Sequence[int] = (2, 4),
    workers: Sequence[int] = (2, 4),
    node_gpus: int = 4,
    busy_mb: float = 400.0,
) -> list[Instance]:
    """Draw instances small enough for exhaustive search.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the instances.
    count : int
        How many.
    model_mb, shares : mapping
        Model to its size (MB) and to the share of its largest tensor.
    nodes, workers : sequence of int
        Smallest and largest number; a job has as many servers as workers.
    node_gpus : int
        Idle GPUs of a node are drawn from 1 to this.
    busy_mb : float
        Half of the nodes carry up to this much traffic already (MB per iteration).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> len(drawn(rng, count=3, model_mb={"a": 100.0}, shares={"a": 0.5}))
    3
    """
    found = []
    for number in range(count):
        size = int(rng.integers(nodes[0], nodes[1] + 1))
        free = rng.integers(1, node_gpus + 1, size)
        gang = int(min(rng.integers(workers[0], workers[1] + 1), free.sum()))
        model = str(rng.choice(sorted(model_mb)))
        load = (rng.random(size) < 0.5) * rng.random(size) * busy_mb
        sizes = server_sizes(model_mb[model], gang, shares[model])
        found.append(
            Instance(
                f"{number + 1}", gang, floats(sizes), tuple(free.tolist()), floats(load), model
            )
        )
    return found


def on_idle_nodes(
    *,
    model_mb: Mapping[str, float],
    shares: Mapping[str, float],
    workers: int,
    nodes: int,
    node_gpus: int,
) -> list[Instance]:
    """Return one instance per model: the same gang on an idle cluster.

    Parameters
    ----------
    model_mb, shares : mapping
        Model to its size (MB) and to the share of its largest tensor.
    workers : int
        Workers, and parameter servers.
    nodes, node_gpus : int
        Machines and GPUs in each.

    Examples
    --------
    >>> size = {"workers": 2, "nodes": 3, "node_gpus": 4}
    >>> on_idle_nodes(model_mb={"a": 9.0}, shares={"a": 0.8}, **size)[0].free
    (4, 4, 4)
    """
    free, idle = (node_gpus,) * nodes, (0.0,) * nodes
    return [
        Instance(name, workers, floats(server_sizes(size, workers, shares[name])), free, idle, name)
        for name, size in model_mb.items()
    ]


def program(instance: Instance) -> float:
    """Return the busiest node's traffic (MB per iteration) under the program's placement."""
    sizes = list(instance.sizes)
    return solve(
        sum(sizes), instance.workers, sizes, list(instance.free), list(instance.traffic)
    ).max_traffic


def exhaustive(instance: Instance) -> float:
    """Return the least traffic of the busiest node over all placements, one by one.

    Parameters
    ----------
    instance : Instance
        Small: the number of placements is that of `placements`.

    Returns
    -------
    float
        MB per iteration.

    Examples
    --------
    >>> exhaustive(Instance("", 2, (70.0, 30.0), (1, 1), (0.0, 0.0)))
    100.0
    """
    nodes, total = len(instance.free), instance.workers
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
    """Return how many placements there are: workers over nodes times a node per server.

    Parameters
    ----------
    workers, servers : int
        Workers W and servers K.
    free : sequence of int
        Idle GPUs of each node.

    Examples
    --------
    >>> placements(2, 2, [2, 2])
    12
    """
    ways = [1] + [0] * workers
    for gpus in free:
        ways = [sum(ways[max(0, total - gpus) : total + 1]) for total in range(workers + 1)]
    return ways[workers] * int(len(free) ** servers)


def heuristic(
    instance: Instance, rule: str, rng: np.random.Generator, draws: int = 1, **settings: object
) -> float:
    """Return the busiest node's traffic when a placement rule places the workers.

    Server j sits beside worker j, as the servers of TensorFlow jobs are deployed in the paper.

    Parameters
    ----------
    instance : Instance
        With as many servers as workers.
    rule : str
        Registered placement.
    rng : numpy.random.Generator
        For rules that draw.
    draws : int
        Placements averaged over.
    **settings
        Of the rule.

    Returns
    -------
    float
        MB per iteration, mean over the draws.

    Examples
    --------
    >>> two = Instance("", 2, (70.0, 30.0), (1, 2), (0.0, 0.0))
    >>> heuristic(two, "yarn", np.random.default_rng(0))
    0.0
    """
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
    *,
    shares: Mapping[str, float],
    draws: int,
    search: bool = True,
) -> pd.DataFrame:
    """Return the busiest node's traffic of every instance under the program and the rules.

    Parameters
    ----------
    instances : sequence of Instance
        What is placed.
    rng : numpy.random.Generator
        For random placement.
    shares : mapping
        Model to the share of its largest tensor, for the skew rule.
    draws : int
        Random placements averaged over.
    search : bool
        Whether the instances are small enough for exhaustive search; else that column is NaN.

    Returns
    -------
    DataFrame
        instance, model, workers, nodes, exhaustive, ilp, yarn, skew, random (MB per iteration).

    References
    ----------
    Tiresias, NSDI 2019, section 3.3 and appendix D.
    """
    rows = [
        {
            "instance": one.name,
            "model": one.model,
            "workers": one.workers,
            "nodes": len(one.free),
            "exhaustive": exhaustive(one) if search else np.nan,
            "ilp": program(one),
            "yarn": heuristic(one, "yarn", rng),
            "skew": heuristic(one, "skew", rng, skew=dict(shares)),
            "random": heuristic(one, "random", rng, draws),
        }
        for one in instances
    ]
    return pd.DataFrame(rows)


def growth(nodes: Iterable[int], workers: int, node_gpus: int) -> pd.DataFrame:
    """Return how the program and the space it searches grow with the number of nodes.

    Parameters
    ----------
    nodes : iterable of int
        Numbers of nodes.
    workers : int
        Workers, and parameter servers.
    node_gpus : int
        Idle GPUs of each node.

    Returns
    -------
    DataFrame
        nodes, variables, constraints, placements (feasible ones, as float).

    Examples
    --------
    >>> growth([2], 2, 2).iloc[0].tolist()
    [2.0, 11.0, 17.0, 12.0]
    """
    rows = [
        (n, *program_size(n, workers), float(placements(workers, workers, [node_gpus] * n)))
        for n in nodes
    ]
    return pd.DataFrame(rows, columns=["nodes", "variables", "constraints", "placements"])
