"""Checks before a run: demands fit the cluster, decisions are few enough, awaited jobs exist."""

import math
from collections.abc import Iterable

from repro.base.errors import ParamError, TraceError
from repro.engine.run_settings import RunSettings
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.model.jobs import JobTable
from repro.model.policy import Order, Policy
from repro.placement.base import Placer

#: Largest number of decisions of one run, as estimated from the time between decisions.
MAX_DECISIONS = 10_000_000


def awaited_jobs(table: JobTable, until: Iterable[object] | None) -> set[int] | None:
    """Row numbers of the jobs that a run waits for; None: all jobs.

    Raises
    ------
    ParamError
        If the trace has no job of an id in ``until``.
    """
    if until is None:
        return None
    row = {job_id: number for number, job_id in enumerate(table.ids)}
    try:
        return {row[job_id] for job_id in until}
    except (KeyError, TypeError) as error:
        raise ParamError(f"until names job {error}, which is not in the trace") from None


def check_demands(table: JobTable, cluster: Cluster, policy: Policy, placer: Placer) -> None:
    """Raise TraceError for the first job whose demand the cluster can never meet.

    A policy of divisible GPUs gives a job fewer GPUs than its demand. Any other policy that is not
    an `Order` gives a gang GPUs of one type. Without preemption the placement rule must place it.
    """
    limit = cluster.num_gpus
    if not isinstance(policy, Order) and not policy.elastic:
        limit = max(gpus_by_type(cluster).values(), default=limit)
    one_type = " of one type" if limit < cluster.num_gpus else ""
    placed = isinstance(policy, Order) and not policy.preemptive
    for job, gpus in enumerate(table.gpus):
        too_wide = gpus > limit and not policy.elastic
        if too_wide or (placed and not placer.possible(gpus)):
            raise TraceError(
                f"job {table.ids[job]!r} asks for {gpus} GPUs and can never run on "
                f"{cluster} ({limit} GPUs{one_type}"
                f"{', under this placement' if gpus <= limit else ''}); use a larger cluster "
                f"or drop the job"
            )


def check_decision_times(
    table: JobTable, cluster: Cluster, policy: Policy, settings: RunSettings
) -> None:
    """Raise ParamError if decisions follow each other so fast that the run would never end."""
    poll_s = policy.completions().poll_s
    if poll_s:
        _check_seconds("step_s", poll_s, table, cluster)
    if settings.interval is not None:
        _check_seconds("interval", settings.interval, table, cluster)
    elif isinstance(policy, Order):
        _check_seconds("quantum", policy.quantum_s(), table, cluster)
    elif settings.rounds.ideal is None:
        # the policy may return shares, but only after it has solved its first programme
        _check_seconds("round_s", settings.rounds.round_s, table, cluster)


def _check_seconds(name: str, seconds: float, table: JobTable, cluster: Cluster) -> None:
    """Raise ParamError if a busy cluster makes more than `MAX_DECISIONS`, one every ``seconds``."""
    if seconds == math.inf:
        return
    work = sum(u * s * g for u, s, g in zip(table.work, table.solo, table.gpus, strict=True))
    least = work / cluster.num_gpus / MAX_DECISIONS
    if seconds < least:
        raise ParamError(
            f"{name} is {seconds:g} s: the jobs keep {cluster} busy for "
            f"{work / cluster.num_gpus:,.0f} s, more than {MAX_DECISIONS:,} decisions; "
            f"give {least:.1g} s or more"
        )
