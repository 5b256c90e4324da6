"""Named rule sets: what `--rules` changes in the engine; policies keep their own part."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from repro.base.errors import refuse_unknown


@dataclass(frozen=True)
class Rules:
    """Event rules of one public simulator, or of the papers."""

    #: submission times and durations are cut to whole seconds
    whole_seconds: bool = False
    #: the clock is that of the trace; otherwise it starts at the first submission
    trace_clock: bool = False
    #: work is counted in iterations, each taking this factor times its solo iteration time
    iterations: float | None = None
    #: every running job pays its start after every event (`StartOverhead`)
    start_overhead: bool = False
    #: completions within this relative distance are one event
    tie_rel: float = 0.0
    #: the 99th percentile is the value at index floor(0.99 N) of the ascending list, and makespan
    #: counts from time 0, not from the first submission
    p99_by_index: bool = False
    #: work is counted in training steps
    steps: bool = False
    #: instants are whole multiples of 1/grid seconds if this is above 1: only of divisible GPUs,
    #: whose jobs then speed up by the curves of their models, and are predicted
    grid: float = 1.0
    #: settings of `repro.engine.rounds.settings.RoundSettings`
    rounds: Mapping[str, Any] = field(default_factory=dict)


RULES: dict[str, Rules] = {
    "paper": Rules(),
    "tiresias": Rules(whole_seconds=True, trace_clock=True),
    "muri": Rules(
        trace_clock=True, iterations=1.015, start_overhead=True, tie_rel=1e-9, p99_by_index=True
    ),
    "pcs": Rules(grid=1e6),
    "gavel": Rules(
        steps=True,
        rounds={
            "min_realloc_interval_s": 1920.0,
            "whole_steps": True,
            "drop_unallocated": True,
            "idle_reset": True,
        },
    ),
}


def rules_named(name: str) -> Rules:
    """Return a rule set by name, or raise with the accepted names."""
    refuse_unknown("unknown rules", [name], RULES)
    return RULES[name]
