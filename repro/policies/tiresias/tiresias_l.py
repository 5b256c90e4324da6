"""Tiresias-L: Discretised 2D-LAS (Tiresias, section 3.2.3)."""

from dataclasses import dataclass

from repro.core.policy import register
from repro.policies.tiresias._queues import Discretised


@register("tiresias-l")
@dataclass(frozen=True)
class TiresiasL(Discretised):
    """Discretised 2D-LAS: K queues of attained GPU-time, FIFO by first start inside a queue.

    Fields as of `Discretised`. Tiresias, NSDI 2019, section 3.2.3, Pseudocodes 1 and 2.

    Examples
    --------
    >>> TiresiasL(thresholds=(3250, 7200)).limits()
    (3250, 7200, inf)
    """
