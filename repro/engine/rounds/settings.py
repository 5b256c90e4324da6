"""Settings of rounds, which realise `Shares` (X, a fraction of time per job and GPU type).

In every round, job m on GPU type j has priority X_mj / f_mj, where f_mj is the fraction of the time
on type j that m has received. With ``prior_rounds`` = 0 the priority is the paper's X_mj /
rounds_received_mj. A round runs jobs in descending order of priority, each at most once (Gavel,
section 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from repro.base.errors import ParamError
from repro.model.settings import Above, AtLeast, check_settings

Seconds = Annotated[float, AtLeast(0, "seconds", finite=True)]

#: Settings in seconds.
_TIMES = ("round_s", "min_realloc_interval_s", "max_realloc_interval_s", "preemption_overhead_s")
#: Settings that are true or false.
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
    """Settings of the round mechanism (Gavel, OSDI 2020, section 5)."""

    #: length of a round (s); six minutes in Gavel
    round_s: Annotated[float, Above(0, "seconds", finite=True)] = 360.0
    #: smallest age of X (s) at which the policy computes X again after an arrival or a completion
    min_realloc_interval_s: Seconds = 0.0
    #: once all jobs of the trace have arrived, X may be computed right after an empty round,
    #: whatever its age
    idle_reset: bool = False
    #: execution without rounds, in which every job progresses at its share of each type. With
    #: ``fluid`` jobs progress at every instant. With ``artifact`` they make whole steps, and
    #: a job that completes between two arrivals ends at the later arrival
    ideal: Literal["fluid", "artifact"] | None = None
    #: a round has as many whole training steps as fit, and the next round begins as it ends.
    #: Otherwise rounds begin at the multiples of ``round_s``
    whole_steps: bool = False
    #: rounds credited to each job on each GPU type when X is new. With 0, as in the paper, jobs
    #: without a round have infinite priority
    prior_rounds: Annotated[float, AtLeast(0, finite=True)] = 0.5
    #: one queue over all GPU types, as in the paper. Otherwise types are filled one after the
    #: other, as in the runs behind the paper's figures
    whole_queue: bool = False
    #: with a queue per type: the order of types is sampled anew for every round, if the policy
    #: ignores GPU types
    shuffle_types: bool = True
    #: a job that arrived after X was computed may be chosen for leftover GPUs, but does not run, so
    #: the GPUs stay idle. Otherwise it runs on them
    drop_unallocated: bool = False
    #: a job that keeps its GPUs continues without a checkpoint
    lease_renewal: bool = True
    #: time lost when a job resumes on other GPUs, and at every round without lease renewal (s)
    preemption_overhead_s: Seconds = 0.0
    #: age at which X is computed anew even without arrivals and completions (s); 0: never
    max_realloc_interval_s: Seconds = 0.0
    #: a job that would make fewer steps in a round than it has GPUs loses the round, and X is
    #: computed anew. At this number of lost rounds the job is given up: it ends with that round,
    #: and the column ``given_up`` marks it. With 0, no round is lost
    gang_tries: Annotated[int, AtLeast(0)] = 0

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RoundSettings:
        """Build settings from values by name; a ParamError lists the accepted names."""
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

    @property
    def samples_type_order(self) -> bool:
        """Whether rounds sample the order of GPU types under a policy that ignores types."""
        return self.shuffle_types and self.ideal is None

    def unused(self, tells_types: bool) -> set[str]:
        """Names of settings without effect; ``tells_types`` is the trait of the policy."""
        if self.ideal is None:
            return {"shuffle_types"} if tells_types else set()
        names = {*_SWITCHES, "round_s", "prior_rounds", "gang_tries"} - {"whole_steps"}
        if self.whole_steps:
            names.add("preemption_overhead_s")
        return names

    def stretched(self, factor: float) -> dict[str, float]:
        """Multiply all settings in seconds by a factor."""
        return {name: factor * getattr(self, name) for name in _TIMES}
