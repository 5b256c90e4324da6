"""Isolated: the cluster is divided statically, an equal part of every GPU type for each job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.policy import register
from repro.core.typed_shares import Kinds, TypedShares
from repro.typing import Floats


@register("isolated")
@dataclass(frozen=True)
class Isolated(TypedShares):
    """Each of m jobs owns 1/m of the GPUs of every type, whatever it asks for.

    The share of time is that part divided by the gang size. Finish-time fairness compares with it.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (isolated share).
    """

    tells_types: ClassVar[bool] = False

    def shares(self, kinds: Kinds) -> Floats:
        """Return W / (m width) for every job."""
        return isolated_shares(kinds.widths, kinds.gpus, kinds.counts.sum())


def isolated_shares(widths: Floats, gpus: Floats, jobs: float | None = None) -> Floats:
    """Return x = W / (m width), each row scaled down to at most all of the job's time.

    m is the number of ``jobs``, by default one per row.
    """
    shares: Floats = gpus / ((jobs or len(widths)) * widths[:, None])
    shares /= np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return shares
