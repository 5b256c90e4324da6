"""How fast jobs run on what they hold, and what preemption costs."""

from repro.perf.interleaving import Interleaving
from repro.perf.parameter_server import IterationModel, MeasuredPlans, TrainedModel
from repro.perf.speedup import SpeedUp
from repro.perf.throughput import ThroughputTable

__all__ = [
    "Interleaving",
    "IterationModel",
    "MeasuredPlans",
    "SpeedUp",
    "ThroughputTable",
    "TrainedModel",
]
