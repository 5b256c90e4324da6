"""Elastic first in, first out."""

from __future__ import annotations

from dataclasses import dataclass

from repro.policies._elastic import ElasticOrder
from repro.policies.base import register
from repro.sim.view import View


@register("fifo-elastic")
@dataclass(frozen=True)
class FifoElastic(ElasticOrder):
    """Earlier arrivals get all they ask for, the next one what is left (FIFO in PCS).

    Examples
    --------
    >>> FifoElastic()
    FifoElastic()
    """

    def key(self, view: View, job: int) -> float:
        """Return the submission time (s)."""
        return view.submit(job)
