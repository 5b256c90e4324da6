"""Muri-L: interleaved groups by least attained service (Muri, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from repro.core.policy import register
from repro.core.view import View
from repro.policies.muri._muri import Muri


@register("muri-l")
@dataclass(frozen=True)
class MuriL(Muri):
    """Multi-resource interleaving by 2D-LAS: time on GPUs times gang size; fields as of `Muri`."""

    def first_value(self, view: View, job: int) -> float:
        """Return 0: nothing attained."""
        return 0.0

    def values(self, view: View, width: int, jobs: list[int], seconds: list[float]) -> list[float]:
        """Return the attained service of each job (GPU-seconds)."""
        return [spent * width for spent in seconds]
