"""Small parts for tests of rounds: a table of speeds, traces in steps, policies told their X."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.model.decision import Shares
from repro.model.policy import Policy
from repro.perf import ThroughputTable

MODELS = {"even": (8.0, 2.0), "slow": (1.0, 0.5), "odd": (7.0, 2.0), "part": (0.05, 0.05)}
SPEEDS = ThroughputTable(
    {(m, g): {"v100": fast, "k80": slow} for m, (fast, slow) in MODELS.items() for g in (1, 2)},
    "v100",
    {("even", "slow", 1): {"v100": (4.0, 0.75), "k80": (0.0, 0.0)}},
)


def jobs(steps, arrival=0.0, model="even", gang=1):
    """Return a trace whose work is given in steps; single values stand for every job."""
    frame = pd.DataFrame({"iterations": np.atleast_1d(np.array(steps, dtype=float))})
    frame.insert(0, "job_id", range(len(frame)))
    frame["submit_time"] = np.array(arrival, dtype=float)
    frame["model"] = model
    frame["num_gpus"] = gang
    pace = [
        SPEEDS.steps_per_s(*kind, "v100")
        for kind in zip(frame["model"], frame["num_gpus"], strict=True)
    ]
    return frame.assign(duration=frame["iterations"] / np.array(pace))


@dataclass(frozen=True)
class Told(Policy):
    """Rows of (job or pair, shares); those with a job that is not there are left out.

    A single row of shares goes to every job.
    """

    rows: tuple
    kinds: tuple = ("v100", "k80")

    def decide(self, view):
        rows = self.rows
        if not isinstance(rows[0], tuple):
            rows = tuple((job, rows) for job in view.jobs)
        there = set(view.jobs)
        kept = [(e, x) for e, x in rows if {*(e if isinstance(e, tuple) else (e,))} <= there]
        x = np.array([x for _, x in kept], dtype=float).reshape(len(kept), len(self.kinds))
        return Shares(tuple(entry for entry, _ in kept), self.kinds, x)
