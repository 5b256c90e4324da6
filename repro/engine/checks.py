"""Checks before a simulation: demands, decisions and starts, and the ids of awaited jobs."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from repro.base.errors import ParamError, PolicyError, TraceError
from repro.engine.holdings import Holdings
from repro.engine.overhead_costs import start_costs
from repro.engine.policy_answers import reasons_of
from repro.engine.rounds.settings import RoundSettings
from repro.engine.run_settings import RunSettings
from repro.engine.type_choice import TypeChoice
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.model.jobs import JobTable
from repro.model.policy import Order, Policy
from repro.model.speeds import Speeds
from repro.model.view import View
from repro.placement.base import Placer, answer

#: Largest number of decisions of one simulation, as estimated from the time between decisions.
MAX_DECISIONS = 10_000_000


def awaited_jobs(table: JobTable, until: Iterable[object] | None) -> set[int] | None:
    """Row numbers of the jobs that the simulation waits for; None: all jobs.

    Raises
    ------
    ParamError
        If the trace has no job of an id in ``until``, or ``until`` is empty.
    """
    if until is None:
        return None
    row = {job_id: number for number, job_id in enumerate(table.ids)}

    def row_of(job_id: object) -> int:
        try:
            return row[job_id]
        except (KeyError, TypeError):
            # a TypeError means a list or the like, which no dictionary can look up
            as_text = (
                f"; the ids of this trace are text: {str(job_id)!r}" if str(job_id) in row else ""
            )
            raise ParamError(
                f"until names job {job_id!r}, which is not in the trace{as_text}"
            ) from None

    awaited = {row_of(job_id) for job_id in until}
    if not awaited:
        raise ParamError("until names no job; give ids of the trace, or None for all jobs")
    return awaited


def check_types(cluster: Cluster) -> None:
    """Raise ParamError if some nodes have a GPU type and others have none."""
    untyped = [number for number, node in enumerate(cluster.nodes) if node.gpu_type is None]
    if untyped and cluster.gpu_types:
        raise ParamError(
            f"{cluster}: {len(untyped):,} of {cluster.num_nodes:,} nodes, the first of which is "
            f"node {untyped[0]}, have no GPU type, and this run tells GPU types apart; name the "
            f"type of every node, e.g. 4x8:v100,2x8:k80"
        )


def check_demands(
    table: JobTable,
    cluster: Cluster,
    policy: Policy,
    placers: Mapping[str | None, Placer],
    types: TypeChoice | None = None,
) -> None:
    """Raise TraceError for the first job whose demand the cluster can never meet.

    Under an elastic policy no demand is too large: a job may run on fewer GPUs. On a cluster with
    GPU types a gang holds GPUs of one type. For an `Order` without preemption, the placement rule
    must find nodes for the gang on the empty cluster, of a type on which the job can run.
    ``placers`` has the rule on the nodes of each GPU type, and ``types`` chooses among several.
    """
    limit = cluster.num_gpus
    if not policy.elastic:
        limit = max(gpus_by_type(cluster).values(), default=limit)
    type_note = " of one type" if limit < cluster.num_gpus else ""
    must_be_placeable = isinstance(policy, Order) and not policy.preemptive
    for job, gpus in enumerate(table.gpus):
        if gpus > limit and not policy.elastic:
            raise TraceError(
                f"job {table.ids[job]!r} asks for {gpus} GPUs and can never run on "
                f"{cluster} ({limit} GPUs{type_note}); use a larger cluster or drop the job"
            )
        if not must_be_placeable:
            continue
        names = list(placers) if types is None else types.names_by_speed(job)
        if not any(answer(placers[name], "possible", gpus) for name in names):
            where = f" of type {' or '.join(map(str, names))}" if len(names) < len(placers) else ""
            raise TraceError(
                f"job {table.ids[job]!r} asks for {gpus} GPUs and can never run on {cluster}: the "
                f"placement finds no nodes{where} for them; use another placement or cluster, or "
                "drop the job"
            )


def check_columns(table: JobTable, policy: Policy) -> None:
    """Raise TraceError if the trace has none of some columns of which the policy requires one.

    A column without values counts as absent.
    """
    for columns in policy.requires:
        if not any(map(table.has, columns)):
            noun = "column" if len(columns) == 1 else "columns"
            raise TraceError(
                f"{table.source}: no {noun} {' or '.join(columns)}, which policy {policy.name!r} "
                f"requires; add it, or take another policy"
            )


def check_speeds(table: JobTable, policy: Policy, speeds: Speeds) -> None:
    """Raise for the first job that has no speed, or speed 0, on all GPU types of the cluster."""
    if not speeds.has_throughputs:
        return
    kinds = set[tuple[str | None, int]]()
    for job in range(table.count):
        kind = speeds.kind(job)
        if kind not in kinds:
            kinds.add(kind)
            speeds.speeds_of(job, whole_gang=not policy.elastic)


def check_policy(table: JobTable, policy: Policy, view: View) -> None:
    """Raise PolicyError for the first job that the policy could never run."""
    reason_of = reasons_of(policy, view)
    if reason_of is None:
        return
    for job in range(table.count):
        if reason := reason_of(job):
            raise PolicyError(f"policy {policy.name!r}: job {table.ids[job]!r} {reason}")


def check_decision_times(
    table: JobTable, cluster: Cluster, policy: Policy, settings: RunSettings
) -> None:
    """Raise ParamError if the simulation would make more than `MAX_DECISIONS` decisions."""
    poll_s = policy.completions().poll_s
    if poll_s:
        _check_seconds("step_s", poll_s, table, cluster)
    if settings.interval is not None:
        _check_seconds("interval", settings.interval, table, cluster)
    elif isinstance(policy, Order):
        _check_seconds("quantum", policy.quantum_s(), table, cluster)
    elif settings.rounds.ideal is None:
        # only its first decision says whether a policy returns shares, which need rounds
        _check_seconds("round_s", settings.rounds.round_s, table, cluster)


def check_starts(table: JobTable, policy: Policy, settings: RunSettings) -> None:
    """Raise ParamError for a job whose start takes all of the time between two decisions.

    This concerns an overhead that every running job pays after every decision. Such a job would
    never progress under a policy that decides at fixed steps.
    """
    overhead = settings.overhead
    completions = policy.completions()
    step_s = completions.poll_s
    if overhead is None or not overhead.every_interval or not completions.decides or not step_s:
        return
    costs_s = start_costs(overhead, table)
    job = int(np.argmax(costs_s))
    if costs_s[job] >= step_s:
        raise ParamError(
            f"{policy.name}: decides every {step_s:g} s (step_s), and job {table.ids[job]!r} pays "
            f"a start of {costs_s[job]:g} s after every decision, so that it would never end; give "
            f"a step_s above {costs_s[job]:g}, or other rules"
        )


def check_failures(holdings: Holdings, rounds: RoundSettings | None = None) -> None:
    """Refuse failures of nodes where the engine cannot set single jobs back to a checkpoint.

    Parameters
    ----------
    holdings : Holdings
        GPUs of the jobs, with the placement and the overhead of the simulation.
    rounds : RoundSettings, optional
        Settings of the rounds of a policy that returns shares.

    Raises
    ------
    ParamError
        If the placement only counts GPUs, or if jobs pay a start in every interval. Also in rounds
        of whole steps and in ideal execution.
    """
    reason = ""
    if not holdings.gang_nodes.placer.tracks_nodes:
        reason = "this placement chooses no nodes; give one that does, such as yarn"
    elif holdings.interval_starts is not None:
        reason = (
            "jobs pay a start in every interval; give another overhead, or rules other than muri"
        )
    elif rounds is not None and rounds.ideal:
        reason = "ideal execution has no nodes; leave out ideal"
    elif rounds is not None and rounds.whole_steps:
        reason = "rounds count whole steps; set whole_steps=false, or give rules other than gavel"
    if reason:
        raise ParamError(f"failures: {reason}")


def _check_seconds(name: str, seconds: float, table: JobTable, cluster: Cluster) -> None:
    """Raise ParamError if a decision every ``seconds`` of busy time exceeds `MAX_DECISIONS`."""
    if seconds == math.inf:
        return
    columns = zip(table.work, table.solo, table.gpus, strict=True)
    gpu_seconds = sum(units * unit_s * gpus for units, unit_s, gpus in columns)
    least_s = gpu_seconds / cluster.num_gpus / MAX_DECISIONS
    if seconds < least_s:
        raise ParamError(
            f"{name} is {seconds:g} s: the jobs keep {cluster} busy for "
            f"{gpu_seconds / cluster.num_gpus:,.0f} s, more than {MAX_DECISIONS:,} decisions; "
            f"give {least_s:.1g} s or more"
        )
