"""First in, first out on unequal GPU types, then packing beside jobs that already have GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.core.decision import Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.pairs.programme import Array
from repro.optimise.pairs.rows import Rows
from repro.policies.gavel._in_order import fastest_with_room


def fifo_pairs(
    speeds: Sequence[Array],
    widths: Sequence[int],
    capacity: Array,
    gain: Callable[[int, int, int], float],
    worth: float = 1.5,
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the jobs and pairs that run, and the GPU type of each.

    Jobs take the fastest type with room in turn until one finds none; one that cannot run where
    there is room waits, and those behind it pass. From the first without room on, each joins the
    job alone on GPUs of its size with which it gains most, until one gains too little.

    Parameters
    ----------
    speeds : sequence of ndarray, shape (GPU types,)
        Steps per second of each job, in order of arrival.
    widths : sequence of int
        GPUs of each.
    capacity : ndarray, shape (GPU types,)
        GPUs of each type.
    gain : callable
        (waiting job, job with GPUs, GPU type) to their throughput together relative to that of
        each alone, summed.
    worth : float
        Least gain.

    Returns
    -------
    (members, types) : tuple of lists
        (job, -1) or (job, job that joined it), and the column of the GPU type.

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (FIFO) with space sharing as in the public simulator.

    Examples
    --------
    >>> fast = np.array([1.0, 2.0])
    >>> fifo_pairs([fast] * 3, [1, 1, 1], np.ones(2), lambda a, b, kind: 1.6 + 0.1 * b)
    ([(0, -1), (1, 2)], [1, 0])
    """
    place, waiting = fastest_with_room(speeds, widths, capacity)
    joined: dict[int, int] = {}
    for job in range(waiting, len(speeds)):
        best, host = worth, -1
        for other, kind in place.items():
            if other not in joined and widths[other] == widths[job]:
                value = gain(job, other, kind)
                if value > best:
                    best, host = value, other
        if host < 0:
            break
        joined[host] = job
    return [(job, joined.get(job, -1)) for job in place], list(place.values())


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

    Examples
    --------
    >>> GavelFifoSS().worth
    1.5
    """

    worth: float = 1.5

    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})
    pairs_up: ClassVar[bool] = True
    idle_ok: ClassVar[bool] = True

    def decide(self, view: View) -> Shares:
        """Return who runs where, and with whom."""
        jobs = view.jobs

        def gain(waiting: int, host: int, kind: int) -> float:
            one, two = jobs[waiting], jobs[host]
            together = view.pair_speeds(one, two)[:, kind]
            alone = view.speeds(one)[kind], view.speeds(two)[kind]
            return sum(float(p / a) for p, a in zip(together, alone, strict=True) if p > 0)

        widths = [view.gpus(job) for job in jobs]
        speeds = [view.speeds(job) for job in jobs]
        members, kinds = fifo_pairs(speeds, widths, view.gpu_counts, gain, self.worth)
        shares = np.zeros((len(members), len(view.gpu_types)))
        shares[np.arange(len(members)), kinds] = 1.0
        numbers = np.append(np.array(jobs, dtype=np.int64), -1)
        rows = numbers[np.array(members, dtype=np.int64).reshape(-1, 2)]
        idle = sorted(set(jobs) - set(rows.ravel().tolist()))
        rest = np.stack([np.array(idle, dtype=np.int64), np.full(len(idle), -1)], axis=1)
        every = np.concatenate([shares, np.zeros((len(idle), shares.shape[1]))])
        return Rows(np.concatenate([rows, rest]), every).shares(view.gpu_types)
