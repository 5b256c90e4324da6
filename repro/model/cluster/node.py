"""One machine of a cluster, and how many and how large they may be."""

import math
from dataclasses import dataclass

MAX_NODES = 1_000_000
MAX_GPUS_PER_NODE = 1024


@dataclass(frozen=True)
class Node:
    """One machine; nodes under one switch make a rack, racks make a domain.

    ``gpus`` are those that jobs can get, ``used`` those taken beforehand by others. The memory of a
    GPU (MB) and the link of the node (MB/s) are infinite where nobody says.
    """

    gpus: int
    gpu_type: str | None = None
    switch: int = 0
    domain: int = 0
    used: int = 0
    gpu_mem_mb: float = math.inf
    bandwidth_mb_s: float = math.inf

    @property
    def total(self) -> int:
        """All GPUs of the machine."""
        return self.gpus + self.used
