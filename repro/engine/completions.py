"""Predicted completions of the running jobs."""

import math
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush


class CompletionQueue:
    """Predicted completions, the earliest first.

    The epoch of a job counts its changes of GPUs and rate. Predictions of earlier epochs are
    ignored.

    Examples
    --------
    >>> queue = CompletionQueue(2)
    >>> queue.add(0, 5.0)
    >>> queue.add(1, 7.0)
    >>> queue.invalidate(0)
    >>> queue.earliest()
    7.0
    >>> list(queue.due(8.0))
    [(7.0, 1)]
    """

    def __init__(self, num_jobs: int) -> None:
        #: heap of (predicted completion in s, job, epoch)
        self.heap: list[tuple[float, int, int]] = []
        self._epoch = [0] * num_jobs

    def add(self, job: int, end: float) -> None:
        """Add the predicted completion ``end`` (s) of a job."""
        heappush(self.heap, (end, job, self._epoch[job]))

    def invalidate(self, job: int) -> None:
        """Invalidate the predictions of a job."""
        self._epoch[job] += 1

    def replace(self, ends: Iterable[tuple[float, int]]) -> None:
        """Replace all predictions; ``ends`` has pairs of completion (s) and job."""
        self.heap[:] = [(end, job, self._epoch[job]) for end, job in ends]
        heapify(self.heap)

    def earliest(self) -> float:
        """Earliest predicted completion (s); infinity if there is none."""
        heap = self.heap
        epoch = self._epoch
        while heap and epoch[heap[0][1]] != heap[0][2]:
            heappop(heap)
        return heap[0][0] if heap else math.inf

    def due(self, until: float) -> Iterator[tuple[float, int]]:
        """Remove and yield the predictions up to an instant, as pairs of completion (s) and job."""
        heap = self.heap
        while heap and heap[0][0] <= until:
            end, job, epoch = heappop(heap)
            if epoch == self._epoch[job]:
                yield end, job
