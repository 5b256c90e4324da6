"""Clusters: which nodes there are, of which type, under which switch."""

from repro.cluster.node import Node
from repro.cluster.spec import Cluster

__all__ = ["Cluster", "Node"]
