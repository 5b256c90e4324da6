"""Elastic first in, first out."""

from __future__ import annotations

from dataclasses import dataclass

from repro.core.policy import register
from repro.core.view import View
from repro.policies.pcs._elastic import ElasticOrder


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
