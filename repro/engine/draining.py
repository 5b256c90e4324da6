"""Draining GPUs: preempted jobs still write their checkpoints on them."""

from heapq import heapify, heappop, heappush

from repro.model.decision import GPU_TOLERANCE


class DrainingGpus:
    """GPUs that may start another gang only after the checkpoint of their last holders.

    A gang waits only for GPUs of its own type.

    Examples
    --------
    >>> draining = DrainingGpus()
    >>> draining.add(2.0, until=23.0)
    >>> draining.delay(3.0, free=4.0, now=20.0)
    3.0
    """

    def __init__(self) -> None:
        #: GPU type -> (end of the checkpoint in s, GPUs)
        self.checkpoints: dict[str | None, list[tuple[float, float]]] = {}

    def add(self, gpus: float, until: float, gpu_type: str | None = None) -> None:
        """Add the GPUs of a preempted job that checkpoints until an instant (s)."""
        self.checkpoints.setdefault(gpu_type, []).append((until, gpus))

    def delay(self, gpus: float, free: float, now: float, gpu_type: str | None = None) -> float:
        """Seconds until ``gpus`` of the ``free`` GPUs of a type can start a gang.

        The gang first takes free GPUs without a checkpoint, then the GPUs whose checkpoint ends
        earliest.
        """
        draining = [entry for entry in self.checkpoints.get(gpu_type, ()) if entry[0] > now]
        usable = free - sum(busy_gpus for _, busy_gpus in draining)
        missing = gpus - max(0.0, usable)
        heapify(draining)
        until = now
        while missing > GPU_TOLERANCE and draining:
            until, busy_gpus = heappop(draining)
            if busy_gpus > missing:
                heappush(draining, (until, busy_gpus - missing))
            missing -= busy_gpus
        # checkpoints for which this gang waits cannot delay another gang
        self.checkpoints[gpu_type] = draining
        return until - now
