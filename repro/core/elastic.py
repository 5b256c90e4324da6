"""Base of policies of divisible GPUs: each job gets a number of GPUs up to what it asks for."""

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


@dataclass(frozen=True)
class Elastic(Policy):
    """A policy that divides the cluster's GPUs among all jobs, anew at every event.

    A subclass defines `key`, and jobs in that order get what they ask for or what is left; or it
    defines `grants`, which may hand out fractions of GPUs. How fast a job runs on fewer GPUs than
    it asks for is the performance model's (`repro.perf.SpeedUp`).

    Reference: PCS, arXiv 2401.10354, section 5.1.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Halves(Elastic):
    ...     def grants(self, view, total):
    ...         for job in view.jobs:
    ...             total -= (gpus := min(total / 2, view.gpus(job)))
    ...             yield job, gpus
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> simulate(small_trace(), "1x4", Halves()).summary()["n_finished"]
    6
    """

    elastic: ClassVar[bool] = True

    def key(self, view: View, job: int) -> Key:
        """Return the sort key of ``job`` now; smaller gets GPUs first."""
        raise PolicyError(f"elastic policy {self.name!r} defines neither `key` nor `grants`")

    def grants(self, view: View, total: int) -> Iterable[tuple[int, float]]:
        """Return (job, GPUs) of the jobs that get some of the ``total`` GPUs, best first."""
        left = total
        for job in sorted(view.jobs, key=lambda job: self.key(view, job)):
            gpus = min(left, view.gpus(job))
            if gpus == 0:
                return
            yield job, gpus
            left -= gpus

    def decide(self, view: View) -> RunSet:
        """Return what `grants` hands out."""
        granted = self.grants(view, total_gpus(view))
        return RunSet([Run((job,), gpus) for job, gpus in granted], "exact")
