"""The cluster of a run, from a short spec such as ``8x8`` or ``36xv100``, or from a file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from repro.base.errors import ParamError
from repro.base.paths import expanded
from repro.model.cluster.files import read_nodes
from repro.model.cluster.node import MAX_GPUS_PER_NODE, MAX_NODES, Node
from repro.model.cluster.topology import (
    NodeLimits,
    Racks,
    is_one_rack,
    limits_of,
    one_rack,
    racks_of,
    tree_of,
)

MAX_TYPE_NAME = 100
FILE_SUFFIXES = (".csv", ".yaml", ".yml")
ACCEPTED = (
    "accepted: NODESxGPUS (8x8), NODESxGPUS:TYPE (8x4:v100), SWITCHESxNODESxGPUS (5x32x8), "
    "SERVERSxTYPE (36xv100), several joined by commas, or a .csv or .yaml file"
)

_GRID = re.compile(r"([0-9]+)[xX×]([0-9]+)(?:[xX×]([0-9]+))?(?::([A-Za-z][\w.+-]*))?")
_TYPED = re.compile(r"([0-9]+)[xX×]([A-Za-z][\w.+-]*)")


@dataclass(frozen=True, repr=False)
class Cluster:
    """Nodes of a cluster, in order of their index, with the spec or file name as its name.

    Parameters
    ----------
    nodes : tuple of Node
        Nodes, each with GPUs, GPU type, switch and domain. `Cluster.parse` makes them from text.
    name : str
        Spec or file name, for messages and records.

    Examples
    --------
    >>> cluster = Cluster.parse("15x4")
    >>> cluster.num_gpus, cluster.num_nodes, cluster.gpus_per_node
    (60, 15, 4)
    >>> Cluster.parse("36xv100,36xk80").gpu_types
    {'v100': 36, 'k80': 36}
    """

    nodes: tuple[Node, ...]
    name: str = ""

    @cached_property
    def num_gpus(self) -> int:
        """GPUs that jobs can get in the whole cluster."""
        return sum(node.gpus for node in self.nodes)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @cached_property
    def gpus_per_node(self) -> int:
        """GPUs of the largest node."""
        return max((node.gpus for node in self.nodes), default=0)

    @cached_property
    def gpu_types(self) -> dict[str, int]:
        """GPUs of each type that jobs can get, in order of first appearance.

        Untyped GPUs are left out, and so are types whose GPUs are all in use by other work.
        """
        counts: dict[str, int] = {}
        for node in self.nodes:
            if node.gpu_type is not None and node.gpus:
                counts[node.gpu_type] = counts.get(node.gpu_type, 0) + node.gpus
        return counts

    @cached_property
    def topology(self) -> Any:
        """Tree of domains, racks and nodes, a `networkx.DiGraph`.

        `repro.model.cluster.topology.tree_of` names its nodes and their attributes.
        """
        return tree_of(self.nodes)

    @cached_property
    def racks(self) -> Racks:
        """Rack and domain of each node, as arrays read once from `topology`.

        A cluster of one rack needs no tree, so `topology` is not made for it.
        """
        if is_one_rack(self.nodes):
            return one_rack(self.num_nodes)
        return racks_of(self.topology)

    @cached_property
    def limits(self) -> NodeLimits:
        """GPUs, memory of a GPU and link of each node, as arrays."""
        return limits_of(self.nodes)

    @cached_property
    def switches(self) -> dict[int, tuple[int, ...]]:
        """Number of a switch -> indices of the nodes under the switches with this number.

        Numbers and indices are in ascending order. Switches of several domains may have the same
        number. `racks` tells their racks apart.
        """
        nodes: dict[int, tuple[int, ...]] = {}
        for members in self.racks.members:
            switch = self.nodes[members[0]].switch
            nodes[switch] = tuple(sorted(nodes.get(switch, ()) + members))
        return nodes

    def without_types(self) -> Cluster:
        """The same nodes with GPUs of no type.

        >>> Cluster.parse("2xv100,1xk80").without_types().gpu_types
        {}
        """
        if not self.gpu_types:
            return self
        untyped = {node: replace(node, gpu_type=None) for node in set(self.nodes)}
        return Cluster(tuple(untyped[node] for node in self.nodes), str(self))

    @classmethod
    def parse(cls, spec: str | os.PathLike[str] | Cluster) -> Cluster:
        """Build a cluster from a short spec or a file.

        Parameters
        ----------
        spec : str, path or Cluster
            Sets of equal nodes, joined by commas: ``8x8`` (nodes x GPUs), ``8x4:v100`` (of a type),
            ``5x32x8`` (switches x nodes per switch x GPUs), ``36xv100`` (nodes with one GPU of a
            type). Sets without a number of switches share one switch. All other sets have switches
            of their own. The spec may also be a Cluster, which is returned unchanged, or a file:
            YAML, a Tiresias cluster, or the node list of openb, Philly or PAI, see
            docs/formats/clusters.md.

        Returns
        -------
        Cluster
            Cluster with the text or the name of the file as its name.

        Raises
        ------
        ParamError
            If the spec cannot be read, names GPU types that differ only in case, or is too large.
        TraceError
            If a file has a value that is not accepted; the message has file, line and column.

        Examples
        --------
        >>> Cluster.parse("2x4:v100,8xk80").num_gpus
        16
        """
        if isinstance(spec, Cluster):
            return spec
        if not isinstance(spec, str | os.PathLike):
            raise ParamError(f"cluster spec {spec!r} is a {type(spec).__name__}; {ACCEPTED}")
        text = os.fspath(spec).strip()
        if isinstance(spec, os.PathLike) or is_file_name(text):
            path = expanded(text)
            cluster = cls(read_nodes(path), path.name)
        else:
            name = re.sub(r"\s+", "", text).replace("×", "x")
            cluster = cls(_parse_nodes(text), name)
        _check_types(list(cluster.gpu_types), text)
        return cluster

    def __str__(self) -> str:
        return self.name or f"{self.num_nodes} nodes with {self.num_gpus} GPUs"

    def __repr__(self) -> str:
        return f"Cluster({str(self)!r}, nodes={self.num_nodes}, gpus={self.num_gpus})"


def is_file_name(text: str) -> bool:
    """Whether a spec is the name of a file.

    A text with a slash or with one of `FILE_SUFFIXES` is a file name. Any other text is a file name
    if it does not look like a spec and a file of this name exists.
    """
    if text.lower().endswith(FILE_SUFFIXES) or "/" in text or os.sep in text:
        return True
    looks_like_spec = "," in text or _GRID.fullmatch(text) or _TYPED.fullmatch(text)
    return not looks_like_spec and os.path.isfile(text)


class _NodeSet(NamedTuple):
    """Set of equal nodes of a spec. With ``switches`` 0 they are under the shared switch."""

    switches: int
    nodes_per_switch: int
    gpus: int
    gpu_type: str | None


def _parse_nodes(text: str) -> tuple[Node, ...]:
    """Nodes of a spec, word by word."""
    nodes: list[Node] = []
    shared_switch: int | None = None
    next_switch = 0
    for word in text.split(","):
        node_set = _parse_word(word, text)
        total = len(nodes) + max(node_set.switches, 1) * node_set.nodes_per_switch
        if node_set.gpus > MAX_GPUS_PER_NODE or total > MAX_NODES:
            raise ParamError(
                f"cluster spec {_short(text)!r}: {_short(word.strip())!r} makes {total} nodes, "
                f"{node_set.gpus} GPUs in one; at most {MAX_NODES} nodes of {MAX_GPUS_PER_NODE} "
                "GPUs are accepted"
            )
        if node_set.switches:
            switches: Sequence[int] = range(next_switch, next_switch + node_set.switches)
            next_switch += node_set.switches
        else:
            if shared_switch is None:
                shared_switch = next_switch
                next_switch += 1
            switches = (shared_switch,)
        for switch in switches:
            nodes += [Node(node_set.gpus, node_set.gpu_type, switch)] * node_set.nodes_per_switch
    return tuple(nodes)


def _parse_word(word: str, text: str) -> _NodeSet:
    """Set of equal nodes that a word of a spec describes."""
    grid = _GRID.fullmatch(word.strip())
    if grid and grid[3]:
        switches, nodes, gpus = (_count(grid[n], word, text) for n in (1, 2, 3))
        return _NodeSet(switches, nodes, gpus, grid[4])
    if grid:
        nodes, gpus = (_count(grid[n], word, text) for n in (1, 2))
        return _NodeSet(0, nodes, gpus, grid[4])
    typed = _TYPED.fullmatch(word.strip())
    if typed:
        return _NodeSet(0, _count(typed[1], word, text), 1, typed[2])
    whole = "" if word == text else f" {_short(text)!r}"
    raise ParamError(f"cluster spec{whole}: cannot read {_short(word)!r}; {ACCEPTED}")


def _check_types(names: list[str], text: str) -> None:
    """Refuse GPU types that differ in upper and lower case alone, and names that are too long."""
    for name in names:
        spellings = [other for other in names if other.lower() == name.lower()]
        if len(spellings) > 1:
            raise ParamError(
                f"cluster {_short(text)!r}: the GPU types {' and '.join(map(repr, spellings))} "
                "differ only in case; write each type in one way"
            )
        if len(name) > MAX_TYPE_NAME:
            raise ParamError(
                f"cluster {_short(text)!r}: the name of a GPU type has {len(name):,} characters; "
                f"at most {MAX_TYPE_NAME} are accepted"
            )


def _count(digits: str, word: str, text: str) -> int:
    """Positive number from its digits; messages show the word and the spec."""
    # int() refuses thousands of digits, and twelve digits are above every limit
    value = int(digits.lstrip("0")[:12] or "0")
    if value == 0:
        raise ParamError(
            f"cluster spec {_short(text)!r}: {_short(word.strip())!r} asks for zero; "
            "every number must be at least 1, e.g. 8x8"
        )
    return value


def _short(text: str) -> str:
    """Text cut to 60 characters."""
    return text if len(text) <= 60 else text[:57] + "..."


def gpus_by_type(cluster: Cluster) -> dict[str | None, int]:
    """GPUs of each type. A cluster without types has one entry, with the key None."""
    counts: dict[str | None, int] = {}
    counts.update(cluster.gpu_types)
    return counts or {None: cluster.num_gpus}
