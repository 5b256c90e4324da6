"""Clusters: which nodes there are, of which type, under which switch."""

from repro.cluster.spec import Cluster, Node

__all__ = ["Cluster", "Node"]
