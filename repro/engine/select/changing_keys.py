"""Jobs whose keys the engine reads again at every event."""

import contextlib
from collections.abc import Iterable
from typing import Any

from repro.model.policy import Order, Ordering, is_latest_definition
from repro.model.view import View

#: Methods of an order that a compiled simulation does not call at events: `Order.linear_key` has
#: the keys and their slopes, and `quantum_s` is called once. If a subclass overrides one of these
#: methods but not `linear_key`, the engine simulates event by event.
REPLACED_METHODS = ("key", "slope", "ordering", "quantum_s")
#: Times after an arrival (s) at which `ChangingKeys` compares the key of the job.
_LATER_S = (1.0, 60.0, 3600.0, 86400.0, 1e9)
#: Names of `View` whose values change while the job runs. `Order.slope` covers them.
_PROGRESS = frozenset(
    {
        "attained", "attained_of", "remaining", "remaining_of", "run_seconds", "run_seconds_of",
        "true_remaining_of", "work_left",
    }
)  # fmt: skip
#: Names of `View` whose values change at events of any job.
_STATE = frozenset(
    {
        "arrived", "changed", "finished", "fresh", "held", "idle_gpus", "is_running",
        "is_unfinished", "jobs", "new_pairs", "nodes", "rate", "run", "running",
    }
)  # fmt: skip


class _RecordingView:
    """View that records the names that a key reads."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self._view, name)


class ChangingKeys:
    """Unfinished jobs whose keys change in other ways than a slope says.

    Such keys change with the clock while the job waits, as with ageing, or with the state of other
    jobs, or with the progress of the job although the order defines no slope. The engine does not
    know when they change, so it reads them again at every event and at every quantum. Only an
    `Order` that uses the plain `Ordering` can have such jobs.
    """

    def __init__(self, policy: Order, ordering: Ordering, view: View) -> None:
        self._policy = policy
        self._ordering = ordering
        self._view = view
        has_linear_key = is_latest_definition(policy, "linear_key", REPLACED_METHODS)
        self._may_change = type(ordering) is Ordering and not has_linear_key
        self._has_slope = type(policy).slope is not Order.slope
        #: jobs whose keys may change at any event
        self._always: dict[int, None] = {}
        #: jobs whose keys change only while they run
        self._while_running: set[int] = set()

    def arrive(self, job: int, now: float) -> None:
        """Find out at the arrival of a job what its key depends on."""
        if not self._may_change:
            return
        reads = self._names_read(job)
        if reads & _STATE or self._ages(job, now):
            self._always[job] = None
        elif reads & _PROGRESS and not self._has_slope:
            self._while_running.add(job)

    def finish(self, job: int) -> None:
        """Forget a job."""
        self._always.pop(job, None)
        self._while_running.discard(job)

    def are_read(self, job: int) -> bool:
        """Whether the key of a running job is read at every event."""
        return job in self._always or job in self._while_running

    def to_read(self, running: Iterable[int]) -> list[int]:
        """Jobs whose keys are read again at an event; ``running`` are the jobs that hold GPUs."""
        if not self._while_running:
            return list(self._always)
        changed = [job for job in running if job in self._while_running]
        return [*self._always, *changed]

    def _names_read(self, job: int) -> set[str]:
        """Names of the view that the key of a job reads."""
        recording = _RecordingView(self._view)
        view: Any = recording
        # An error belongs to the selection, which reads the key next.
        with contextlib.suppress(Exception):
            self._policy.key(view, job)
        return recording.names

    def _ages(self, job: int, now: float) -> bool:
        """Whether the key of a job differs at a later instant."""
        key = self._ordering.key(job, now)
        try:
            for seconds in _LATER_S:
                self._view.now = now + seconds
                if self._ordering.key(job, self._view.now) != key:
                    return True
        # An error at a later instant belongs to that instant, if the run gets there.
        except Exception:
            return True
        finally:
            self._view.now = now
        return False
