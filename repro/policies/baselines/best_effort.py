"""Best-effort: YARN-CS in which later jobs that fit may start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.core.policy import Order, register
from repro.core.view import View


@register("best-effort")
@dataclass(frozen=True)
class BestEffort(Order):
    """Non-preemptive FIFO by arrival without head-of-line blocking (Tiresias section 5.3).

    Examples
    --------
    >>> BestEffort().blocking
    False
    """

    preemptive: ClassVar[bool] = False
    placement: ClassVar[str] = "yarn"

    def key(self, view: View, job: int) -> float:
        """Return the submission time (s)."""
        return view.submit(job)
