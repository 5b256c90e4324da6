"""What a run is given beside trace, cluster, policy and placement."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from repro.core.performance import Overhead, Performance
from repro.core.rules import Rules
from repro.sim.rounds.settings import RoundSettings


@dataclass(frozen=True)
class RunSettings:
    """The options of `repro.simulate`, with names and defaults resolved."""

    rules: Rules = field(default_factory=Rules)
    rounds: RoundSettings = field(default_factory=RoundSettings)
    perf: Performance | None = None
    overhead: Overhead | None = None
    interval: float | None = None
    seed: int = 0
    until: Iterable[object] | None = None
    stop_time: float = math.inf
    keep_intervals: bool = True
