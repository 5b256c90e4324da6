"""Scheduler of Muri's testbed: launch and iteration times, fitted to the job log of one policy.

The scheduler (Rivendile/Muri ``cluster_exp/run.py``) checks every 360 s whether a job arrived,
ended or changed its queue. If so, all jobs on GPUs restart. A restarted gang trains 65 iterations,
of which 60 count; in Muri's own policies all of them count. The progress until the next check
follows from the iteration time measured in these iterations.

A job log has the time of each job on GPUs E (s) and its starts k. With the iteration time u of the
trace, the start time S of the model, N iterations and the ratio r of its model and GPUs:

    E = k (launch + S + warm_up u) + max(N, counted) r u

The launch and the ratios follow by least squares, with E as the variance of a job.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from repro.files.tables import ModelTable
from repro.perf.measured_paces import MeasuredPaces
from repro.perf.muri_models import start_overhead
from repro.perf.overhead import RoundRestarts
from repro.perf.stages import Interleaving
from repro.policies.muri.muri import MEASURED

#: Iterations that a restarted job trains at least, without those of its warm-up.
COUNTED = 60
_LOG = ModelTable(
    "muri_testbed_srtf.csv",
    ("job_id", "model", "num_gpus", "iterations", "iteration_ms", "end_s", "executed_s", "starts"),
)


class Fit(NamedTuple):
    """Parameters of the testbed's scheduler."""

    #: seconds from a decision until a gang loads its models
    launch_s: float
    #: measured iteration time over that of the trace, by model and number of GPUs
    ratios: dict[tuple[str, int], float]

    def settings(self, interval: float, warm_up: float) -> dict[str, Any]:
        """Arguments of `repro.simulate` for the testbed's scheduler.

        Parameters
        ----------
        interval : float
            Seconds of a round.
        warm_up : float
            Iterations that do not count after a restart.
        """
        groups = Interleaving(factors=MEASURED)
        return {
            "interval": interval,
            "overhead": RoundRestarts(self.launch_s, warm_up),
            "perf": MeasuredPaces(self.ratios, groups),
        }


def job_log() -> pd.DataFrame:
    """Job log of the testbed under SRTF: jobs, ends (s), time on GPUs (s) and starts."""
    return _LOG.frame


def fit(log: pd.DataFrame, warm_up: float) -> Fit:
    """Launch time, and `Fit.ratios` of each model and number of GPUs, from a job log.

    Parameters
    ----------
    log : DataFrame
        Columns model, num_gpus, iterations, iteration_ms, executed_s, starts; a row per job.
    warm_up : float
        Iterations that do not count after a restart.
    """
    pairs = list(zip(log["model"], log["num_gpus"].astype(int), strict=True))
    known = dict.fromkeys(sorted(pairs))
    column_of = {pair: column for column, pair in enumerate(known, start=1)}
    start_s = np.array([start_overhead(model, gpus) for model, gpus in pairs])
    iteration_s = log["iteration_ms"].to_numpy(float) / 1000
    starts = log["starts"].to_numpy(float)
    factors = np.zeros((len(log), len(known) + 1))
    factors[:, 0] = starts
    alone_s = log["iterations"].clip(lower=COUNTED).to_numpy(float) * iteration_s
    factors[np.arange(len(log)), [column_of[pair] for pair in pairs]] = alone_s
    executed = log["executed_s"].to_numpy(float)
    target = executed - starts * (start_s + warm_up * iteration_s)
    weight = 1 / np.sqrt(executed)
    solution, *_ = np.linalg.lstsq(factors * weight[:, None], target * weight, rcond=None)
    launch_s, *ratios = map(float, solution)
    return Fit(launch_s, dict(zip(known, ratios, strict=True)))
