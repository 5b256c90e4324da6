"""Shares for which no job gains by a wrong report of its throughputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.linear import Array, collapse, runnable
from repro.optimise.nash import strategy_proof_shares


@register("gavel-strategy-proof")
@dataclass(frozen=True)
class GavelStrategyProof(Policy):
    """Maximise the geometric mean of throughputs, then discount each job by its cost to others.

    Job i gets its share times prod_{l != i} thr_l(with i) / thr_l(without i), so GPUs are left
    idle. Gang sizes and weights multiply a throughput and change neither.

    References
    ----------
    Gavel, OSDI 2020, section 4.4 (strategy proofness); Cole, Gkatzelis and Goel, EC 2013.

    Examples
    --------
    >>> GavelStrategyProof()
    GavelStrategyProof()
    """

    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        solved: dict[tuple[object, ...], Array] = {}

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            kinds = [view.kind(job) for job in jobs]
            first, counts, row = collapse(kinds)
            mix = (*(kinds[place] for place in first), *counts.tolist())
            if jobs and mix not in solved:
                widths = np.array([view.gpus(jobs[place]) for place in first], dtype=float)
                speeds = np.array([view.speeds(jobs[place]) for place in first])
                speeds = runnable(speeds, widths, view.gpu_counts)
                able = speeds.any(axis=1)
                solved[mix] = np.zeros_like(speeds)
                solved[mix][able] = strategy_proof_shares(
                    speeds[able], counts[able], widths[able], view.gpu_counts
                )
            empty = np.zeros((0, len(view.gpu_types)))
            return Shares(jobs, view.gpu_types, solved[mix][row] if jobs else empty)

        return decide
