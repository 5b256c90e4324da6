"""All pairs."""

from __future__ import annotations

import importlib.util

from tools.two_ways import batches, runs, solvers
from tools.two_ways.pair import Pair

PAIRS: tuple[Pair, ...] = (*runs.PAIRS, *batches.PAIRS, *solvers.PAIRS)
BY_NAME = {pair.name: pair for pair in PAIRS}


def missing(pair: Pair) -> list[str]:
    """Optional packages that a pair needs and that are not installed."""
    return [name for name in pair.needs if importlib.util.find_spec(name) is None]
