"""Stages of an iteration, and the parts that they consist of."""

from __future__ import annotations

from collections.abc import Mapping

#: Stages of an iteration, in their order; each has a resource of its own.
STAGES = ("storage", "cpu", "gpu", "network")
#: Parts of an iteration; the copies of gradients and parameters belong to the network stage.
PARTS = ("storage", "cpu", "h2d", "forward", "backward", "update", "d2h", "push_pull", "h2d_params")


def stage_seconds(parts: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each stage from those of its parts.

    >>> stage_seconds(dict.fromkeys(PARTS, 1.0))
    {'storage': 1.0, 'cpu': 1.0, 'gpu': 4.0, 'network': 3.0}
    """
    return {
        "storage": parts["storage"],
        "cpu": parts["cpu"],
        "gpu": sum(parts[part] for part in ("h2d", "forward", "backward", "update")),
        "network": sum(parts[part] for part in ("d2h", "push_pull", "h2d_params")),
    }
