"""Generators of synthetic traces, by name: ``make("testbed", rng)``.

Each generator draws from tables of measured or published facts in ``traces/`` and from the random
generator it is handed, and from nothing else: the same generator state gives the same trace.
"""

from repro.trace.synth.history import history_quantiles
from repro.trace.synth.registry import (
    is_known,
    make,
    names,
    stand_in_for,
    stand_in_options,
    takes_seed,
)

__all__ = [
    "history_quantiles",
    "is_known",
    "make",
    "names",
    "stand_in_for",
    "stand_in_options",
    "takes_seed",
]
