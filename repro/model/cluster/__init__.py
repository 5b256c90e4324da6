"""Clusters: which nodes there are, of which type, under which switch."""

from repro.model.cluster.node import Node
from repro.model.cluster.spec import Cluster

__all__ = ["Cluster", "Node"]
