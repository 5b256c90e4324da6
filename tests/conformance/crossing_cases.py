"""Every policy on a trace of every paper, on equal GPUs and on GPUs of three types.

`crossing` runs one combination. The page docs/crossing.md (``make crossing``) and a test list the
outcomes of all.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from repro import simulate
from repro.base.errors import ReproError
from repro.figures.data import open_trace
from repro.model.policy import policies
from repro.trace import dress

#: Paper -> generator of its jobs, and options of the generator.
TRACES: dict[str, tuple[str, dict[str, Any]]] = {
    "tiresias": ("philly-like", {"jobs": 40}),
    "gavel": ("gavel-multiple", {"jobs": 40, "rate": 6.0}),
    "muri": ("muri-like", {"jobs": 40}),
    "pcs": ("pcs-like", {"jobs": 40}),
    "liquid": ("liquid-batch-jobs", {"jobs": 20}),
}
#: Name -> cluster; no gang of the traces is wider than one type.
CLUSTERS = {"equal": "6x8", "mixed": "5x8:v100,5x8:p100,5x8:k80"}
#: The jobs as they are, and with models, stage times and speed-ups for all policies.
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
    return frame if dressing == "plain" else dress(frame, "all", 0, replace=True)


def crossing(policy: str, trace: str, cluster: str, dressing: str, **options: Any) -> Outcome:
    """Run a policy on a trace and a cluster; ``options`` are passed to `repro.simulate`."""
    frame = jobs_of(trace, dressing)
    where = (policy, trace, cluster, dressing)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = simulate(frame, CLUSTERS[cluster], policy, **options)
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


def reason(line: str) -> str:
    """Refusal without the numbers of the job, so that equal reasons have equal texts."""
    return re.sub(r"(job|row) '?[\w-]+'?|\d+", "…", line)
