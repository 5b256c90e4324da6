"""Five papers on scheduling deep-learning jobs on GPU clusters, reproduced end to end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repro.batch.figure import figure
    from repro.cluster.spec import Cluster
    from repro.policies.base import make
    from repro.sim.records import Result
    from repro.sim.simulate import simulate
    from repro.trace.load import load

__version__ = "0.3.0"
__all__ = ["Cluster", "Result", "__version__", "figure", "load", "make", "simulate"]

#: Sources that are newer than this are not what this process runs.
STARTED = time.time()

_HOMES = {
    "Cluster": "repro.cluster.spec",
    "Result": "repro.sim.records",
    "figure": "repro.batch.figure",
    "load": "repro.trace.load",
    "make": "repro.policies.base",
    "simulate": "repro.sim.simulate",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that the command line answers at once."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'repro' has no attribute {name!r}")
