"""AlloX: jobs matched to the queues of GPUs by remaining duration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.settings import Between
from repro.model.typed_shares import Kinds, TypedShares
from repro.model.view import View
from repro.policies.gavel._one_type import remaining_s, whole_time
from repro.solve.slots import start_now


@register("allox")
@dataclass(frozen=True)
class Allox(TypedShares):
    """Whenever a GPU is free and a job waits, match waiting jobs to the free GPUs' queues.

    The head of each queue starts and keeps its GPU type to the end; the others wait for the next
    matching. Gangs of one GPU only.

    Parameters
    ----------
    alpha : float
        Part of the waiting jobs that is considered, oldest first, at least as many as there are
        free GPUs.

    Reference: AlloX, EuroSys 2020, section 4; the baseline of Gavel, OSDI 2020, section 7.
    """

    alpha: Annotated[float, Between(0, 1)] = 1.0

    needs = frozenset({"throughput", "duration"})

    def formula(self, view: View) -> Callable[[Kinds], Floats]:
        """Return X of one run, which remembers the column of every job that has started."""
        started: dict[int, int] = {}

        def shares(jobs: Kinds) -> Floats:
            place = {row: started[job] for row, job in enumerate(jobs.jobs) if job in started}
            waiting = [row for row in range(len(jobs.jobs)) if row not in place]
            free = jobs.gpus.astype(np.int64)
            np.subtract.at(free, list(place.values()), 1)
            if waiting and free.any():
                most = max(int(self.alpha * len(waiting)), int(free.sum()))
                place |= self._start(view, jobs, waiting[:most], free)
                started.update({jobs.jobs[row]: column for row, column in place.items()})
            return whole_time(jobs, place)

        return shares

    def _start(self, view: View, jobs: Kinds, rows: list[int], free: np.ndarray) -> dict[int, int]:
        """Return the columns of the rows that start now."""
        wide = [row for row in rows if jobs.widths[row] != 1]
        if wide:
            raise PolicyError(
                f"policy 'allox': job {view.job_id(jobs.jobs[wide[0]])!r} asks for "
                f"{jobs.widths[wide[0]]:g} GPUs; AlloX places jobs of one GPU only: take those, or "
                "another policy (gavel-las, gandiva-ss)"
            )
        left = view.steps_left([jobs.jobs[row] for row in rows])
        durations = remaining_s(left, jobs.speeds[rows])
        waited = np.array([view.now - view.submit(jobs.jobs[row]) for row in rows])
        return {rows[at]: column for at, column in start_now(durations, free, waited)}
