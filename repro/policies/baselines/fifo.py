"""First in, first out, with and without head-of-line blocking (Tiresias, section 5).

Key of job J: its submission time. Running jobs keep their GPUs.

Ties: order in the trace.
"""

from dataclasses import dataclass

from repro.model.policy import Order, register
from repro.model.view import View


@register("best-effort")
@dataclass(frozen=True)
class BestEffort(Order):
    """Non-preemptive FIFO in which later jobs that fit may start (Tiresias, 5.3).

    Reference: Tiresias, NSDI 2019, section 5.3 (its best-effort baseline).
    """

    families = ("fifo",)

    preemptive = False
    placement = "yarn"

    def key(self, view: View, job: int) -> float:
        """Submission time (s)."""
        return view.submit(job)


@register("yarn-cs")
@dataclass(frozen=True)
class YarnCS(BestEffort):
    """Non-preemptive FIFO; a job that does not fit blocks all jobs behind it (Tiresias, 5.1).

    Reference: Tiresias, NSDI 2019, section 5.1 (its YARN-CS baseline).
    """

    blocking = True
