"""Placement plans of several jobs, random sets of jobs, and batch sizes in proportion to speed.

A plan is written as node numbers, one per container, or as the containers of each node.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from repro.base.typing import Ints
from repro.model.cluster import Cluster
from repro.placement.network import Gang, NodeResources

#: Containers of each node.
ContainersByNode = Mapping[str, Sequence[str]]


def nodes_of(groups: ContainersByNode, names: Sequence[str], nodes: Sequence[str]) -> list[int]:
    """Number of the node of each container.

    >>> nodes_of({"a": ["PS"], "b": ["W1", "W2"]}, ["PS", "W1", "W2"], ["a", "b"])
    [0, 1, 1]
    """
    node_of = {name: node for node, inside in groups.items() for name in inside}
    return [nodes.index(node_of[name]) for name in names]


def containers_of(
    plan: Sequence[int] | Ints, names: Sequence[str], nodes: Sequence[str]
) -> dict[str, list[str]]:
    """Containers of each node, the inverse of `nodes_of`.

    >>> containers_of([0, 1, 1], ["PS", "W1", "W2"], ["a", "b"])
    {'a': ['PS'], 'b': ['W1', 'W2']}
    """
    return {
        node: [name for name, at in zip(names, plan, strict=True) if nodes[at] == node]
        for node in nodes
    }


def lanes(groups: ContainersByNode, notes: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Bars of a chart of a plan: a lane per node, and in it a bar of length 1 per container.

    ``notes`` are appended to the names of nodes.
    """
    rows = []
    for node, inside in groups.items():
        lane = f"{node}{(notes or {}).get(node, '')}"
        rows += [(lane, f"job {name[:2]}", name, at, at + 1) for at, name in enumerate(inside)]
        # an empty node keeps its lane
        rows += [(lane, "job J1", "", 0, 0)] if not inside else []
    return pd.DataFrame(rows, columns=["node", "job", "container", "start", "end"])


def sampled_batch(
    rng: np.random.Generator, nodes: int, jobs: int, gpus: int, most_workers: int
) -> tuple[NodeResources, list[Gang]]:
    """Empty nodes and random jobs of a parameter server and 1 to ``most_workers`` workers."""
    gangs = [Gang(1, int(rng.integers(1, most_workers + 1))) for _ in range(jobs)]
    return NodeResources(Cluster.parse(f"{nodes}x{gpus}")), gangs


def least_objective(node_resources: NodeResources, gangs: Sequence[Gang], weight: float) -> float:
    """Least objective (Eqs 7 and 8) of all plans that fit; only for small batches."""
    count = sum(gang.size for gang in gangs)
    nodes = len(node_resources.idle)
    plans = np.indices((nodes,) * count).reshape(count, -1).T
    used = (plans[:, :, None] == np.arange(nodes)).sum(axis=1)
    fits = (used <= node_resources.idle).all(axis=1)
    return float(node_resources.objectives(plans[fits], gangs, weight).min())


def whole_batches(total: int, rates: Sequence[float]) -> list[int]:
    """Whole numbers of images in proportion to rates of computation; they add up to ``total``.

    >>> whole_batches(128, [1, 1, 1])
    [43, 43, 42]
    """
    shares = total * np.array(rates) / sum(rates)
    whole = np.floor(shares).astype(int)
    whole[np.argsort(whole - shares, kind="stable")[: total - whole.sum()]] += 1
    return [int(count) for count in whole]
