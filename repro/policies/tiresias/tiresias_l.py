"""Tiresias-L: Discretised 2D-LAS."""

from __future__ import annotations

import math
from dataclasses import dataclass

from repro.core.policy import Key, register
from repro.core.view import View
from repro.policies.tiresias._queues import Discretised, QueueOrdering


class _Ordering(QueueOrdering):
    """Queues in order; FIFO by first start inside a queue, never-started jobs by submission."""

    def key(self, job: int, now: float) -> Key:
        """Return (queue,) for list queues, else (queue, first start, submission)."""
        if self.partition:
            return self.queue[job]
        return self.queue[job], self.started.get(job, math.inf), self.view.submit(job)


@register("tiresias-l")
@dataclass(frozen=True)
class TiresiasL(Discretised):
    """Discretised 2D-LAS: K queues of attained GPU-time, FIFO by first start inside a queue.

    References
    ----------
    Tiresias, NSDI 2019, section 3.2.3, Pseudocodes 1 and 2.

    Examples
    --------
    >>> TiresiasL(thresholds=(3250, 7200)).limits()
    (3250, 7200, inf)
    """

    def ordering(self, view: View) -> QueueOrdering:
        """Return the queues of one run."""
        return _Ordering(self, view)
