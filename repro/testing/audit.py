"""Checks of a run's records that hold for any policy: capacity, gang, work and ends.

They read the records, the cluster and the trace, and nothing of the engine.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import pandas as pd

from repro.base.errors import PolicyError
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy
from repro.model.records import Result
from repro.model.rules import Rules

TOLERANCE = 1e-6


def check_records(
    result: Result,
    cluster: Cluster,
    *,
    gang: bool = True,
    exact: bool = True,
    tick_s: float = 0.0,
    trace: pd.DataFrame | None = None,
) -> None:
    """Check that the records of a run do not contradict each other, the cluster or the trace.

    - capacity: jobs hold at most the GPUs of the cluster, of each GPU type and of each node
    - nodes: the GPUs of an interval are on nodes of its GPU type. Their number is at least that in
      column gpus (the job's part, if jobs share the GPUs), and at most that in column used (all
      GPUs that the job runs on)
    - gang: a job never runs twice at once, and holds all the GPUs of its demand
    - ends, work: every job ends once, with its last interval, and is served its work
    - records: start, JCT and queueing follow from intervals and trace; utilisation is at most 1

    Parameters
    ----------
    result : Result
        Records of a run in which all jobs ended.
    cluster : Cluster
        Cluster of the run.
    gang : bool
        Whether jobs hold exactly their demand of GPUs.
    exact : bool
        Whether served work equals required work; otherwise it may be more (costs of preemption).
    tick_s : float
        Period of a clock of whole ticks (s), 0 without one. A job that waits for GPUs with less
        than a tick of work left may end without a further interval. Its last interval is then
        before its end.
    trace : DataFrame, optional
        Jobs of the run, with which the records are compared.

    Raises
    ------
    PolicyError
        If the records break a rule. The message names the rule and the job.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> result = simulate(small_trace(), "1x4", "srtf")
    >>> check_records(result, Cluster.parse("1x4"), trace=small_trace())
    """
    audit = _Audit(result)
    audit.capacity(cluster)
    audit.gang(gang)
    audit.nodes(cluster)
    audit.ends_and_work(exact, tick_s)
    audit.records(cluster.num_gpus)
    if trace is not None:
        audit.same_jobs(trace)


def serves_exactly(
    policy: Policy, rules: Rules, options: Mapping[str, Any], *, in_rounds: bool
) -> bool:
    """Whether jobs hold GPUs for exactly their work: no start costs, and no end is noticed late.

    Parameters
    ----------
    policy : Policy
        Policy of the run.
    rules : Rules
        Rule set of the run.
    options : mapping
        Options of `repro.simulate`: overhead, rounds, failures.
    in_rounds : bool
        Whether the policy returns `Shares`, which rounds execute.

    Examples
    --------
    >>> from repro.model.policy import make
    >>> from repro.model.rules import rules_named
    >>> srtf = make("srtf")
    >>> rules = rules_named("paper")
    >>> serves_exactly(srtf, rules, {}, in_rounds=False)
    True
    >>> serves_exactly(srtf, rules, {"overhead": 5.0}, in_rounds=False)
    False
    """
    rounds = {**rules.rounds, **(options.get("rounds") or {})}
    has_costs = (
        options.get("overhead") not in (None, 0, "none")
        or policy.overhead() is not None
        or rules.start_overhead
        or rounds.get("preemption_overhead_s")
        or getattr(policy, "resize_s", 0.0)
        or options.get("failures") is not None
    )
    # in rounds of whole steps, a job holds its GPUs until the last job of the round has its steps
    is_late = policy.completions().poll_s or (in_rounds and rounds.get("whole_steps"))
    return not (has_costs or is_late)


class _Job(NamedTuple):
    """Record of a job; times in seconds."""

    job_id: object
    submit_time: float
    start_time: float
    end_time: float
    jct: float
    num_gpus: int
    duration: float
    queueing: float


class _Span(NamedTuple):
    """Interval in which a job holds GPUs; times in seconds."""

    job_id: object
    start: float
    end: float
    #: GPUs that count against the cluster, divided by the number of jobs of the group
    gpus: float
    #: all GPUs that the job runs on
    used: float
    rate: float
    #: node and number of its GPUs; empty if the placement does not track nodes
    nodes: Sequence[tuple[int, int]] = ()
    #: None: no GPU type, or several at once
    gpu_type: str | None = None


_Row = TypeVar("_Row", _Job, _Span)


class _Audit:
    """Checks of one run; the first broken rule raises."""

    def __init__(self, result: Result) -> None:
        self.meta = result.meta
        self.jobs = _rows(result.jobs, _Job)
        self.spans_of: dict[object, list[_Span]] = {}
        for span in _rows(result.intervals, _Span):
            self.spans_of.setdefault(span.job_id, []).append(span)

    def broken(self, rule: str, job: object, fault: str) -> NoReturn:
        """Raise for the first broken rule."""
        policy = self.meta.get("policy", "unnamed")
        trace = self.meta.get("trace", "unnamed")
        raise PolicyError(
            f"policy {policy!r}, trace {trace!r}: job {job!r} breaks rule {rule!r}: {fault}"
        )

    def capacity(self, cluster: Cluster) -> None:
        """Check that jobs never hold more GPUs than the cluster, a GPU type or a node has."""
        spans = [span for of_job in self.spans_of.values() for span in of_job]
        by_type: dict[str, list[_Span]] = {}
        by_node: dict[int, list[_Span]] = {}
        for span in spans:
            if isinstance(span.gpu_type, str):
                by_type.setdefault(span.gpu_type, []).append(span)
            on_nodes = sum(count for _, count in span.nodes)
            for node, count in span.nodes:
                part = span._replace(gpus=count * span.gpus / on_nodes)
                by_node.setdefault(node, []).append(part)
        self._refuse_excess(cluster.num_gpus, spans, "the cluster")
        for gpu_type, of_type in sorted(by_type.items()):
            self._refuse_excess(cluster.gpu_types[gpu_type], of_type, f"type {gpu_type}")
        for node, on_node in sorted(by_node.items()):
            self._refuse_excess(cluster.nodes[node].gpus, on_node, f"node {node}")

    def _refuse_excess(self, limit: int, spans: Sequence[_Span], where: str) -> None:
        """Raise if the GPUs of intervals are more than ``limit`` at an instant."""
        gpus = np.array([span.gpus for span in spans])
        times = np.array([span.end for span in spans] + [span.start for span in spans])
        change = np.concatenate([-gpus, gpus])
        # At one instant GPUs are released before they are taken.
        order = np.lexsort((change, times))
        over = np.cumsum(change[order]) > limit + TOLERANCE
        if over.any():
            # An excess begins with a start. The array ``times`` has all ends, then all starts.
            event = int(order[int(over.argmax())])
            job = spans[event - len(spans)].job_id
            fault = f"more than the {limit} GPUs of {where} are held at {times[event]:g} s"
            self.broken("capacity", job, fault)

    def nodes(self, cluster: Cluster) -> None:
        """Check the nodes of an interval: its GPU type, and from ``gpus`` to ``used`` GPUs."""
        for span in (span for spans in self.spans_of.values() for span in spans if span.nodes):
            types = {cluster.nodes[node].gpu_type for node, _ in span.nodes}
            if isinstance(span.gpu_type, str) and types != {span.gpu_type}:
                fault = (
                    f"holds GPUs of type {span.gpu_type} on nodes of {types} at {span.start:g} s"
                )
                self.broken("nodes", span.job_id, fault)
            count = sum(gpus for _, gpus in span.nodes)
            if not span.gpus - TOLERANCE <= count <= span.used + TOLERANCE:
                fault = f"has {count} GPUs on nodes and uses {span.used:g} at {span.start:g} s"
                self.broken("nodes", span.job_id, fault)

    def gang(self, holds_demand: bool) -> None:
        """Check that no intervals of a job overlap.

        With ``holds_demand``, check also that a job holds exactly its demand of GPUs.
        """
        for job in self.jobs:
            free_from = -math.inf
            for span in sorted(self.spans_of.get(job.job_id, []), key=lambda s: (s.start, s.end)):
                if span.start < free_from - TOLERANCE:
                    self.broken("gang", job.job_id, f"holds GPUs twice at {span.start:g} s")
                # A job at rate 0 still waits for GPUs of its gang.
                if holds_demand and span.rate and abs(span.used - job.num_gpus) > TOLERANCE:
                    fault = f"holds {span.used:g} of {job.num_gpus} GPUs at {span.start:g} s"
                    self.broken("gang", job.job_id, fault)
                free_from = span.end

    def ends_and_work(self, exact: bool, tick_s: float) -> None:
        """Check that each job ends once, with its last interval, and is served its work."""
        seen: set[object] = set()
        for job in self.jobs:
            if job.job_id in seen:
                self.broken("ends", job.job_id, "ends twice")
            seen.add(job.job_id)
            spans = self.spans_of.get(job.job_id, [])
            # a job without work, such as one of a fraction of a second that a rule set cuts to 0 s,
            # may hold nothing
            if math.isnan(job.end_time) or not (spans or job.duration == 0):
                self.broken("ends", job.job_id, "never ends")
            if not spans:
                continue
            first_start = min(span.start for span in spans)
            last_end = max(span.end for span in spans)
            if first_start < job.submit_time - TOLERANCE:
                self.broken(
                    "ends", job.job_id, f"starts at {first_start:g} s, before its submission"
                )
            served = sum(span.rate * (span.end - span.start) for span in spans)
            excess = served - job.duration
            is_last = math.isclose(last_end, job.end_time, rel_tol=TOLERANCE)
            if not is_last and not -tick_s < excess < tick_s:
                fault = f"ends at {job.end_time:g} s but holds GPUs until {last_end:g} s"
                self.broken("ends", job.job_id, fault)
            slack = TOLERANCE * max(1.0, job.duration)
            if excess < -slack or (exact and excess > slack):
                fault = f"is served {served:g} s of {job.duration:g} s of work"
                self.broken("work", job.job_id, fault)
        if unknown := set(self.spans_of) - seen:
            self.broken("ends", next(iter(unknown)), "holds GPUs but is not in the trace")

    def records(self, num_gpus: int) -> None:
        """Check that start, JCT, queueing and utilisation follow from the intervals."""
        held_gpu_s = 0.0
        for job in self.jobs:
            spans = self.spans_of.get(job.job_id, [])
            held_gpu_s += sum(span.gpus * (span.end - span.start) for span in spans)
            # a job that waits for GPUs of its gang holds some before it starts
            first_start = min((span.start for span in spans if span.rate), default=job.start_time)
            values = {
                "start_time": (job.start_time, first_start),
                "jct": (job.jct, job.end_time - job.submit_time),
                "queueing": (job.queueing, job.jct - job.duration),
            }
            slack = TOLERANCE * max(1.0, job.end_time)
            for name, (value, expected) in values.items():
                if not abs(value - expected) <= slack:
                    fault = f"{name} is {value:g} s instead of {expected:g} s"
                    self.broken("records", job.job_id, fault)
        makespan_s = max(job.end_time for job in self.jobs) - min(
            job.submit_time for job in self.jobs
        )
        if held_gpu_s > num_gpus * makespan_s * (1 + TOLERANCE) + TOLERANCE:
            fault = f"jobs hold {held_gpu_s:g} GPU-seconds of {num_gpus * makespan_s:g}"
            self.broken("records", self.jobs[0].job_id, fault)

    def same_jobs(self, trace: pd.DataFrame) -> None:
        """Check that the records have the jobs of a trace, in its order, with their demands."""
        submitted = list(zip(trace["job_id"], trace["submit_time"], trace["num_gpus"], strict=True))
        if [job.job_id for job in self.jobs] != [job_id for job_id, _, _ in submitted]:
            self.broken("records", submitted[0][0], "the records have other jobs than the trace")
        for job, (_, submit_s, gpus) in zip(self.jobs, submitted, strict=True):
            # rule sets may cut times to whole seconds
            if job.num_gpus != gpus or not -1.0 < job.submit_time - submit_s <= TOLERANCE:
                fault = f"{job.num_gpus} GPUs at {job.submit_time:g} s, not {gpus} at {submit_s:g}"
                self.broken("records", job.job_id, f"asks for {fault} s")


def _rows(frame: pd.DataFrame, row: type[_Row]) -> list[_Row]:
    """Rows of a frame, with those fields of ``row`` that it has as columns."""
    fields = [name for name in row._fields if name in frame]
    columns = [frame[name].tolist() for name in fields]
    return [row(**dict(zip(fields, values, strict=True))) for values in zip(*columns, strict=True)]
