"""Isolated: the cluster is divided statically, an equal part of every GPU type for each job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from repro.core.decision import Shares
from repro.core.policy import Policy, register
from repro.core.view import View

Array = npt.NDArray[np.float64]


def isolated_shares(widths: Array, capacity: Array) -> Array:
    """Return x = W / (m width), each row scaled down to at most all of the job's time.

    Parameters
    ----------
    widths : ndarray, shape (jobs,)
        GPUs of each job.
    capacity : ndarray, shape (GPU types,)
        GPUs of each type.

    Returns
    -------
    ndarray, shape (jobs, GPU types)
        Share of time.

    Examples
    --------
    >>> isolated_shares(np.array([1.0, 2.0]), np.array([1.0, 1.0])).tolist()
    [[0.5, 0.5], [0.25, 0.25]]
    """
    shares: Array = capacity / (len(widths) * widths[:, None])
    shares /= np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    return shares


@register("isolated")
@dataclass(frozen=True)
class Isolated(Policy):
    """Each of m jobs owns 1/m of the GPUs of every type, whatever it asks for.

    The share of time is that part divided by the gang size. Finish-time fairness compares with it.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (isolated share).

    Examples
    --------
    >>> Isolated()
    Isolated()
    """

    tells_types: ClassVar[bool] = False

    def decide(self, view: View) -> Shares:
        """Return W / (m width) for every job."""
        jobs = tuple(view.jobs)
        widths = np.array([view.gpus(job) for job in jobs], dtype=float)
        return Shares(jobs, view.gpu_types, isolated_shares(widths, view.gpu_counts))
