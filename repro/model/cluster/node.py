"""A node of a cluster, and the limits on number and size of nodes."""

import math
from dataclasses import dataclass

MAX_NODES = 1_000_000
MAX_GPUS_PER_NODE = 1024


@dataclass(frozen=True)
class Node:
    """A machine. Nodes under one switch make a rack, and racks make a domain.

    Jobs of the trace can get ``gpus``. Other work holds ``used`` further GPUs. Memory of a GPU
    (``gpu_mem_mb``, MB) and link of the node (``bandwidth_mb_s``, MB/s) are infinite by default.
    CPU cores (``cpus``) and memory of the node (``memory_mib``, MiB) are infinite where unknown.
    """

    gpus: int
    gpu_type: str | None = None
    switch: int = 0
    domain: int = 0
    used: int = 0
    gpu_mem_mb: float = math.inf
    bandwidth_mb_s: float = math.inf
    cpus: float = math.inf
    memory_mib: float = math.inf

    @property
    def total(self) -> int:
        """All GPUs of the node, also the ``used`` GPUs."""
        return self.gpus + self.used
