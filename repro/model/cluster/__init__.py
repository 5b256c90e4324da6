"""Clusters: nodes with their GPUs, GPU types, switches and domains."""

from repro.model.cluster.node import Node
from repro.model.cluster.spec import Cluster

__all__ = ["Cluster", "Node"]
