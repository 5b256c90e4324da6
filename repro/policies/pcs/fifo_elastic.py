"""Elastic first in, first out (PCS, section 5.1)."""

from dataclasses import dataclass

from repro.core.elastic import Elastic
from repro.core.policy import register
from repro.core.view import View


@register("fifo-elastic")
@dataclass(frozen=True)
class FifoElastic(Elastic):
    """Earlier arrivals get all they ask for, the next one what is left (FIFO in PCS, 5.1)."""

    def key(self, view: View, job: int) -> float:
        """Return the submission time (s)."""
        return view.submit(job)
