"""Rounds: how `Shares` (a fraction of time per job and GPU type) become whole rounds.

Gavel section 5: at every round boundary each (job, GPU type) pair has priority X / rounds received,
and pairs are taken greedily from the highest priority down, a job at most once per round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from repro.base.errors import ParamError
from repro.model.settings import Above, AtLeast, check_settings

Seconds = Annotated[float, AtLeast(0, "seconds", finite=True)]

_TIMES = ("round_s", "min_realloc_interval_s", "max_realloc_interval_s", "preemption_overhead_s")
_SWITCHES = (
    "whole_steps",
    "whole_queue",
    "shuffle_types",
    "drop_unallocated",
    "lease_renewal",
    "idle_reset",
)


@dataclass(frozen=True)
class RoundSettings:
    """How rounds go (Gavel, OSDI 2020, section 5)."""

    #: length of a round (s); six minutes in Gavel
    round_s: Annotated[float, Above(0, "seconds", finite=True)] = 360.0
    #: X is computed anew after an arrival or a completion, but not sooner than this (s)
    min_realloc_interval_s: Seconds = 0.0
    #: after the last arrival X is computed at once where a round ran nobody, however new it is
    idle_reset: bool = False
    #: no rounds: every job progresses at its share of each type; ``fluid`` at every instant,
    #: ``artifact`` as in the public simulator, where jobs end only at arrivals
    ideal: Literal["fluid", "artifact"] | None = None
    #: a round is as many whole training steps as fit, and the next begins with the end of the
    #: last; otherwise rounds lie on the grid of multiples of ``round_s``
    whole_steps: bool = False
    #: rounds every job is taken to have received of each type when X is new; with 0 those that
    #: received none come first, as the paper says
    prior_rounds: Annotated[float, AtLeast(0, finite=True)] = 0.5
    #: one queue over all GPU types, as the paper says; otherwise one type is filled after the
    #: other, as the runs behind its figures did
    whole_queue: bool = False
    #: with a queue per type: policies that do not tell types apart fill them in an order that is
    #: drawn anew for every round
    shuffle_types: bool = True
    #: a job that arrived since X was computed may be chosen for GPUs left over, which then idle
    drop_unallocated: bool = False
    #: a job that keeps its GPUs goes on without a checkpoint
    lease_renewal: bool = True
    #: time lost when a job resumes on other GPUs, or without a lease at every round (s)
    preemption_overhead_s: Seconds = 0.0
    #: X is computed anew when it is so old (s), also if no job arrived or ended; 0: never
    max_realloc_interval_s: Seconds = 0.0
    #: a round with fewer steps than the job has GPUs is lost, and X computed anew; a job that has
    #: lost so many is given up; 0: no round is lost
    gang_tries: Annotated[int, AtLeast(0)] = 0

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RoundSettings:
        """Make settings from names and values, or raise ParamError with the accepted ones."""
        names = [field.name for field in fields(cls)]
        for key in values:
            if key not in names:
                raise ParamError(f"no round setting {key!r}; accepted: {', '.join(names)}")
        return cls(**values)

    def __post_init__(self) -> None:
        check_settings("round setting", self)
        if self.gang_tries and not self.whole_steps:
            raise ParamError(
                f"round setting gang_tries is {self.gang_tries!r}; give 0, or choose rules that "
                "count training steps"
            )
        if self.ideal == "artifact" and not self.whole_steps:
            raise ParamError(
                "round setting ideal is 'artifact', which counts whole training steps; use rules "
                "gavel, or ideal 'fluid'"
            )
        if not self.preemption_overhead_s < self.round_s:
            raise ParamError(
                f"round setting preemption_overhead_s is {self.preemption_overhead_s:g} s, a round "
                f"{self.round_s:g} s; an overhead must be shorter than a round"
            )

    def unused(self, tells_types: bool) -> set[str]:
        """Return the settings that change nothing, given whether the policy tells types apart."""
        if self.ideal is None:
            return {"shuffle_types"} if tells_types else set()
        of_rounds = {*_SWITCHES, "round_s", "prior_rounds", "gang_tries"} - {"whole_steps"}
        return of_rounds | ({"preemption_overhead_s"} if self.whole_steps else set())

    def stretched(self, factor: float) -> dict[str, float]:
        """Return the settings in seconds, multiplied."""
        return {name: factor * getattr(self, name) for name in _TIMES}
