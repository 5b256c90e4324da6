"""Idle GPUs while decisions name only what changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from repro.core.decision import Run


class Claims:
    """GPUs per type less those of the runs held; a group's come back with its last member.

    ``held`` is what every job holds now, a group once per member.
    """

    def __init__(self, capacity: Mapping[str | None, int], held: Iterable[Run]) -> None:
        self.free: dict[str | None, float] = {name: float(n) for name, n in capacity.items()}
        #: members left of every run; runs are compared by identity
        self._members: dict[int, int] = {}
        for run in held:
            if id(run) not in self._members:
                self._members[id(run)] = 0
                self.free[run.gpu_type] -= run.charged
            self._members[id(run)] += 1

    def take(self, run: Run) -> bool:
        """Claim the GPUs of a run if they are idle, and tell whether they were."""
        if run.charged > self.free.get(run.gpu_type, -1.0):
            return False
        self.free[run.gpu_type] -= run.charged
        self._members[id(run)] = len(run.jobs)
        return True

    def give_back(self, run: Run) -> None:
        """Let one member of a run go."""
        self._members[id(run)] -= 1
        if not self._members[id(run)]:
            del self._members[id(run)]
            self.free[run.gpu_type] += run.charged
