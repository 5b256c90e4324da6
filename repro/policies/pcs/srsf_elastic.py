"""Elastic shortest remaining service first (PCS, section 5.1)."""

from dataclasses import dataclass

from repro.core.elastic import Elastic
from repro.core.policy import register
from repro.core.view import View


@register("srsf-elastic")
@dataclass(frozen=True)
class SrsfElastic(Elastic):
    """Smallest GPUs asked for times remaining time on them (called Tiresias in PCS, 5.1)."""

    needs = frozenset({"duration"})

    def key(self, view: View, job: int) -> float:
        """Return the remaining service (GPU-seconds)."""
        return view.gpus(job) * view.remaining(job)
