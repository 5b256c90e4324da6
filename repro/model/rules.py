"""Named rule sets: the event rules that `--rules` chooses.

``paper`` follows the papers. Each other rule set follows the public simulator of one paper. The
table lists every rule that differs from ``paper``. All other rules are those of ``paper``. `Rules`,
the docstrings of the policies and the pages ``docs/rules*.md`` explain the rules.

=========================== ========= ============== ============== ======================
rule                        paper     rule sets      value          where
=========================== ========= ============== ============== ======================
whole_seconds               False     tiresias       True           RULES
trace_clock                 False     tiresias, muri True           RULES
iterations                  None      muri           1.015          RULES
start_overhead              False     muri           True           RULES
tie_rel                     0.0       muri           1e-09          RULES
p99_by_index                False     muri           True           RULES
ticks_per_second            1.0       pcs            1000000.0      RULES
steps                       False     gavel          True           RULES
min_realloc_interval_s      0.0       gavel          1920.0         RULES (rounds)
whole_steps                 False     gavel          True           RULES (rounds)
drop_unallocated            False     gavel          True           RULES (rounds)
idle_reset                  False     gavel          True           RULES (rounds)
default of predict          none      pcs            all jobs       engine.simulate
default of keep_intervals   True      pcs            False          engine.simulate
default of perf             nominal   pcs            pcs_speedups() engine.simulate
tolerance of completions    1e-13     pcs            0.0            engine.elastic
stand-ins (CLI)             used      all others     refused        cli.simulate
--placement-sensitive       allowed   gavel          refused        cli.simulate
thresholds                  (3200,)   tiresias, muri (3250, 7200)   tiresias_l, tiresias_g
exact_demotion              True      tiresias, muri False          tiresias_l, tiresias_g
whole_second_limits         False     muri           True           tiresias_l, tiresias_g
history_ties                False     tiresias, muri True           tiresias_l, tiresias_g
cumulative_waiting          False     tiresias, muri True           tiresias_l, tiresias_g
index                       remaining tiresias       total          tiresias_g
step_s                      inf       tiresias       10.0           gandiva
form                        paper     tiresias       simulator      gandiva
history_ties                False     tiresias       True           known_durations
refill                      False     muri           True           known_durations
measured_factors            False     muri           True           muri
halving_rounds              True      muri           False          muri
best_first                  True      muri           False          muri
wide_first                  False     muri           True           muri
tie_window_s                0.0       muri           0.0001         muri
residue                     False     muri           True           antman
form                        leases    muri           shares         themis
rho_speed                   speedup   pcs            linear         themis
iterations_in_denominator   False     muri           True           themis
form                        closed    gavel          centre         las
assign                      drawn     gavel          last           fifo_agnostic
any_pair                    False     gavel          True           gandiva_ss
tolerance                   0.0       gavel          0.05           makespan, makespan_ss
objective                   ratio     gavel          normalised     min_cost, min_cost_slo
drop_lost                   True      gavel          False          min_cost_slo
=========================== ========= ============== ============== ======================

`RULES` has the rule sets, and ``(rounds)`` is the field `Rules.rounds`. Names with a dot are
modules of `repro`. All other names are modules of `repro.policies`, which set parameters by
`Policy.rule_values`.

On a generated trace the default of idle_reset is False even under ``gavel`` (engine.simulate).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from repro.base.errors import refuse_unknown


class Completions(NamedTuple):
    """When the engine notices completions, set by a policy (`Policy.completions`)."""

    #: a completion within this time (s) of the next arrival is one event with the arrival
    tie_s: float = 0.0
    #: completions are one event if their instants differ by at most this part of the instant. None:
    #: `Rules.tie_rel`.
    tie_rel: float | None = None
    #: period (s), counted from the last decision, at which completions are noticed. 0: at once.
    #: Infinity: at decisions only.
    poll_s: float = 0.0
    #: whether the policy may decide at every poll. If jobs pay a start after every decision, the
    #: engine then refuses a job whose start takes `poll_s` or longer.
    decides: bool = False


@dataclass(frozen=True)
class Rules:
    """Event rules of the papers, or of one public simulator."""

    #: true: submission times and durations are cut to whole seconds
    whole_seconds: bool = False
    #: true: the clock starts at 0 of the trace. False: it starts at the first submission.
    trace_clock: bool = False
    #: factor of the iteration times of the trace. With a factor, work is counted in iterations. An
    #: iteration of a job that runs alone takes the factor times the time of the trace. None: work
    #: is not counted in iterations.
    iterations: float | None = None
    #: true: every running job pays its start again after every event (`StartOverhead`)
    start_overhead: bool = False
    #: completions are one event if their instants differ by at most this part of the instant.
    #: Arrivals up to this distance after an event belong to it.
    tie_rel: float = 0.0
    #: true: the 99th percentile is element floor(0.99 N) of the ascending list, and the makespan
    #: is the time of the last completion. False: percentiles interpolate, and the makespan counts
    #: from the first submission.
    p99_by_index: bool = False
    #: true: work is counted in training steps, the column iterations
    steps: bool = False
    #: 1: instants are not rounded. Above 1, instants are rounded to whole ticks, and the policy
    #: must divide GPUs.
    ticks_per_second: float = 1.0
    #: settings of `repro.engine.rounds.settings.RoundSettings`
    rounds: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tick_s(self) -> float:
        """Period of the clock (s); 0 if instants are not rounded."""
        return 1 / self.ticks_per_second if self.ticks_per_second > 1 else 0.0


RULES: dict[str, Rules] = {
    "paper": Rules(),
    "tiresias": Rules(whole_seconds=True, trace_clock=True),
    "muri": Rules(
        trace_clock=True, iterations=1.015, start_overhead=True, tie_rel=1e-9, p99_by_index=True
    ),
    "pcs": Rules(ticks_per_second=1e6),
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
    """Rule set ``name``; a ParamError lists the accepted names if it is unknown."""
    # a list compares values that have no hash, too
    refuse_unknown("unknown rules", [name], list(RULES))
    return RULES[name]
