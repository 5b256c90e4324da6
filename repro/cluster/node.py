"""One machine of a cluster, and how many and how large they may be."""

from dataclasses import dataclass

MAX_NODES = 1_000_000
MAX_GPUS_PER_NODE = 1024


@dataclass(frozen=True)
class Node:
    """One machine."""

    gpus: int
    gpu_type: str | None = None
    switch: int = 0
