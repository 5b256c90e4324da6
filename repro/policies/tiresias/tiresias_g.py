"""Tiresias-G: Discretised 2D-Gittins (Tiresias, sections 3.2.1 and 3.2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from repro.model.policy import register
from repro.model.settings import Above
from repro.policies.tiresias._gittins import GittinsIndex, Index, TotalServiceTable
from repro.policies.tiresias.tiresias_l import TiresiasL
from repro.trace.history import PUBLIC_SAMPLE, history


@register("tiresias-g")
@dataclass(frozen=True)
class TiresiasG(TiresiasL):
    """Discretised 2D-Gittins: queues as Tiresias-L, ranked inside by the Gittins index.

    Further fields as of `TiresiasL`.

    Parameters
    ----------
    history : str or sequence of float
        Total GPU-time of past jobs (GPU-seconds), or the name of a public sample.
    delta : float, optional
        One quantum (GPU-seconds) for all queues; None: the limit of each queue (under rules
        ``tiresias`` the first limit for all).
    index : {"remaining", "total"}, optional
        "remaining": Pseudocode 1, FIFO in the last queue. "total": the table of the public
        simulator, used in every queue.

    Reference: Tiresias, NSDI 2019, sections 3.2.1 and 3.2.3, Pseudocode 1.
    """

    families = ("gittins",)

    history: str | Sequence[float] = PUBLIC_SAMPLE
    delta: Annotated[float, Above(0, "GPU-seconds")] | None = None
    index: Literal["remaining", "total"] | None = None

    time_fields = ("thresholds", "history", "delta")
    rule_values: ClassVar = {
        rules: {**values, "index": "total" if rules == "tiresias" else "remaining"}
        for rules, values in TiresiasL.rule_values.items()
    }

    def indices(self) -> list[Index | None]:
        """Return the index of each queue, None for a FIFO queue."""
        limits = self.limits()
        samples = history(self.history)
        if self.index == "total":
            table = TotalServiceTable(samples, self.delta or limits[0])
            return [table] * len(limits)
        ranked: list[Index | None] = [
            GittinsIndex(samples, self.delta or limit) for limit in limits[:-1]
        ]
        return [*ranked, None]
