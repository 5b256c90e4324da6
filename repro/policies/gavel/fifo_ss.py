"""First in, first out on unequal GPU types, then packing beside jobs that already have GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.pairs.rows import Rows
from repro.policies.gavel._packing import fifo_pairs


@register("gavel-fifo-ss")
@dataclass(frozen=True)
class GavelFifoSS(Policy):
    """Jobs in order of arrival on the fastest type with room, then packed; anew at every decision.

    Parameters
    ----------
    worth : float
        Two jobs share GPUs if together they are more than this much faster than one alone.

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 and 4.2 (FIFO, space sharing).
    """

    worth: float = 1.5

    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})
    pairs_up: ClassVar[bool] = True
    idle_ok: ClassVar[bool] = True

    def decide(self, view: View) -> Shares:
        """Return who runs where, and with whom."""
        jobs = view.jobs

        def gain(waiting: int, host: int, column: int) -> float:
            one, two = jobs[waiting], jobs[host]
            together = view.pair_speeds(one, two)[:, column]
            alone = view.speeds(one)[column], view.speeds(two)[column]
            return sum(float(p / a) for p, a in zip(together, alone, strict=True) if p > 0)

        widths = [view.gpus(job) for job in jobs]
        speeds = [view.speeds(job).tolist() for job in jobs]
        pairs, columns = fifo_pairs(speeds, widths, view.gpu_counts, gain, self.worth)
        idle = sorted(set(range(len(jobs))) - {row for pair in pairs for row in pair})
        shares = np.zeros((len(pairs) + len(idle), len(view.gpu_types)))
        shares[np.arange(len(pairs)), columns] = 1.0
        members = np.array(pairs + [(row, -1) for row in idle])
        return Rows(np.append(np.array(jobs), -1)[members], shares).shares(view.gpu_types)
