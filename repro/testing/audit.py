"""Checks of a run's records that hold for any policy: capacity, gang, work and ends."""

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
    """Raise PolicyError if the records break a rule: capacity, gang, work or ends.

    ``gang``: jobs hold exactly their demand of GPUs. ``exact``: served work equals required work;
    otherwise it may be more (costs of preemption).
    """
    audit = _Audit(result)
    audit.capacity(cluster.num_gpus, result.intervals)
    if "nodes" in result.intervals:
        for node, spans in _by_node(result.intervals):
            audit.capacity(cluster.nodes[node].gpus, spans, f"node {node}")
    audit.gang(gang)
    audit.ends_and_work(exact)


class _Audit:
    """Checks of one run; the first broken rule raises."""

    def __init__(self, result: Result) -> None:
        self.meta = result.meta
        self.jobs: list[Any] = list(result.jobs.itertuples(index=False))
        self.spans: dict[object, list[Any]] = {}
        spans: list[Any] = list(result.intervals.itertuples(index=False))
        for span in spans:
            self.spans.setdefault(span.job_id, []).append(span)

    def broken(self, rule: str, job: object, fault: str) -> NoReturn:
        """Raise for the first broken rule."""
        policy = self.meta.get("policy", "unnamed")
        trace = self.meta.get("trace", "unnamed")
        raise PolicyError(
            f"policy {policy!r}, trace {trace!r}: job {job!r} breaks rule {rule!r}: {fault}"
        )

    def capacity(self, limit: int, spans: pd.DataFrame, where: str = "the cluster") -> None:
        """Check that jobs never hold more than ``limit`` GPUs of a cluster or node."""
        gpus = spans["gpus"].to_numpy(float)
        times = np.concatenate([spans["end"].to_numpy(float), spans["start"].to_numpy(float)])
        change = np.concatenate([-gpus, gpus])
        # At one instant GPUs are released before they are taken.
        order = np.lexsort((change, times))
        over = np.cumsum(change[order]) > limit + TOLERANCE
        if over.any():
            # an excess begins with a start, and the starts follow the ends in ``times``
            event = order[int(over.argmax())]
            job = spans["job_id"].tolist()[event - len(spans)]
            fault = f"more than the {limit} GPUs of {where} are held at {times[event]:g} s"
            self.broken("capacity", job, fault)

    def gang(self, holds_demand: bool) -> None:
        """Check that no intervals of a job overlap.

        With ``holds_demand``, check also that a job holds exactly its demand of GPUs.
        """
        for job in self.jobs:
            free_from = -math.inf
            for span in sorted(self.spans.get(job.job_id, []), key=lambda s: (s.start, s.end)):
                if span.start < free_from - TOLERANCE:
                    self.broken("gang", job.job_id, f"holds GPUs twice at {span.start:g} s")
                # A job at rate 0 still waits for GPUs of its gang.
                if holds_demand and span.rate and abs(span.used - job.num_gpus) > TOLERANCE:
                    fault = f"holds {span.used:g} of {job.num_gpus} GPUs at {span.start:g} s"
                    self.broken("gang", job.job_id, fault)
                free_from = span.end

    def ends_and_work(self, exact: bool) -> None:
        """Check that each job ends once, with its last interval, and is served its work."""
        seen: set[object] = set()
        for job in self.jobs:
            if job.job_id in seen:
                self.broken("ends", job.job_id, "ends twice")
            seen.add(job.job_id)
            spans = self.spans.get(job.job_id, [])
            if math.isnan(job.end_time) or not spans:
                self.broken("ends", job.job_id, "never ends")
            first_start = min(span.start for span in spans)
            last_end = max(span.end for span in spans)
            if not math.isclose(last_end, job.end_time, rel_tol=TOLERANCE):
                fault = f"ends at {job.end_time:g} s but holds GPUs until {last_end:g} s"
                self.broken("ends", job.job_id, fault)
            if first_start < job.submit_time - TOLERANCE:
                self.broken(
                    "ends", job.job_id, f"starts at {first_start:g} s, before its submission"
                )
            served = sum(span.rate * (span.end - span.start) for span in spans)
            excess = served - job.duration
            slack = TOLERANCE * max(1.0, job.duration)
            if excess < -slack or (exact and excess > slack):
                fault = f"is served {served:g} s of {job.duration:g} s of work"
                self.broken("work", job.job_id, fault)
        if unknown := set(self.spans) - seen:
            self.broken("ends", next(iter(unknown)), "holds GPUs but is not in the trace")


def _by_node(intervals: pd.DataFrame) -> Iterable[tuple[int, pd.DataFrame]]:
    """Intervals on each node.

    The GPUs of an interval are divided among its nodes in proportion to the counts in ``nodes``.
    """
    on_nodes = intervals.explode("nodes").dropna(subset="nodes")
    node = on_nodes["nodes"].str[0].astype(int)
    count = on_nodes["nodes"].str[1].astype(int)
    gpus = count * on_nodes["gpus"] / count.groupby(level=0).transform("sum")
    by_node = on_nodes.assign(gpus=gpus).groupby(node)
    return ((int(str(number)), spans) for number, spans in by_node)
