"""Earliest deadline first (Liu and Layland, JACM 1973), over gangs of GPUs.

The trace columns ``slo`` (multiples of the duration) and ``duration`` give the deadline of job J,
as for `gavel-min-cost-slo`:

    deadline_J = submit_time_J + slo_J * duration_J

The duration is the true one, also if the trace predicts durations: deadlines are known. Jobs
without an SLO come after all jobs with a deadline, in order of submission. A job keeps its key
after its deadline.

Ties: order of submission, then order in the trace.
"""

from dataclasses import dataclass

import numpy as np

from repro.base.errors import TraceError
from repro.base.typing import Floats, Ints
from repro.model.policy import Key, Order, Ordering, register
from repro.model.view import View

#: The paper of the policy, which is none of the five.
PAPER = "Liu and Layland, JACM'73"


@register("edf")
@dataclass(frozen=True)
class EDF(Order):
    """Preemptive earliest deadline first; jobs without an SLO come last, in order of arrival.

    Reference: Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
    Environment", JACM 20(1), 1973, section 7 (the deadline driven scheduling algorithm).

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> jobs = simulate(small_trace().assign(slo=2.0), "1x4", "edf").jobs
    >>> bool((jobs["end_time"] <= jobs["submit_time"] + 2 * jobs["duration"]).all())
    True
    """

    needs = frozenset({"duration", "slo"})
    requires = (("slo",),)
    # durations give the deadlines and nothing else
    reads_sizes = False

    def ordering(self, view: View) -> Ordering:
        """Deadlines of one simulation.

        Raises
        ------
        TraceError
            If no job of the trace has an SLO.
        """
        return _Deadlines(self, view)


class _Deadlines(Ordering):
    """Keys of the jobs: whether the job lacks a deadline, then its deadline or submission (s)."""

    def __init__(self, policy: EDF, view: View) -> None:
        super().__init__(policy, view)
        if not view.has_column("slo"):
            raise TraceError(
                f"{view.source}: policy {policy.name!r} needs the column slo, multiples of the "
                "duration: a job's deadline is submit_time + slo x duration; add it, or take srtf"
            )
        deadlines = view.deadlines()
        lacks_slo = np.isinf(deadlines)
        #: keys of all jobs, (jobs, 2)
        self._keys: Floats = np.column_stack(
            [lacks_slo, np.where(lacks_slo, view.submits, deadlines)]
        )

    def key(self, job: int, now: float) -> Key:
        """Key of the job."""
        lacks_slo, deadline = self._keys[job].tolist()
        return lacks_slo, deadline

    def keys(self, jobs: Ints, now: float) -> Floats:
        """Keys of several jobs, (jobs, 2)."""
        keys: Floats = self._keys[jobs]
        return keys
