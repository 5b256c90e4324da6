"""One machine of a cluster, and how many and how large they may be."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NODES = 1_000_000
MAX_GPUS_PER_NODE = 1024


@dataclass(frozen=True)
class Node:
    """One machine.

    Parameters
    ----------
    gpus : int
        GPUs in the machine.
    gpu_type : str or None
        Name of the GPU model; None when the cluster does not tell types apart.
    switch : int
        Number of the switch (rack) the machine hangs on.
    """

    gpus: int
    gpu_type: str | None = None
    switch: int = 0
