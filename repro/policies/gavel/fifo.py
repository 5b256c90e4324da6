"""Gavel's first in, first out: the fastest GPU type with room."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds
from repro.policies.gavel._one_type import InOrder, whole_time
from repro.solve.linear import best_shares


@register("gavel-fifo")
@dataclass(frozen=True)
class GavelFifo(InOrder):
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
            speeds = kinds.speeds.tolist()
            widths = kinds.widths.tolist()
            return whole_time(kinds, fastest_with_room(speeds, widths, kinds.gpus)[0])
        rank = np.arange(len(kinds.counts), 0, -1.0)[:, None]
        fastest = np.maximum(kinds.speeds.max(axis=1, keepdims=True), 1e-300)
        values = rank * kinds.speeds / fastest
        return best_shares(values, kinds.counts, kinds.widths, kinds.gpus)


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
