"""Generators of synthetic traces, by name: ``make("testbed", rng)``.

Each draws from tables of measured or published facts in ``traces/`` and from the random generator
it is handed, and from nothing else: the same generator state gives the same trace.
"""

from repro.core.discovery import fill
from repro.trace.synth.history import history_quantiles
from repro.trace.synth.registry import (
    generators,
    is_known,
    make,
    names,
    stand_in_for,
    stand_in_options,
    takes_seed,
)

__all__ = [
    "discover",
    "history_quantiles",
    "is_known",
    "make",
    "names",
    "stand_in_for",
    "stand_in_options",
    "takes_seed",
]


def discover() -> None:
    """Import every generator."""
    fill(generators, __name__)
