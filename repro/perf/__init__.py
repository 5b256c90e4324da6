"""Performance models: the rates of running jobs, and the cost of starts and preemptions."""

from repro.perf.on_types import OnTypes
from repro.perf.parameter_server import IterationModel, MeasuredPlans, TrainedModel
from repro.perf.slowdown import Slowdown, slowed
from repro.perf.speedup import SpeedUp, load_speedups, pcs_speedups
from repro.perf.stages import Interleaving
from repro.perf.throughput import ThroughputTable

__all__ = [
    "Interleaving",
    "IterationModel",
    "MeasuredPlans",
    "OnTypes",
    "Slowdown",
    "SpeedUp",
    "ThroughputTable",
    "TrainedModel",
    "load_speedups",
    "pcs_speedups",
    "slowed",
]
