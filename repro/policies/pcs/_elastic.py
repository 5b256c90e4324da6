"""Work-conserving policies that give a job any number of GPUs up to what it asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from repro.core.decision import Run, RunSet
from repro.core.policy import Key, Policy
from repro.core.view import View
from repro.errors import PolicyError


def total_gpus(view: View) -> int:
    """Return the GPUs an elastic policy divides; they must be of one type."""
    if len(view.capacity()) > 1:
        raise PolicyError(
            f"elastic policies divide GPUs of one type, the cluster has {dict(view.capacity())}; "
            f"use a cluster of one type or a policy that returns Shares"
        )
    return view.cluster.num_gpus


def handed_out(view: View, jobs: Iterable[int]) -> RunSet:
    """Give each job in turn min(GPUs left, GPUs it asks for)."""
    left = total_gpus(view)
    runs: list[Run] = []
    for job in jobs:
        gpus = min(left, view.gpus(job))
        if gpus == 0:
            break
        runs.append(Run((job,), gpus))
        left -= gpus
    return RunSet(runs, "exact")


@dataclass(frozen=True)
class ElasticOrder(Policy):
    """An ordering whose jobs shrink to what is left; ties in order of (submission, job id).

    References
    ----------
    PCS, arXiv 2401.10354, baselines of section 5.1.

    Examples
    --------
    >>> ElasticOrder.elastic
    True
    """

    elastic: ClassVar[bool] = True

    def key(self, view: View, job: int) -> Key:
        """Return the sort key of ``job`` now; smaller gets GPUs first."""
        raise PolicyError(f"elastic policy {self.name!r} defines no `key`")

    def decide(self, view: View) -> RunSet:
        """Hand GPUs out in key order."""
        return handed_out(view, sorted(view.jobs, key=lambda job: self.key(view, job)))
