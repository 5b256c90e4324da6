"""Preemptive orders by what is known of a job: its size, remaining time, remaining service.

Key: W_J (sf), remaining time r_J (srtf), W_J r_J (srsf). Ties: submission, then order in the trace;
with ``history_ties`` the order of the previous event.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from repro.engine.select.refill import Refill
from repro.engine.select.resort import Resort
from repro.model.policy import Order, Ordering, Steady, register
from repro.model.view import View


@dataclass(frozen=True)
class KnownDuration(Order):
    """Base of SF, SRTF and SRSF (Tiresias, sections 3.2.1 and 5.1).

    Parameters
    ----------
    history_ties : bool, optional
        Equal keys keep the order of the previous event, as a list sorted in place does, instead of
        submission, then order in the file. None: as the rules say.
    refill : bool, optional
        Select by nodes: at every event the empty cluster is refilled by consolidated first fit, and
        a gang for which no nodes are left is skipped, even if as many GPUs are idle. False: any
        idle GPUs do. None: as the rules say.
    """

    history_ties: bool | None = None
    refill: bool | None = None

    needs = frozenset({"duration"})
    rule_values: ClassVar = {
        "paper": {"history_ties": False, "refill": False},
        "tiresias": {"history_ties": True, "refill": False},
        "muri": {"history_ties": False, "refill": True},
    }

    def ordering(self, view: View) -> Ordering:
        """Return an ordering that selects as the rules say."""
        ordering = Ordering(self, view)
        if self.refill:
            ordering.selection = Refill
        elif self.history_ties:
            ordering.selection = partial(Resort, history_ties=True, always_sorts=True)
        return ordering


@register("sf")
@dataclass(frozen=True)
class SF(KnownDuration):
    """Preemptive smallest gang first (Tiresias section 3.2.1, Table 1)."""

    needs = frozenset()

    def key(self, view: View, job: int) -> float:
        """Return the gang size (GPUs)."""
        return view.gpus(job)


@register("srtf")
@dataclass(frozen=True)
class SRTF(KnownDuration):
    """Preemptive smallest remaining time (Tiresias section 5.1); durations are known."""

    families = ("sjf",)

    def key(self, view: View, job: int) -> float:
        """Return the remaining time (s)."""
        return view.remaining(job)

    def slope(self, view: View, job: int) -> float:
        """Return minus the rate: what a second of running takes off."""
        return -view.rate(job)

    def steady(self, view: View) -> Steady:
        """Return 1 per second left."""
        return Steady(per_second=1.0)


@register("srsf")
@dataclass(frozen=True)
class SRSF(KnownDuration):
    """Preemptive smallest remaining GPU-time, W_J times remaining time (Tiresias, 3.2.1)."""

    def key(self, view: View, job: int) -> float:
        """Return the remaining service (GPU-seconds)."""
        return view.gpus(job) * view.remaining(job)

    def slope(self, view: View, job: int) -> float:
        """Return minus gang size times rate: the service a second of running takes off."""
        return -view.gpus(job) * view.rate(job)

    def steady(self, view: View) -> Steady:
        """Return the gang size per second left."""
        return Steady(per_second=view.widths)
