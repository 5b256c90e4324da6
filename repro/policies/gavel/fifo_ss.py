"""Gavel's first in, first out with space sharing (Gavel, sections 4.1 and 4.2).

This is the rule of the public simulator, which solves no programme. Jobs are placed as by
`gavel-fifo` (``form="greedy"``). The first blocked job and the jobs behind it then join running
jobs. Job m joins the running job l of equal scale_factor with the largest gain on the type j of l:

    gain = T^m_(m,l)j / T_mj + T^l_(m,l)j / T_lj

The first job whose largest gain is at most ``worth`` ends the packing. Each job or pair that runs
has X_kj = 1.

Ties: order of arrival, then order in the trace. Among equal gains, a job joins the oldest running
job.
"""

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
from repro.policies.gavel.fifo import fastest_idle_types


@register("gavel-fifo-ss")
@dataclass(frozen=True)
class GavelFifoSS(SharePolicy):
    """First in, first out on the fastest GPU types; blocked jobs then share GPUs in pairs.

    Every decision starts from an empty cluster.

    Parameters
    ----------
    worth : float
        Gain that a pair must exceed: the sum of the throughputs of both jobs, each divided by its
        throughput alone.

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (FIFO, space sharing).
    """

    worth: Annotated[float, AtLeast(0)] = 1.5

    needs = frozenset({"throughput"})
    pairs_up = True
    baseline = Baseline("gavel-fifo", ADVICE, model=True)
    idle_ok = True

    def decide(self, view: View) -> Shares:
        """Shares of jobs and pairs: 1 on their GPU type, then rows of 0 for waiting jobs."""
        jobs = view.jobs

        def gain(joining: int, host: int, column: int) -> float:
            first = jobs[joining]
            second = jobs[host]
            together = view.pair_speeds(first, second)[:, column]
            alone = view.speeds(first)[column], view.speeds(second)[column]
            pairs = zip(together, alone, strict=True)
            return sum(float(paired / single) for paired, single in pairs if paired > 0)

        widths = [view.gpus(job) for job in jobs]
        speeds = [view.speeds(job).tolist() for job in jobs]
        running, columns = fifo_pairs(speeds, widths, view.gpu_counts, gain, self.worth)
        waiting = sorted(set(range(len(jobs))) - {row for pair in running for row in pair})
        shares = np.zeros((len(running) + len(waiting), len(view.gpu_types)))
        shares[np.arange(len(running)), columns] = 1.0
        members = np.array(running + [(row, -1) for row in waiting])
        # index -1 (no partner) reads the appended -1
        return Shares(np.append(np.array(jobs), -1)[members], view.gpu_types, shares)


def fifo_pairs(
    speeds: Sequence[Sequence[float]],
    widths: Sequence[int],
    gpus: Floats,
    gain: Callable[[int, int, int], float],
    least_gain: float = 1.5,
) -> tuple[list[tuple[int, int]], list[int]]:
    """Jobs and pairs that run, in order of arrival of their first member, and their GPU types.

    `fastest_idle_types` places jobs until a job is blocked. This job and the jobs behind it then
    join placed jobs of equal demand that have no partner. Each joins the job with the largest gain.
    A job whose largest gain is at most ``least_gain`` ends the packing.

    Parameters
    ----------
    speeds, widths, gpus
        As for `fastest_idle_types`.
    gain : callable
        Gain of a pair, from the waiting job, the placed job and the column of its GPU type.
    least_gain : float
        Gain that a pair must exceed.

    Returns
    -------
    list of tuple of int
        (placed job, job that joined it); -1 if no job joined it.
    list of int
        Column of the GPU type of each pair.

    Examples
    --------
    Three jobs on two GPUs: the third joins the second, with which it gains more.

    >>> fifo_pairs([[1.0]] * 3, [1, 1, 1], np.array([2.0]), lambda job, host, column: 1.5 + host)
    ([(0, -1), (1, 2)], [0, 0])
    """
    columns, blocked = fastest_idle_types(speeds, widths, gpus)
    partner: dict[int, int] = {}
    for job in range(blocked, len(speeds)):
        largest_gain = least_gain
        host = -1
        for placed, column in columns.items():
            if placed not in partner and widths[placed] == widths[job]:
                pair_gain = gain(job, placed, column)
                if pair_gain > largest_gain:
                    largest_gain = pair_gain
                    host = placed
        if host < 0:
            break
        partner[host] = job
    return [(job, partner.get(job, -1)) for job in columns], list(columns.values())
