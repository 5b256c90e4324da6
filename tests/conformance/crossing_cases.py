"""Every policy on a trace of every paper, on equal GPUs and on GPUs of three types.

`crossing` runs one combination. The page docs/crossing.md (``make crossing``) and a test list the
outcomes of all.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from repro import make, simulate
from repro.base.errors import ReproError
from repro.figures.data import open_trace
from repro.model.policy import policies
from repro.trace import dress

#: Paper -> generator of its jobs, and options of the generator.
TRACES: dict[str, tuple[str, dict[str, Any]]] = {
    "tiresias": ("philly-like", {"jobs": 24}),
    "gavel": ("gavel-multiple", {"jobs": 24, "rate": 6.0}),
    "muri": ("muri-like", {"jobs": 24}),
    "pcs": ("pcs-like", {"jobs": 24}),
    "liquid": ("liquid-batch-jobs", {"jobs": 12}),
}
#: Name -> cluster; no gang of the traces is wider than one type.
CLUSTERS = {"equal": "6x8", "mixed": "5x8:v100,5x8:p100,5x8:k80"}
#: (policy, jobs) -> parameters without which it refuses to run, or takes long.
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("drf", "dressed"): {"cpus_per_gpu": 8},
    ("liquid-batch", "plain"): {"generations": 5},
    ("liquid-batch", "dressed"): {"generations": 5},
}
#: The jobs as they are, and with the columns of all policies: models of `repro.trace.dress`,
#: deadlines, priorities and CPU cores.
DRESSES = ("plain", "dressed")


@dataclass(frozen=True)
class Outcome:
    """Outcome of a policy on a trace and a cluster."""

    policy: str
    trace: str
    cluster: str
    dress: str
    #: the run ended with all jobs
    runs: bool
    #: line of the refusal
    line: str = ""
    #: whether the result says that all GPU types count as equally fast
    types_are_equal: bool = False
    #: whether the run had speeds by GPU type
    has_speeds: bool = False


@cache
def jobs_of(trace: str, dressing: str) -> pd.DataFrame:
    """Jobs of a paper, plain or dressed."""
    generator, options = TRACES[trace]
    frame = open_trace(generator, 0, **options)[0]
    if dressing == "plain":
        return frame
    dressed = dress(frame, "all", 0, replace=True)
    columns = {
        "slo": 3.0,
        "priority": np.arange(len(frame)) % 2,
        "num_cpus": 4 * frame["num_gpus"],
    }
    return dressed.assign(**columns)


def crossing(policy: str, trace: str, cluster: str, dressing: str, **options: Any) -> Outcome:
    """Run a policy on a trace and a cluster; ``options`` are passed to `repro.simulate`."""
    frame = jobs_of(trace, dressing)
    where = (policy, trace, cluster, dressing)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            settings = SETTINGS.get((policy, dressing), {})
            made = make(policy, **settings)
            result = simulate(frame, CLUSTERS[cluster], made, **options)
    except ReproError as error:
        return Outcome(*where, runs=False, line=str(error))
    unused = result.summary()["ignored"].get("options", [])
    return Outcome(
        *where,
        runs=bool(result.jobs["end_time"].notna().all()),
        types_are_equal="GPU types of the cluster" in unused,
        has_speeds=cluster == "mixed" and "throughputs" in frame.attrs,
    )


def all_combinations() -> list[tuple[str, str, str, str]]:
    """Every policy, trace, cluster and dress."""
    return [
        (policy, trace, cluster, dressing)
        for policy in sorted(policies)
        if policies[policy].__module__.startswith("repro.")
        for trace in TRACES
        for cluster in CLUSTERS
        for dressing in DRESSES
    ]
