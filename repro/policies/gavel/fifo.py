"""First in, first out on unequal GPU types: by speed, on types drawn at random, or packed."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from repro.core.decision import Shares
from repro.core.kinds import Kinds
from repro.core.policy import Policy, register
from repro.core.typed_shares import TypedShares
from repro.core.view import View
from repro.optimise.linear import best_shares
from repro.typing import Floats


@dataclass(frozen=True)
class _Fifo(TypedShares):
    """Jobs in order of arrival; GPUs idle rather than serve one that is not its turn."""

    idle_ok = True
    needs = frozenset({"throughput"})

    def apart(self) -> bool:
        """Every job has its own place in the queue."""
        return True


@register("gavel-fifo")
@dataclass(frozen=True)
class GavelFifo(_Fifo):
    """Jobs in order of arrival, each on the fastest type with room; all anew at every decision.

    Parameters
    ----------
    form : {"greedy", "lp"}
        ``greedy``: as the public simulator; the first job that finds no room blocks all behind it,
        while one that cannot run where there is room waits and lets them pass.
        ``lp``: the paper's programme, max sum_i (M - i) thr_i(X) / thr_i(fastest type) for M jobs
        in order of arrival i, which may divide a job's time between types.

    Reference: Gavel, OSDI 2020, section 4.2 (FIFO).
    """

    form: Literal["greedy", "lp"] = "greedy"

    def shares(self, kinds: Kinds) -> Floats | None:
        """Return X."""
        if self.form == "greedy":
            speeds, widths = kinds.speeds.tolist(), kinds.widths.tolist()
            return whole_time(kinds, fastest_with_room(speeds, widths, kinds.gpus)[0])
        rank = np.arange(len(kinds.counts), 0, -1.0)[:, None]
        fastest = np.maximum(kinds.speeds.max(axis=1, keepdims=True), 1e-300)
        values = rank * kinds.speeds / fastest
        return best_shares(values, kinds.counts, kinds.widths, kinds.gpus)


@register("fifo-agnostic")
@dataclass(frozen=True)
class FifoAgnostic(_Fifo):
    """Jobs in order of arrival, each on one type with room, where it stays to the end.

    The first job that finds no room blocks all behind it.

    Parameters
    ----------
    assign : {"drawn", "last"}, optional
        ``drawn``: a type is drawn among those with room on which the job can run. ``last``: as
        the public simulator does, the last type of the list of types with free GPUs, even without
        room for the gang; the draw only decides which type leaves that list when the last has no
        GPU left. A job that cannot run on that type waits, and those behind it pass. Types given
        too much share it. The first job in line takes the type of one that finishes if it can run
        there and fits beside the older jobs, and steps aside for this decision if not. Default:
        ``drawn`` under the paper's rules, ``last`` under Gavel's.

    Reference: Gavel, OSDI 2020, section 4.2 (FIFO).
    """

    assign: Literal["drawn", "last"] | None = None

    tells_types = False
    rule_values: ClassVar = {"paper": {"assign": "drawn"}, "gavel": {"assign": "last"}}

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Return X of one run, which remembers who is where."""
        types = DrawnTypes(view.seed, last=self.assign == "last")
        return lambda jobs: whole_time(jobs, types.update(jobs))


@register("gavel-fifo-ss")
@dataclass(frozen=True)
class GavelFifoSS(Policy):
    """Jobs in order of arrival on the fastest type with room, then packed; anew at every decision.

    Parameters
    ----------
    worth : float
        Two jobs share GPUs if together they are more than this much faster than one alone.

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (FIFO, space sharing).
    """

    worth: float = 1.5

    needs = frozenset({"throughput"})
    pairs_up = True
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


class DrawnTypes:
    """Which job is on which GPU type in one run of `FifoAgnostic`."""

    def __init__(self, seed: int, last: bool) -> None:
        self._draw, self._last = random.Random(seed), last
        #: column of the type and GPUs of each job that has a type
        self._held: dict[int, tuple[int, float]] = {}

    def update(self, jobs: Kinds) -> dict[int, int]:
        """Place jobs from the head of the queue; return the column of each row that has a type."""
        held, present, free = self._held, set(jobs.jobs), jobs.gpus.tolist()
        waiting = ((row, job) for row, job in enumerate(jobs.jobs) if job not in held)
        # the places of finished jobs go to the head of the queue; what the public simulator has
        # counted when it comes to a finished job are the older ones
        for job in sorted(held):
            column, width = held[job]
            if job in present:
                free[column] -= width
                continue
            del held[job]
            if self._last and (head := next(waiting, None)):
                width = jobs.widths.item(head[0])
                if width <= free[column] and jobs.speeds[head[0], column] > 0:
                    held[head[1]] = column, width
                    free[column] -= width
        self._admit(jobs, waiting, free)
        return {row: held[job][0] for row, job in enumerate(jobs.jobs) if job in held}

    def _admit(self, jobs: Kinds, waiting: Iterator[tuple[int, int]], free: list[float]) -> None:
        """Place (row, job) from the head of the queue on until one finds no room."""
        columns = [column for column, gpus in enumerate(free) if gpus > 0]
        for row, job in waiting:
            width, able = jobs.widths.item(row), jobs.speeds[row] > 0
            room = [column for column in columns if free[column] >= width]
            if not self._last:
                room = [column for column in room if able[column]]
            if not room:
                return
            drawn = room[self._draw.randrange(len(room))]
            column = columns[-1] if self._last else drawn
            if not able[column]:
                continue
            self._held[job] = column, width
            free[column] -= width
            if free[column] == 0:
                columns.remove(drawn)


def fastest_with_room(
    speeds: Iterable[Sequence[float]], widths: Iterable[float], gpus: Floats
) -> tuple[dict[int, int], int]:
    """Place jobs in order on the fastest GPU type with room, until one finds no room at all.

    Returns the column of each job's type, and the number of the job that found no room (as many
    as there are if all did). A job that cannot run where there is room waits and is passed.
    """
    free = gpus.tolist()
    place: dict[int, int] = {}
    job = -1
    for job, (speed, width) in enumerate(zip(speeds, widths, strict=True)):
        if width > max(free):
            return place, job
        for column in _fastest_first(tuple(speed)):
            if free[column] >= width:
                place[job] = column
                free[column] -= width
                break
    return place, job + 1


@lru_cache(maxsize=4096)
def _fastest_first(speeds: tuple[float, ...]) -> tuple[int, ...]:
    """Return the GPU types on which a job can run; of equal ones the first comes first."""
    able = [column for column, speed in enumerate(speeds) if speed > 0]
    return tuple(sorted(able, key=lambda column: -speeds[column]))


def whole_time(jobs: Kinds, place: Mapping[int, int]) -> Floats:
    """Return X of jobs that have all their time on one GPU type, less where it is given too much.

    ``place`` maps the row of a job to the column of its type; a row of ``jobs`` is one job.
    """
    shares, placed = np.zeros(jobs.speeds.shape), len(place)
    shares[np.fromiter(place, int, placed), np.fromiter(place.values(), int, placed)] = 1.0
    asked = jobs.widths @ shares
    fitted: Floats = shares * np.minimum(1.0, jobs.gpus / np.maximum(asked, 1e-300))
    return fitted


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
        best, host = worth, -1
        for other, column in place.items():
            if other not in joined and widths[other] == widths[job]:
                value = gain(job, other, column)
                if value > best:
                    best, host = value, other
        if host < 0:
            break
        joined[host] = job
    return [(job, joined.get(job, -1)) for job in place], list(place.values())
