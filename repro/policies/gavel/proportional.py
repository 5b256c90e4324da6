"""Proportional: every job has the same mix of GPU types, in proportion to the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.policy import register
from repro.core.typed_shares import Kinds, TypedShares
from repro.typing import Floats


@register("proportional")
@dataclass(frozen=True)
class Proportional(TypedShares):
    """Share of time on a type = GPUs of that type / all GPUs, less for all if they do not fit.

    Gavel divides each job's throughput by what this mix gives it before it compares jobs.

    References
    ----------
    Gavel, OSDI 2020, section 4.1 (normalised throughput).
    """

    tells_types: ClassVar[bool] = False

    def shares(self, kinds: Kinds) -> Floats:
        """Return W_j / sum W, scaled so that all gangs together fit the cluster."""
        asked = float(kinds.counts @ kinds.widths)
        mix = kinds.gpus / max(float(kinds.gpus.sum()), asked)
        return np.tile(mix, (len(kinds.counts), 1))
