"""How fast jobs run on what they hold, and what preemption costs."""

from repro.perf.parameter_server import IterationModel, MeasuredPlans, TrainedModel
from repro.perf.speedup import SpeedUp, load_speedups, pcs_speedups
from repro.perf.stages import Interleaving
from repro.perf.throughput import ThroughputTable

__all__ = [
    "Interleaving",
    "IterationModel",
    "MeasuredPlans",
    "SpeedUp",
    "ThroughputTable",
    "TrainedModel",
    "load_speedups",
    "pcs_speedups",
]
