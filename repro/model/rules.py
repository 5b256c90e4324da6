"""Named rule sets: what `--rules` changes.

The engine's part is the table `RULES` below. A policy's part is its `rule_values`, beside the
parameters that it fills; a rule set that a policy does not name has its values of ``paper``.

==================  =========================================  ==========================
rule sets           parameters that differ from ``paper``      where
==================  =========================================  ==========================
tiresias, muri      queues, demotion, waiting clock, ties      tiresias.tiresias_l
tiresias, muri      the same, index of queues                  tiresias.tiresias_g
tiresias            step_s, form                               tiresias.gandiva
tiresias, muri      history_ties, refill (sf, srtf, srsf)      baselines.known_durations
muri                measured factors, rounds of matching, ...  muri.muri
muri                residue                                    muri.antman
muri                form, iterations_in_denominator            pcs.themis
gavel               form                                       gavel.las (las-agnostic)
gavel               assign                                     gavel.fifo_agnostic
gavel               any_pair                                   gavel.gandiva_ss
gavel               tolerance (both makespan policies)         gavel.makespan
gavel               objective                                  gavel.min_cost
gavel               objective, drop_lost                       gavel.min_cost_slo
==================  =========================================  ==========================

Modules are those of `repro.policies`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from repro.base.errors import refuse_unknown


class Completions(NamedTuple):
    """When the engine notices completions, as far as a policy says (`Policy.completions`)."""

    #: a completion this near the next arrival is one event with it (s)
    tie_s: float = 0.0
    #: relative distance within which completions are one event; None: `Rules.tie_rel`
    tie_rel: float | None = None
    #: completions are looked for every so many seconds, counted from the last decision; 0: they
    #: are noticed at once; infinity: at decisions only
    poll_s: float = 0.0


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
