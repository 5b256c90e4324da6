"""Continuous 2D-LAS (Tiresias, section 3.2.1).

Key: attained service W_J t_J. Ties: submission, then order in the trace.
"""

from dataclasses import dataclass
from typing import Annotated

from repro.model.policy import Order, Steady, register
from repro.model.settings import Above
from repro.model.view import View


@register("las-2d")
@dataclass(frozen=True)
class Las2D(Order):
    """Least attained GPU-time first, not discretised (Tiresias Pseudocode 1 without history).

    Parameters
    ----------
    quantum : float
        Seconds between decisions while jobs wait. Priorities of running and waiting jobs cross all
        the time, so that a continuous rule needs one; it tends to equal sharing as it shrinks.
    """

    quantum: Annotated[float, Above(0, "seconds")] = 60.0

    time_fields = ("quantum",)

    def key(self, view: View, job: int) -> float:
        """Return the attained service W_J * t_J (GPU-seconds)."""
        return view.attained(job)

    def slope(self, view: View, job: int) -> float:
        """Return the gang size: GPU-seconds attained per second of running."""
        return float(view.gpus(job))

    def steady(self, view: View) -> Steady:
        """Return 1 per GPU-second attained."""
        return Steady(per_service=1.0)

    def quantum_s(self) -> float:
        """Return the quantum (s)."""
        return self.quantum
