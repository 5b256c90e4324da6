"""What a cluster is made of, and the short specs that describe one (``8x8``, ``36xv100``)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from repro.base.errors import ParamError
from repro.model.cluster.files import read_nodes
from repro.model.cluster.node import MAX_GPUS_PER_NODE, MAX_NODES, Node

MAX_TYPE_NAME = 100
FILE_SUFFIXES = (".csv", ".yaml", ".yml")
ACCEPTED = (
    "accepted: NODESxGPUS (8x8), NODESxGPUS:TYPE (8x4:v100), SWITCHESxNODESxGPUS (5x32x8), "
    "SERVERSxTYPE (36xv100), several joined by commas, or a .csv or .yaml file"
)

_GRID = re.compile(r"([0-9]+)x([0-9]+)(?:x([0-9]+))?(?::([A-Za-z][\w.+-]*))?")
_TYPED = re.compile(r"([0-9]+)x([A-Za-z][\w.+-]*)")


@dataclass(frozen=True, repr=False)
class Cluster:
    """The machines of a cluster, in index order; its name is the spec or file name it came from.

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
        """Machines in the cluster."""
        return len(self.nodes)

    @cached_property
    def gpus_per_node(self) -> int:
        """GPUs of the largest machine."""
        return max((node.gpus for node in self.nodes), default=0)

    @cached_property
    def gpu_types(self) -> dict[str, int]:
        """GPUs of each type, in order of first appearance; untyped GPUs are left out."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if node.gpu_type is not None:
                found[node.gpu_type] = found.get(node.gpu_type, 0) + node.gpus
        return found

    @cached_property
    def switches(self) -> dict[int, tuple[int, ...]]:
        """Node indices under each switch, switches and nodes in ascending order."""
        members: dict[int, list[int]] = {}
        for index, node in enumerate(self.nodes):
            members.setdefault(node.switch, []).append(index)
        return {switch: tuple(members[switch]) for switch in sorted(members)}

    @classmethod
    def parse(cls, spec: str | os.PathLike[str] | Cluster) -> Cluster:
        """Build a cluster from a short spec or a file.

        Parameters
        ----------
        spec : str, path or Cluster
            ``8x8`` (nodes x GPUs), ``8x4:v100`` (of a type), ``5x32x8`` (switches x nodes per
            switch x GPUs), ``36xv100`` (single-GPU servers of a type), several joined by commas;
            or a CSV or YAML file, see `repro.model.cluster.files`. A Cluster is returned as it is.
            Parts without a switch number share one switch; ``SxNxG`` opens S new ones.

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
        if isinstance(spec, os.PathLike) or _is_file_name(text):
            path = Path(text).expanduser()
            made = cls(read_nodes(path), path.name)
        else:
            made = cls(_parse_parts(text), re.sub(r"\s+", "", text).replace("×", "x"))
        _check_types(list(made.gpu_types), text)
        return made

    def __str__(self) -> str:
        return self.name or f"{self.num_nodes} nodes with {self.num_gpus} GPUs"

    def __repr__(self) -> str:
        return f"Cluster({str(self)!r}, nodes={self.num_nodes}, gpus={self.num_gpus})"


def _is_file_name(text: str) -> bool:
    return text.lower().endswith(FILE_SUFFIXES) or "/" in text or os.sep in text


def _parse_parts(text: str) -> tuple[Node, ...]:
    nodes: tuple[Node, ...] = ()
    shared: int | None = None
    next_switch = 0
    for part in text.split(","):
        word = part.strip().replace("×", "x").replace("X", "x", 2)
        grid = _GRID.fullmatch(word)
        typed = _TYPED.fullmatch(word)
        gpu_type = grid[4] if grid else None
        if grid and grid[3]:
            switches, per_switch, gpus = (_count(grid[n], part, text) for n in (1, 2, 3))
        elif grid:
            switches = 0
            per_switch, gpus = (_count(grid[n], part, text) for n in (1, 2))
        elif typed:
            switches = 0
            per_switch = _count(typed[1], part, text)
            gpus = 1
            gpu_type = typed[2]
        else:
            raise ParamError(
                f"cluster spec {_short(text)!r}: cannot read {_short(part)!r}; {ACCEPTED}"
            )
        total = len(nodes) + max(switches, 1) * per_switch
        if gpus > MAX_GPUS_PER_NODE or total > MAX_NODES:
            raise ParamError(
                f"cluster spec {_short(text)!r}: {_short(part.strip())!r} makes {total} nodes, "
                f"{gpus} GPUs in one; at most {MAX_NODES} nodes of {MAX_GPUS_PER_NODE} GPUs "
                "are accepted"
            )
        if switches:
            numbers: Sequence[int] = range(next_switch, next_switch + switches)
            next_switch += switches
        else:
            if shared is None:
                shared = next_switch
                next_switch = next_switch + 1
            numbers = (shared,)
        for switch in numbers:
            nodes += (Node(gpus, gpu_type, switch),) * per_switch
    return nodes


def _check_types(names: list[str], text: str) -> None:
    """Refuse names of GPU types that no reader could tell apart."""
    for name in names:
        twins = [other for other in names if other.lower() == name.lower()]
        if len(twins) > 1:
            raise ParamError(
                f"cluster {_short(text)!r}: the GPU types {' and '.join(map(repr, twins))} differ "
                "only in case; spell one type one way"
            )
        if len(name) > MAX_TYPE_NAME:
            raise ParamError(
                f"cluster {_short(text)!r}: the name of a GPU type has {len(name):,} characters; "
                f"at most {MAX_TYPE_NAME} are accepted"
            )


def _count(digits: str, part: str, text: str) -> int:
    # int() refuses thousands of digits; twelve are already more than any accepted number.
    value = int(digits.lstrip("0")[:12] or "0")
    if value == 0:
        raise ParamError(
            f"cluster spec {_short(text)!r}: {_short(part.strip())!r} asks for zero; "
            "every number must be at least 1, e.g. 8x8"
        )
    return value


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def gpus_by_type(cluster: Cluster) -> dict[str | None, int]:
    """Return GPUs per type; a cluster without types has the one key None."""
    kinds: list[str | None] = list(cluster.gpu_types)
    counts = cluster.gpu_types.values()
    return dict(zip(kinds, counts, strict=True)) or {None: cluster.num_gpus}
