"""First in, first out on GPU types drawn at random: Gavel's baseline without throughputs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View


@register("fifo-agnostic")
@dataclass(frozen=True)
class FifoAgnostic(Policy):
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

    References
    ----------
    Gavel, OSDI 2020, section 4.2 (FIFO).

    Examples
    --------
    >>> FifoAgnostic().under("gavel").assign
    'last'
    """

    assign: Literal["drawn", "last"] | None = None

    tells_types: ClassVar[bool] = False
    idle_ok: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})
    rule_values: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"assign": "drawn"},
        "gavel": {"assign": "last"},
    }

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers who is where."""
        draw = random.Random(view.seed)
        place: dict[int, int] = {}

        def decide(view: View) -> Shares:
            jobs = tuple(view.jobs)
            free = np.array(view.gpu_counts, dtype=int)
            waiting = [job for job in jobs if job not in place]
            self._replace(view, place, waiting, free)
            self._admit(view, place, waiting, free, draw)
            return placed(view, jobs, place)

        return decide

    def _replace(self, view: View, place: dict[int, int], waiting: list[int], free: Any) -> None:
        """Give the places of finished jobs to the head of the queue, count what is free.

        What the public simulator has counted when it comes to a finished job are the older ones.
        """
        for job in sorted(place):
            kind = place[job]
            if view.is_unfinished(job):
                free[kind] -= view.gpus(job)
                continue
            del place[job]
            if self.assign != "last" or not waiting:
                continue
            head = waiting.pop(0)
            if view.gpus(head) <= free[kind] and view.speeds(head)[kind] > 0:
                place[head] = kind
                free[kind] -= view.gpus(head)

    def _admit(
        self,
        view: View,
        place: dict[int, int],
        waiting: list[int],
        free: Any,
        draw: random.Random,
    ) -> None:
        """Place jobs from the head of the queue on until one finds no room."""
        kinds = [kind for kind in range(len(free)) if free[kind] > 0]
        for job in waiting:
            able = view.speeds(job) > 0
            room = [kind for kind in kinds if free[kind] >= view.gpus(job)]
            if self.assign == "drawn":
                room = [kind for kind in room if able[kind]]
            if not room:
                return
            drawn = room[draw.randrange(len(room))]
            kind = kinds[-1] if self.assign == "last" else drawn
            if not able[kind]:
                continue
            place[job] = kind
            free[kind] -= view.gpus(job)
            if free[kind] == 0:
                kinds.remove(drawn)


def placed(view: View, jobs: tuple[int, ...], place: dict[int, int]) -> Shares:
    """Return all of each placed job's time on its type, less where a type is given too much.

    Parameters
    ----------
    view : View
        Gang sizes and GPUs of each type.
    jobs : tuple of int
        Unfinished jobs.
    place : dict of int to int
        Column of the type of each job that has one.

    Returns
    -------
    Shares
        One entry of 1, or the same smaller number for all on a type that is too full.
    """
    gpus = np.asarray(view.gpu_counts, dtype=float)
    shares = np.zeros((len(jobs), len(gpus)))
    for row, job in enumerate(jobs):
        if job in place:
            shares[row, place[job]] = 1.0
    asked = np.array([view.gpus(job) for job in jobs], dtype=float) @ shares
    return Shares(jobs, view.gpu_types, shares * np.minimum(1.0, gpus / np.maximum(asked, 1e-300)))
