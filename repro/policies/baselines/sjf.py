"""Shortest job first without preemption, the textbook baseline.

Key of job J: its duration, which the policy knows, or its ``predicted_duration``. Running jobs keep
their GPUs.

Ties: order of submission, then order in the trace.
"""

from dataclasses import dataclass

from repro.model.policy import register
from repro.model.view import View
from repro.policies.baselines.fifo import BestEffort


@register("sjf")
@dataclass(frozen=True)
class SJF(BestEffort):
    """Non-preemptive shortest job first, with known durations; later jobs that fit may start.

    It is `best-effort` with the duration in place of the submission time as key. Longer jobs behind
    a gang that does not fit may start. `srtf` is the preemptive form.

    Reference: Silberschatz, Galvin, Gagne, Operating System Concepts, section 5.3.2.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> jobs = simulate(small_trace(), "1x4", "sjf").jobs
    >>> jobs["start_time"].tolist()
    [0.0, 1.0, 16.0, 4.0, 9.0, 41.0]
    """

    families = ("sjf",)
    needs = frozenset({"duration"})

    def key(self, view: View, job: int) -> float:
        """Duration (s)."""
        return view.duration(job)
