"""The queue of a trace under first in, first out: when it is empty, and up to which load.

Jobs start in order of submission on a pool of equal GPUs, and the first job that does not fit
blocks those behind it. This is policy ``yarn-cs`` with placement ``count``. If all submit times are
divided by a number above 1, no wait under this rule becomes shorter. Bisection can therefore find
the loads.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from repro.base.compiled import njit
from repro.base.typing import Floats, Ints

TENTHS = 10
#: Factors are found to this relative error.
_PRECISION = 0.005
#: Largest and smallest factor that is tried, as powers of two.
_DOUBLINGS = 30


@njit(allocates=True)
def fifo_starts(submit: Floats, duration: Floats, gpus: Ints, num_gpus: int) -> Floats:
    """Start of each job under first in, first out on a pool of GPUs (s), (jobs,).

    Parameters
    ----------
    submit, duration : array of float
        Submit times and durations (s), in order of submission.
    gpus : array of int
        Demands (GPUs), at most ``num_gpus``.
    num_gpus : int
        GPUs of the pool.
    """
    start = np.zeros(len(submit))
    running = [(0.0, 0)]
    free = num_gpus
    now = submit[0]
    for job in range(len(submit)):
        now = max(now, submit[job])
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        while free < gpus[job]:
            end, released = heapq.heappop(running)
            now = end
            free += released
        start[job] = now
        free -= gpus[job]
        heapq.heappush(running, (now + duration[job], gpus[job]))
    return start


@dataclass(frozen=True)
class Queue:
    """Queue of a trace under first in, first out, between the first and the last submission.

    A load is GPU-seconds of all jobs over GPUs times the span of the submissions, on whole GPUs.
    Other loads than that of the trace come from submit times divided by one number.
    """

    #: offered load of the trace
    load: float
    #: part of the span in which a job waits
    waiting_share: float
    #: longest time in which the queue is never empty: begin and end (s)
    longest_wait_s: tuple[float, float]
    #: tenths of the span in which the queue is never empty
    full_tenths: int
    #: largest load at which the queue is empty at least once in every tenth of the span; None if it
    #: is so at any load
    empties_up_to: float | None
    #: lowest load at which the queue is never empty in the second half of the span; None if there
    #: is none
    never_empties_from: float | None
    #: number of jobs that fit the cluster; others are not in the queue
    jobs: int

    def to_dict(self) -> dict[str, Any]:
        """Fields for JSON."""
        return asdict(self) | {"longest_wait_s": list(self.longest_wait_s)}


def queue_of(frame: pd.DataFrame, num_gpus: int) -> Queue | None:
    """Queue of a trace; None if its jobs arrive at once, or none fits.

    Parameters
    ----------
    frame : DataFrame
        A trace. Jobs that demand more than ``num_gpus`` are left out.
    num_gpus : int
        GPUs of the cluster, all equal.
    """
    arrays = _arrays(frame, num_gpus)
    if arrays is None:
        return None
    first_s, submit, duration, gpus = arrays
    span = submit[-1]
    load = float((duration * gpus).sum() / (num_gpus * span))

    def periods(factor: float) -> tuple[Floats, Floats]:
        # longer durations instead of earlier submissions: the same run on a slower clock, in which
        # the tenths of the span stay the same
        return waiting_periods(submit, fifo_starts(submit, duration * factor, gpus, num_gpus))

    def is_full_in_some_tenth(factor: float) -> bool:
        return _full_tenths(*periods(factor), span) > 0

    def never_empties(factor: float) -> bool:
        begin, end = periods(factor)
        return bool(((begin <= span / 2) & (end >= span)).any())

    begin, end = periods(1.0)
    lengths = np.minimum(end, span) - begin
    longest = (0.0, 0.0)
    if len(begin):
        place = int(np.argmax(lengths))
        longest = (first_s + float(begin[place]), first_s + float(min(end[place], span)))
    full, never = lowest_factor(is_full_in_some_tenth), lowest_factor(never_empties)
    return Queue(
        load=load,
        waiting_share=float(lengths.sum() / span),
        longest_wait_s=longest,
        full_tenths=_full_tenths(begin, end, span),
        empties_up_to=None if full is None else load * full[0],
        never_empties_from=None if never is None else load * never[1],
        jobs=len(submit),
    )


def waiting_share(frame: pd.DataFrame, num_gpus: int) -> float:
    """Part of the span in which a job waits under first in, first out; 0 without a span."""
    arrays = _arrays(frame, num_gpus)
    if arrays is None:
        return 0.0
    _, submit, duration, gpus = arrays
    begin, end = waiting_periods(submit, fifo_starts(submit, duration, gpus, num_gpus))
    return float((np.minimum(end, submit[-1]) - begin).sum() / submit[-1])


def _arrays(frame: pd.DataFrame, num_gpus: int) -> tuple[float, Floats, Floats, Ints] | None:
    """First submission, and submit times after it, durations and demands of the jobs that fit.

    None if the jobs arrive at once, or none fits.
    """
    jobs = frame[frame["num_gpus"] <= num_gpus].sort_values("submit_time", kind="stable")
    submit = jobs["submit_time"].to_numpy(float)
    if not len(jobs) or submit[0] == submit[-1]:
        return None
    duration = jobs["duration"].to_numpy(float)
    return float(submit[0]), submit - submit[0], duration, jobs["num_gpus"].to_numpy(np.int64)


def waiting_periods(submit: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Begin and end of each time in which some job waits (s), of jobs in order of submission.

    >>> waiting_periods(np.array([0.0, 2.0, 15.0]), np.array([0.0, 10.0, 20.0]))
    (array([ 2., 15.]), array([10., 20.]))
    """
    waits = start > submit
    begin, end = submit[waits], start[waits]
    if not len(begin):
        return begin, end
    # starts are in order of submission, so a period ends where the next job comes after all starts
    is_new = np.concatenate([[True], begin[1:] > end[:-1]])
    is_last = np.concatenate([is_new[1:], [True]])
    return begin[is_new], end[is_last]


def _full_tenths(begin: Floats, end: Floats, span: float) -> int:
    """Number of tenths of the span in which some job waits at all times."""
    edges = np.linspace(0.0, span, TENTHS + 1)
    covered = (begin[:, None] <= edges[None, :-1]) & (end[:, None] >= edges[None, 1:])
    return int(covered.any(axis=0).sum())


def lowest_factor(holds: Callable[[float], bool]) -> tuple[float, float] | None:
    """Two factors, at most 0.5 % apart, around the lowest factor at which a statement holds.

    ``holds`` is false up to some factor and true beyond it. The first factor is 0 if the statement
    holds at every factor tried. The result is None if it holds at none.

    >>> below, above = lowest_factor(lambda factor: factor >= 3)
    >>> below < 3 <= above
    True
    """
    low, high = 1.0, 1.0
    if holds(1.0):
        for _ in range(_DOUBLINGS):
            low = high / 2
            if not holds(low):
                break
            high = low
        else:
            return 0.0, high
    else:
        for _ in range(_DOUBLINGS):
            high = low * 2
            if holds(high):
                break
            low = high
        else:
            return None
    while high / low > 1 + _PRECISION:
        middle = (low * high) ** 0.5
        if holds(middle):
            high = middle
        else:
            low = middle
    return low, high
