"""Preemptive orders by demand and known duration (Tiresias, section 3.2.1).

Job J has demand W_J (GPUs) and remaining time r_J (s), predicted if the trace has the column
``predicted_duration``. The smallest key runs first:

- ``sf``, smallest first: W_J.
- ``srtf``, shortest remaining time first: r_J.
- ``srsf``, smallest remaining service first: W_J r_J.

Ties: order of submission, then order in the trace. With ``history_ties``, the order at the previous
event.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from repro.base.typing import Floats, Ints
from repro.engine.select.refill import Refill
from repro.engine.select.resort import Resort
from repro.model.policy import FromSettings, LinearKey, Order, Ordering, register
from repro.model.view import View
from repro.placement.first_fit import unplaceable


@dataclass(frozen=True)
class KnownDuration(Order):
    """Base of SF, SRTF and SRSF (Tiresias, sections 3.2.1 and 5.1).

    Parameters
    ----------
    history_ties : bool, optional
        Whether jobs of equal key keep their order at the previous event, as in a list sorted in
        place. False: they go by submission, then by order in the trace. Default: true under
        Tiresias' rules only.
    refill : bool, optional
        Whether a gang needs suitable nodes. If so, every event places all jobs anew, as if the
        cluster were empty: in order of the keys, by consolidated first fit. A gang
        without suitable nodes is skipped, even if as many GPUs are idle. False: any idle GPUs do.
        Default: true under Muri's rules only.

    Reference: Tiresias, NSDI 2019, sections 3.2.1 and 5.1, Table 1.
    """

    history_ties: bool | None = None
    refill: bool | None = None

    needs = frozenset({"duration"})
    first_fit: ClassVar[Any] = FromSettings(False, lambda policy: bool(policy.refill))
    rule_values: ClassVar = {
        "paper": {"history_ties": False, "refill": False},
        "tiresias": {"history_ties": True, "refill": False},
        "muri": {"history_ties": False, "refill": True},
    }

    def ordering(self, view: View) -> Ordering:
        """Ordering of one simulation, with the selection set by ``refill`` and ``history_ties``."""
        ordering = Ordering(self, view)
        if self.refill:
            ordering.selection = Refill
        elif self.history_ties:
            ordering.selection = partial(Resort, history_ties=True, always_sorts=True)
        return ordering

    def never_runs(self, view: View) -> Callable[[int], str] | None:
        """Reason why first fit finds no nodes for a job on the empty cluster, with ``refill``."""
        if not self.refill:
            return None
        reason_of = unplaceable(view.cluster)
        return lambda job: reason_of(view.gpus(job))


@register("sf")
@dataclass(frozen=True)
class SF(KnownDuration):
    """Preemptive smallest gang first (Tiresias section 3.2.1, Table 1)."""

    needs = frozenset()

    def key(self, view: View, job: int) -> float:
        """Demand (GPUs)."""
        return view.gpus(job)

    def keys(self, view: View, jobs: Ints) -> Floats:
        """Demands (GPUs), (jobs,)."""
        return view.gpus_of(jobs)


@register("srtf")
@dataclass(frozen=True)
class SRTF(KnownDuration):
    """Preemptive shortest remaining time first, with known durations (Tiresias, 5.1)."""

    families = ("sjf",)

    def key(self, view: View, job: int) -> float:
        """Remaining time (s)."""
        return view.remaining(job)

    def keys(self, view: View, jobs: Ints) -> Floats:
        """Remaining times (s), (jobs,)."""
        return view.remaining_of(jobs)

    def slope(self, view: View, job: int) -> float:
        """Change of the remaining time per second of running."""
        return -view.remaining_rate(job)

    def linear_key(self, view: View) -> LinearKey:
        """Coefficient of the key: 1 per second of remaining time."""
        return LinearKey(per_second=1.0)


@register("srsf")
@dataclass(frozen=True)
class SRSF(KnownDuration):
    """Preemptive smallest remaining GPU-time first, W_J times remaining time (Tiresias, 3.2.1)."""

    def key(self, view: View, job: int) -> float:
        """Remaining service (GPU-seconds)."""
        return view.gpus(job) * view.remaining(job)

    def keys(self, view: View, jobs: Ints) -> Floats:
        """Remaining services (GPU-seconds), (jobs,)."""
        return view.gpus_of(jobs) * view.remaining_of(jobs)

    def slope(self, view: View, job: int) -> float:
        """Change of the remaining service per second of running."""
        return -view.gpus(job) * view.remaining_rate(job)

    def linear_key(self, view: View) -> LinearKey:
        """Coefficient of the key: the demand per second of remaining time."""
        return LinearKey(per_second=view.widths)
