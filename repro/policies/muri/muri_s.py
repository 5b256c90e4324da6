"""Muri-S: interleaved groups by shortest remaining service (Muri, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.core.policy import register
from repro.core.view import View
from repro.policies.muri._muri import Muri


@register("muri-s")
@dataclass(frozen=True)
class MuriS(Muri):
    """Multi-resource interleaving by SRSF: remaining time times gang size; fields as of `Muri`."""

    needs: ClassVar[frozenset[str]] = Muri.needs | {"duration"}

    def first_value(self, view: View, job: int) -> float:
        """Return the service the trace says the job takes (GPU-seconds)."""
        return view.duration(job) * view.gpus(job)

    def values(self, view: View, width: int, jobs: list[int], seconds: list[float]) -> list[float]:
        """Return the remaining service of each job (GPU-seconds)."""
        return [view.remaining(job) * width for job in jobs]
