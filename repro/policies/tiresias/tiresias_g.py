"""Tiresias-G: Discretised 2D-Gittins (Tiresias, sections 3.2.1 and 3.2.3).

Queues, demotion and promotion are those of `TiresiasL`, with limits Q_1 < ... < Q_K = infinity.
Queue k < K runs the largest Gittins index with quantum D first, where a = W_J t_J is the attained
service of job J and S the total service of past jobs:

    G(a) = P(S - a <= D | S > a) / E[min(S - a, D) | S > a],   D = delta, or Q_k without it

The last queue is FIFO by first start. With ``index="total"`` every queue, also the last, uses the
table of the public simulator (`TotalServiceTable`).

Ties: the earlier submission, then the order in the trace. With ``history_ties`` the order at the
last event replaces the order in the trace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from repro.model.policy import FromSettings, register
from repro.model.settings import Above, InUnit
from repro.policies.tiresias._gittins import GittinsIndex, Index, TotalServiceTable
from repro.policies.tiresias.tiresias_l import TiresiasL
from repro.trace.history import PUBLIC_SAMPLE, history


@register("tiresias-g")
@dataclass(frozen=True)
class TiresiasG(TiresiasL):
    """Discretised 2D-Gittins: queues as in Tiresias-L, ranked inside by the Gittins index.

    The parameters of `TiresiasL` apply, too.

    Parameters
    ----------
    history : str or sequence of float
        Total GPU-time of past jobs (GPU-seconds), or the name of a public sample.
    delta : float, optional
        One quantum (GPU-seconds) for all queues. None: the limit of each queue; with index "total",
        the first limit for all queues.
    index : {"remaining", "total"}, optional
        "remaining": Pseudocode 1, FIFO in the last queue. "total": the table of the public
        simulator, used in every queue. None: that of the rule set.

    Reference: Tiresias, NSDI 2019, sections 3.2.1 and 3.2.3, Pseudocode 1.
    """

    families = ("gittins",)

    history: str | Sequence[Annotated[float, InUnit("GPU-seconds")]] = PUBLIC_SAMPLE
    delta: Annotated[float, Above(0, "GPU-seconds")] | None = None
    index: Literal["remaining", "total"] | None = None

    time_fields = ("thresholds", "history", "delta")
    rounds_times: ClassVar[Any] = FromSettings(
        False, lambda policy: policy.index == "total" or policy.cuts_to_seconds()
    )
    rule_values: ClassVar = {
        rules: {**values, "index": "total" if rules == "tiresias" else "remaining"}
        for rules, values in TiresiasL.rule_values.items()
    }

    def indices(self) -> list[Index | None]:
        """Index of each queue; None: the queue is FIFO."""
        limits = self.limits()
        samples = history(self.history)
        if self.index == "total":
            table = TotalServiceTable(samples, self.delta or limits[0])
            return [table] * len(limits)
        indices: list[Index | None] = [
            GittinsIndex(samples, self.delta or limit) for limit in limits[:-1]
        ]
        return [*indices, None]
