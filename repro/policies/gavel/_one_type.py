"""What policies share that give a job all its time on one GPU type."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from repro.core.typed_shares import Kinds, TypedShares
from repro.typing import Floats


@dataclass(frozen=True)
class InOrder(TypedShares):
    """Jobs in order of arrival; GPUs idle rather than serve one that is not its turn."""

    idle_ok = True
    needs = frozenset({"throughput"})

    def apart(self) -> bool:
        """Every job has its own place in the queue."""
        return True


def whole_time(jobs: Kinds, place: Mapping[int, int]) -> Floats:
    """Return X of jobs that have all their time on one GPU type, less where it is given too much.

    ``place`` maps the row of a job to the column of its type; a row of ``jobs`` is one job.
    """
    shares, placed = np.zeros(jobs.speeds.shape), len(place)
    shares[np.fromiter(place, int, placed), np.fromiter(place.values(), int, placed)] = 1.0
    asked = jobs.widths @ shares
    fitted: Floats = shares * np.minimum(1.0, jobs.gpus / np.maximum(asked, 1e-300))
    return fitted


def remaining_s(left: Floats, speeds: Floats) -> Floats:
    """Return the seconds left of each row on each GPU type, infinite where it cannot run."""
    able = speeds > 0
    return np.where(able, left[:, None] / np.where(able, speeds, 1.0), np.inf)
