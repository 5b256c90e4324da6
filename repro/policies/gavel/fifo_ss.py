"""First in, first out with space sharing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.decision import Shares
from repro.model.policy import register
from repro.model.settings import AtLeast
from repro.model.share_policy import SharePolicy
from repro.model.view import View
from repro.policies.gavel._pair_table import ADVICE
from repro.policies.gavel.fifo import fastest_with_room


@register("gavel-fifo-ss")
@dataclass(frozen=True)
class GavelFifoSS(SharePolicy):
    """Jobs in order of arrival on the fastest type with room, then packed; anew at every decision.

    Parameters
    ----------
    worth : float
        Two jobs share GPUs if together they are more than this much faster than one alone.

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (FIFO, space sharing).
    """

    worth: Annotated[float, AtLeast(0)] = 1.5

    needs = frozenset({"throughput"})
    pairs_up = True
    baseline = Baseline("gavel-fifo", ADVICE, model=True)
    idle_ok = True

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
        return Shares(np.append(np.array(jobs), -1)[members], view.gpu_types, shares)


def fifo_pairs(
    speeds: Sequence[Sequence[float]],
    widths: Sequence[int],
    gpus: Floats,
    gain: Callable[[int, int, int], float],
    worth: float = 1.5,
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the jobs (job, -1) and pairs (job, job that joined it) that run, and their GPU types.

    Jobs are placed by `fastest_with_room`. From the first without room on, each joins the job alone
    on GPUs of its size with which it gains most, until one gains no more than ``worth``. ``gain``
    takes the waiting job, the one with GPUs and the column of their type.
    """
    place, waiting = fastest_with_room(speeds, widths, gpus)
    joined: dict[int, int] = {}
    for job in range(waiting, len(speeds)):
        best = worth
        host = -1
        for other, column in place.items():
            if other not in joined and widths[other] == widths[job]:
                value = gain(job, other, column)
                if value > best:
                    best = value
                    host = other
        if host < 0:
            break
        joined[host] = job
    return [(job, joined.get(job, -1)) for job in place], list(place.values())
