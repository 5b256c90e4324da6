"""YARN-CS: first in, first out, one blocked job blocks all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.core.policy import Order, register
from repro.core.view import View


@register("yarn-cs")
@dataclass(frozen=True)
class YarnCS(Order):
    """Non-preemptive FIFO by arrival with head-of-line blocking (Tiresias section 5.1).

    Examples
    --------
    >>> YarnCS().placement
    'yarn'
    """

    preemptive: ClassVar[bool] = False
    blocking: ClassVar[bool] = True
    placement: ClassVar[str] = "yarn"

    def key(self, view: View, job: int) -> float:
        """Return the submission time (s)."""
        return view.submit(job)
