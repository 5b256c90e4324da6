"""Elastic shortest remaining service first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.policies._elastic import ElasticOrder
from repro.policies.base import register
from repro.sim.view import View


@register("srsf-elastic")
@dataclass(frozen=True)
class SrsfElastic(ElasticOrder):
    """Smallest GPUs asked for times remaining time on them (called Tiresias in PCS).

    Examples
    --------
    >>> SrsfElastic()
    SrsfElastic()
    """

    needs: ClassVar[frozenset[str]] = frozenset({"duration"})

    def key(self, view: View, job: int) -> float:
        """Return the remaining service (GPU-seconds)."""
        return view.gpus(job) * view.remaining(job)
