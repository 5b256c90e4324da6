"""Checks of the records of a run: what must hold whatever the policy did."""

import math
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from repro.base.errors import PolicyError
from repro.model.cluster.spec import Cluster
from repro.model.records import Result

TOLERANCE = 1e-6


def check_records(
    result: Result, cluster: Cluster, *, gang: bool = True, exact: bool = True
) -> None:
    """Raise PolicyError unless the records keep the rules: capacity, gang, work, ends.

    ``gang``: jobs hold exactly the GPUs they asked for. ``exact``: served work equals required
    work; False: it may be more (preemption costs).
    """
    audit = _Audit(result)
    audit.capacity(cluster.num_gpus, result.intervals)
    if "nodes" in result.intervals:
        for node, spans in _by_node(result.intervals):
            audit.capacity(cluster.nodes[node].gpus, spans, f"node {node}")
    audit.gang(gang)
    audit.ends_and_work(exact)


class _Audit:
    """The records of one run, and how a broken rule is reported."""

    def __init__(self, result: Result) -> None:
        self.meta = result.meta
        self.jobs: list[Any] = list(result.jobs.itertuples(index=False))
        self.spans: dict[object, list[Any]] = {}
        spans: list[Any] = list(result.intervals.itertuples(index=False))
        for span in spans:
            self.spans.setdefault(span.job_id, []).append(span)

    def broken(self, rule: str, job: object, what: str) -> NoReturn:
        policy, trace = (self.meta.get(key, "unnamed") for key in ("policy", "trace"))
        raise PolicyError(
            f"policy {policy!r}, trace {trace!r}: job {job!r} breaks rule {rule!r}: {what}"
        )

    def capacity(self, limit: int, spans: pd.DataFrame, where: str = "the cluster") -> None:
        gpus = spans["gpus"].to_numpy(float)
        times = np.concatenate([spans["end"].to_numpy(float), spans["start"].to_numpy(float)])
        change = np.concatenate([-gpus, gpus])
        order = np.lexsort((change, times))  # at one instant GPUs come free before they are taken
        over = np.cumsum(change[order]) > limit + TOLERANCE
        if over.any():
            first = order[int(over.argmax())]
            what = f"more than the {limit} GPUs of {where} are held at {times[first]:g} s"
            self.broken("capacity", spans["job_id"].tolist()[first - len(spans)], what)

    def gang(self, exact: bool) -> None:
        for job in self.jobs:
            free_from = -math.inf
            for span in sorted(self.spans.get(job.job_id, []), key=lambda s: (s.start, s.end)):
                if span.start < free_from - TOLERANCE:
                    self.broken("gang", job.job_id, f"holds GPUs twice at {span.start:g} s")
                # who waits for the rest of its gang makes no progress
                if exact and span.rate and abs(span.used - job.num_gpus) > TOLERANCE:
                    what = f"holds {span.used:g} of {job.num_gpus} GPUs at {span.start:g} s"
                    self.broken("gang", job.job_id, what)
                free_from = span.end

    def ends_and_work(self, exact: bool) -> None:
        seen: set[object] = set()
        for job in self.jobs:
            if job.job_id in seen:
                self.broken("ends", job.job_id, "ends twice")
            seen.add(job.job_id)
            spans = self.spans.get(job.job_id, [])
            if math.isnan(job.end_time) or not spans:
                self.broken("ends", job.job_id, "never ends")
            last, first = max(span.end for span in spans), min(span.start for span in spans)
            if not math.isclose(last, job.end_time, rel_tol=TOLERANCE):
                what = f"ends at {job.end_time:g} s but holds GPUs until {last:g} s"
                self.broken("ends", job.job_id, what)
            if first < job.submit_time - TOLERANCE:
                self.broken("ends", job.job_id, f"starts at {first:g} s, before its submission")
            served = sum(span.rate * (span.end - span.start) for span in spans)
            excess = served - job.duration
            slack = TOLERANCE * max(1.0, job.duration)
            if excess < -slack or (exact and excess > slack):
                what = f"is served {served:g} s of {job.duration:g} s of work"
                self.broken("work", job.job_id, what)
        if strangers := set(self.spans) - seen:
            self.broken("ends", next(iter(strangers)), "holds GPUs but is not in the trace")


def _by_node(intervals: pd.DataFrame) -> Iterable[tuple[int, pd.DataFrame]]:
    """Return what is held on each node; members of a group hold equal parts of it."""
    each = intervals.explode("nodes").dropna(subset="nodes")
    node, count = (each["nodes"].str[place].astype(int) for place in (0, 1))
    part = count * each["gpus"] / count.groupby(level=0).transform("sum")
    return ((int(str(number)), spans) for number, spans in each.assign(gpus=part).groupby(node))
