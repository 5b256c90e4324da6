"""Continuous 2D-LAS (Tiresias, section 3.2.1): least attained service first.

Key of job J (GPU-seconds), from its demand W_J and its run time t_J (s):

    W_J t_J

The smallest key runs first.

Ties: the earlier submission, then the order in the trace.
"""

from dataclasses import dataclass
from typing import Annotated

from repro.model.policy import LinearKey, Order, register
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
        the time, so that a continuous rule needs a quantum. As it shrinks, the rule tends to equal
        sharing.

    Reference: Tiresias, NSDI 2019, section 3.2.1, Pseudocode 1.
    """

    quantum: Annotated[float, Above(0, "seconds")] = 60.0

    time_fields = ("quantum",)

    def key(self, view: View, job: int) -> float:
        """Attained service W_J t_J (GPU-seconds)."""
        return view.attained(job)

    def slope(self, view: View, job: int) -> float:
        """Growth of the key while the job runs: its demand (GPU-seconds per second)."""
        return float(view.gpus(job))

    def linear_key(self, view: View) -> LinearKey:
        """Attained service as the key, for compiled loops."""
        return LinearKey(per_service=1.0)

    def quantum_s(self) -> float:
        """Seconds between decisions while jobs wait."""
        return self.quantum
