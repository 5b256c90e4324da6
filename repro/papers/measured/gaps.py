"""Idle gap between two jobs in a row on one GPU: measured parts, and what shortens it.

The table is ``traces/measured/sequence.csv``: two jobs of a model, the second launched when a poll
or an event shows that the first has left, or ahead of its end. A gap lasts from the last step of
the first job to the first step of the second (Liquid, TPDS 2022, section 6.1).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.base.typing import Floats


def with_phases(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table with the seconds of each job's launch, training and save.

    Columns added: launch_s, train_s, save_s (until the process has left).

    Examples
    --------
    >>> job = {"spawn_at": 0.0, "train_start_at": 9.0, "train_end_at": 15.0, "gone_at": 15.5}
    >>> with_phases(pd.DataFrame([job]))[["launch_s", "train_s", "save_s"]].iloc[0].tolist()
    [9.0, 6.0, 0.5]
    """
    return runs.assign(
        launch_s=runs["train_start_at"] - runs["spawn_at"],
        train_s=runs["train_end_at"] - runs["train_start_at"],
        save_s=runs["gone_at"] - runs["train_end_at"],
    )


def gap_parts(runs: pd.DataFrame) -> pd.DataFrame:
    """Parts of each measured gap (s), a row per model and scenario.

    Columns save, wait (for the report that the first job has left), launch, total, and
    ``ahead_of_end_s``: the training of the first job after the launch of the second, below 0 if
    the launch came later. If the second job was launched before the first had left, its launch
    counts only from the end of the save.

    Examples
    --------
    >>> times = ("job", "spawn_at", "train_start_at", "train_end_at", "gone_at")
    >>> runs = pd.DataFrame([(0, 0.0, 9.0, 15.0, 15.5), (1, 18.0, 28.0, 34.0, 34.5)])
    >>> runs = runs.set_axis(times, axis=1).assign(model="neumf", scenario="poll5")
    >>> gap_parts(runs).iloc[0].to_dict()
    {'save': 0.5, 'wait': 2.5, 'launch': 10.0, 'total': 13.0, 'ahead_of_end_s': -3.0}
    """
    by_run = with_phases(runs).set_index(["model", "scenario"])
    first, second = (by_run[by_run["job"] == number] for number in (0, 1))
    total = second["train_start_at"] - first["train_end_at"]
    wait = (second["spawn_at"] - first["gone_at"]).clip(lower=0.0)
    parts = pd.DataFrame({"save": first["save_s"], "wait": wait})
    return parts.assign(
        launch=total - first["save_s"] - wait,
        total=total,
        ahead_of_end_s=first["train_end_at"] - second["spawn_at"],
    )


@dataclass(frozen=True)
class GapModel:
    """Gap between two jobs, for three ways to launch the second.

    A gap has three parts: the save of the first job, the wait for a report that it has left, and
    the launch of the second. A launch ahead of the end of the first job overlaps with its training.

    Parameters
    ----------
    launches : array of float
        Measured launches (s), (launches,).
    save_s : float
        Time until the first job has left.
    event_s : float
        Wait for a report by event.
    poll_s : float
        Mean wait for a poll.

    Examples
    --------
    >>> model = GapModel(np.array([9.0, 11.0]), save_s=0.5, event_s=0.5, poll_s=2.5)
    >>> model.polled.tolist(), model.ahead(9.5).tolist()
    ([12.0, 14.0], [1.0, 1.5])
    """

    launches: Floats
    save_s: float
    event_s: float
    poll_s: float

    @property
    def polled(self) -> Floats:
        """Gap with reports by polling, by launch (s), (launches,)."""
        return self.save_s + self.poll_s + self.launches

    @property
    def by_event(self) -> Floats:
        """Gap with reports by event, by launch (s), (launches,)."""
        return self.save_s + self.event_s + self.launches

    def ahead(self, ahead_of_end_s: float) -> Floats:
        """Gap with a launch ahead of the end of the first job, by launch (s), (launches,).

        ``ahead_of_end_s`` is the training of the first job after the launch of the second (s).
        """
        left_of_launch = self.launches - ahead_of_end_s
        return np.asarray(np.maximum(left_of_launch, self.save_s + self.event_s))
