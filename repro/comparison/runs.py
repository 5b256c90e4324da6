"""One run of a comparison: metrics and JCTs of a policy on a sample, or the reason of a refusal."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from repro.base.compiled import compile_watch
from repro.base.errors import ReproError
from repro.base.typing import Floats
from repro.comparison.isolated import isolated_jcts
from repro.engine.ignored import TYPES_ALIKE
from repro.figures.sweep import Case, simulated, trace_of
from repro.model.cluster.spec import Cluster
from repro.model.records import Result

#: Metrics that come from `Result.summary`.
_OF_SUMMARY = (
    "avg_jct",
    "median_jct",
    "p95_jct",
    "p99_jct",
    "makespan",
    "avg_queueing",
    "avg_pred_err",
    "p99_pred_err",
    "preemptions",
    "utilisation",
)

#: Largest part of a measured process time that may be compilation.
_MOST_COMPILING = 0.05


@dataclass(frozen=True)
class Metrics:
    """Function that `sweep.Case` runs for a comparison: metrics, JCTs and notes of a run.

    A run that the input or the policy refuses has an entry ``refused`` with the reason.
    """

    def __call__(self, case: Case) -> dict[str, Any]:
        """Simulate a case."""
        trace = trace_of(case)
        try:
            result, cpu_s, compile_s = _timed(case, trace)
            if compile_s > _MOST_COMPILING * cpu_s:
                # the loops are compiled now, and the second run shows what the policy costs
                result, cpu_s, compile_s = _timed(case, trace)
        except ReproError as error:
            return {"refused": " ".join(str(error.args[0]).split())}
        num_gpus = Cluster.parse(case.cluster).num_gpus
        rho = fairness(trace, result.jobs["jct"].to_numpy(float), num_gpus)
        outcome = _outcome(result, rho, max(0.0, cpu_s - compile_s))
        # the cache key has the rows of a trace, not its notes, so outcomes leave these notes out
        of_trace = set(map(str, trace.attrs.get("notes", ())))
        outcome["notes"] = [note for note in outcome["notes"] if note not in of_trace]
        return outcome


def _timed(case: Case, trace: pd.DataFrame) -> tuple[Result, float, float]:
    """Result of a case, its process time (s), and the time spent on compilation (s)."""
    with compile_watch() as watch:
        began_s = time.process_time()
        result = simulated(case, trace)
        cpu_s = time.process_time() - began_s
    return result, cpu_s, watch.seconds


def _outcome(result: Result, rho: Floats, cpu_s: float) -> dict[str, Any]:
    """Metrics, JCTs and notes of a finished run."""
    summary = result.summary()
    jobs = result.jobs
    has_end = np.isfinite(rho)
    ignored = summary["ignored"]
    return {
        **{name: float(summary.get(name, np.nan)) for name in _OF_SUMMARY},
        "n_jobs": len(jobs),
        "n_finished": int(summary["n_finished"]),
        "avg_rho": float(rho[has_end].mean()) if has_end.any() else np.nan,
        "max_rho": float(rho[has_end].max()) if has_end.any() else np.nan,
        "cpu_s_per_job": cpu_s / len(jobs),
        "jct": jobs["jct"].to_numpy(np.float32),
        "notes": summary["notes"],
        "stand_in": summary["stand_in"],
        "types_alike": TYPES_ALIKE in ignored.get("options", ()),
        "unused_columns": ignored.get("columns", []),
        "placement": result.meta["placement"],
    }


def fairness(trace: pd.DataFrame, jct: Floats, num_gpus: int) -> Floats:
    """Finish-time fairness rho of each job: JCT over its JCT in an isolated share, (jobs,).

    Parameters
    ----------
    trace : DataFrame
        Jobs.
    jct : array of float
        JCT of each job (s), in the order of ``trace``; NaN for a job without an end.
    num_gpus : int
        GPUs of the cluster.
    """
    order = np.argsort(trace["submit_time"].to_numpy(float), kind="stable")
    submit, duration, gpus = (
        trace[name].to_numpy(float)[order] for name in ("submit_time", "duration", "num_gpus")
    )
    base = np.empty(len(trace))
    base[order] = isolated_jcts(submit, duration, gpus, float(num_gpus))
    rho: Floats = jct / base
    return rho
