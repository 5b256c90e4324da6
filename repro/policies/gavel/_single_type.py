"""Helpers of the policies that give a job all its time on one GPU type."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.typed_shares import Kinds, TypedShares


@dataclass(frozen=True)
class FifoShares(TypedShares):
    """A share policy that serves jobs in order of arrival.

    GPUs idle rather than serve a job without a share.
    """

    idle_ok = True
    needs = frozenset({"throughput"})

    def jobs_are_kinds(self) -> bool:
        """Whether every job is a kind of its own: always, so that rows are in order of arrival."""
        return True


def full_time_shares(jobs: Kinds, columns: Mapping[int, int]) -> Floats:
    """Allocation X of jobs with all their time on one GPU type, shape (jobs, GPU types).

    ``columns`` maps the row of a job to the column of its GPU type. Other rows are 0.
    """
    shares = np.zeros(jobs.speeds.shape)
    count = len(columns)
    row_index = np.fromiter(columns, int, count)
    column_index = np.fromiter(columns.values(), int, count)
    shares[row_index, column_index] = 1.0
    return shares


def remaining_durations(steps_left: Floats, speeds: Floats) -> Floats:
    """Remaining duration (s) of each job on each GPU type, shape (jobs, GPU types).

    Infinite where the job cannot run.
    """
    can_run = speeds > 0
    return np.where(can_run, steps_left[:, None] / np.where(can_run, speeds, 1.0), np.inf)
