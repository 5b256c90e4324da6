"""What policies share that give a job all its time on one GPU type."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.typed_shares import Kinds, TypedShares


@dataclass(frozen=True)
class InOrder(TypedShares):
    """Jobs in order of arrival; GPUs idle rather than serve one that is not its turn."""

    idle_ok = True
    needs = frozenset({"throughput"})

    def apart(self) -> bool:
        """Every job has its own place in the queue."""
        return True


def whole_time(jobs: Kinds, place: Mapping[int, int]) -> Floats:
    """Return X of jobs that have all their time on one GPU type.

    ``place`` maps the row of a job to the column of its type; a row of ``jobs`` is one job.
    """
    shares = np.zeros(jobs.speeds.shape)
    placed = len(place)
    rows = np.fromiter(place, int, placed)
    columns = np.fromiter(place.values(), int, placed)
    shares[rows, columns] = 1.0
    return shares


def remaining_s(left: Floats, speeds: Floats) -> Floats:
    """Return the seconds left of each row on each GPU type, infinite where it cannot run."""
    able = speeds > 0
    return np.where(able, left[:, None] / np.where(able, speeds, 1.0), np.inf)
