"""Elastic shortest remaining service first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.core.policy import register
from repro.core.view import View
from repro.policies.pcs._elastic import ElasticOrder


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
