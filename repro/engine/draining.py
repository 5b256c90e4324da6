"""GPUs that preempted jobs keep while they checkpoint."""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

#: GPUs up to this number are a rounding error of sums of fractions.
NO_GPUS = 1e-9


class DrainingGpus:
    """GPUs that are handed on before their last holders have finished the checkpoint.

    Examples
    --------
    >>> draining = DrainingGpus()
    >>> draining.add(2.0, until=23.0)
    >>> draining.delay(3.0, {None: 4.0}, now=20.0)
    3.0
    """

    def __init__(self) -> None:
        #: (end of the checkpoint in s, GPUs)
        self.checkpoints: list[tuple[float, float]] = []

    def add(self, gpus: float, until: float) -> None:
        """Add the GPUs of a preempted job that checkpoints until an instant (s)."""
        self.checkpoints.append((until, gpus))

    def delay(self, gpus: float, free: Mapping[str | None, float], now: float) -> float:
        """Seconds until ``gpus`` of the ``free`` GPUs have finished their checkpoints.

        A gang takes clean GPUs first, then those whose checkpoint ends first.
        """
        draining = [entry for entry in self.checkpoints if entry[0] > now]
        clean = sum(free.values()) - sum(held for _, held in draining)
        missing = gpus - max(0.0, clean)
        heapify(draining)
        until = now
        while missing > NO_GPUS and draining:
            until, held = heappop(draining)
            if held > missing:
                heappush(draining, (until, held - missing))
            missing -= held
        self.checkpoints = draining
        return until - now
