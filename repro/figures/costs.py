"""CPU time of results. A cached result counts with the time of its first computation."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Spent:
    """CPU time (s) of one computation; filled when it ends."""

    cpu_s: float = 0.0


@dataclass
class Costs:
    """CPU times of results by key, and of the results that this process computed itself.

    A result that is used to compute another one counts as part of it.
    """

    #: key and CPU time (s) of each result in the order of use, wherever it was computed
    used: list[tuple[str | int, float]] = field(default_factory=list)
    #: CPU time (s) of the results that were computed in this process
    here_s: float = 0.0
    #: first and last (exclusive) position in ``used`` of the results of each `parallel_batch`
    parallel_batches: list[tuple[int, int]] = field(default_factory=list)
    #: attribute ``parts``: key and CPU time (s) of each result that the present computation of a
    #: thread has used
    _thread: threading.local = field(default_factory=threading.local)

    @contextlib.contextmanager
    def computing(self) -> Iterator[Spent]:
        """Measure a computation, as if none of the results that it uses had been cached."""
        outer = getattr(self._thread, "parts", None)
        parts: list[tuple[str | int, float]] = []
        self._thread.parts = parts
        spent = Spent()
        here_before = self.here_s
        began = time.process_time()
        try:
            yield spent
        finally:
            own_s = time.process_time() - began
            # parts that were computed here are in the measured time already
            computed_parts_s = self.here_s - here_before
            spent.cpu_s = own_s - computed_parts_s + sum(dict(parts).values())
            self.here_s = here_before + own_s
            self._thread.parts = outer

    @contextlib.contextmanager
    def parallel_batch(self) -> Iterator[None]:
        """Record the results used in the block, which can be computed at the same time."""
        first = len(self.used)
        yield
        if len(self.used) > first:
            self.parallel_batches.append((first, len(self.used)))

    def use(self, key: str | int, cpu_s: float) -> None:
        """Note the use of a result, and the CPU time (s) of its first computation."""
        parts = getattr(self._thread, "parts", None)
        (self.used if parts is None else parts).append((key, cpu_s))


@dataclass(frozen=True)
class ParallelBatch:
    """Simulations that can run at the same time: number, CPU time and longest CPU time (s)."""

    simulations: int
    cpu_s: float
    longest_s: float


#: Costs of this process.
COSTS = Costs()


class Meter:
    """CPU time of work, as if none of the results that it uses had been cached."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._here_s = COSTS.here_s
        self._num_used = len(COSTS.used)
        self._num_batches = len(COSTS.parallel_batches)

    def cpu_s(self) -> float:
        """CPU time (s) of this process since the meter was made, and of all results used since.

        A result that was used several times counts once.
        """
        own_s = time.process_time() - self._began - (COSTS.here_s - self._here_s)
        used = dict(COSTS.used[self._num_used :])
        return own_s + sum(used.values())

    def parallel_batches(self) -> list[ParallelBatch]:
        """Parallel batches since the meter was made; a result counts where it was used first."""
        counted: set[str | int] = set()
        before = self._num_used
        batches = []
        for first, end in COSTS.parallel_batches[self._num_batches :]:
            counted.update(key for key, _ in COSTS.used[before:first])
            costs = {key: cpu_s for key, cpu_s in COSTS.used[first:end] if key not in counted}
            counted.update(costs)
            before = end
            if costs:
                cpu_times = costs.values()
                batches.append(ParallelBatch(len(costs), sum(cpu_times), max(cpu_times)))
        return batches
