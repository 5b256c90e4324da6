"""Shares that ask for no speeds: an equal part of the cluster, or of each job's time.

X_ij = W_j / (m sf_i) for m jobs, or X_ij = W_j / sum_j W_j, scaled down where they exceed time or
GPUs. Equal jobs have equal shares, so that there are no ties.
"""

from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares


@register("isolated")
@dataclass(frozen=True)
class Isolated(TypedShares):
    """Each of m jobs owns 1/m of the GPUs of every type, whatever it asks for.

    The share of time is that part divided by the gang size. Finish-time fairness compares with it.

    Reference: Gavel, OSDI 2020, section 4.2 (isolated share).
    """

    tells_types = False

    def shares(self, kinds: Kinds) -> Floats:
        """Return W / (m width) for every job."""
        return isolated_shares(kinds.widths, kinds.gpus, kinds.counts.sum())


@register("proportional")
@dataclass(frozen=True)
class Proportional(TypedShares):
    """Share of time on a type = GPUs of that type / all GPUs, less for all if they do not fit.

    Gavel divides each job's throughput by what this mix gives it before it compares jobs.

    Reference: Gavel, OSDI 2020, section 4.1 (normalised throughput).
    """

    tells_types = False

    def shares(self, kinds: Kinds) -> Floats:
        """Return W_j / sum W, scaled so that all gangs together fit the cluster."""
        asked = float(kinds.counts @ kinds.widths)
        mix = kinds.gpus / max(float(kinds.gpus.sum()), asked)
        return np.tile(mix, (len(kinds.counts), 1))


def isolated_shares(widths: Floats, gpus: Floats, jobs: float | None = None) -> Floats:
    """Return x = W / (m width), each row scaled down to at most all of the job's time.

    m is the number of ``jobs``, by default one per row.
    """
    shares: Floats = gpus / ((jobs or len(widths)) * widths[:, None])
    shares /= np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return shares
