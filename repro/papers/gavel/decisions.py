"""First decision of Gavel's policies: allocation and problems solved (Table 1, Fig 12)."""

import dataclasses
import functools
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import pandas as pd

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.engine.simulate import simulate
from repro.model.decision import Decision, Shares
from repro.model.performance import Performance
from repro.model.policy import Policy, make, policies
from repro.model.typed_shares import Kinds, TypedShares
from repro.model.view import View
from repro.papers.gavel.examples import constraint_sums
from repro.solve.counted import counted_solves

#: Input that a policy declares in ``needs`` -> its name in Table 1.
INPUT_NAMES = {
    "throughput": "speeds",
    "duration": "work left",
    "priority_weight": "weights",
    "slo": "SLOs",
    "entity": "entities",
}
NO_SOLVER = "greedy or closed form"


class _FirstDecision(BaseException):
    """Ends a run at its first decision; a `BaseException`, so that no handler swallows it."""


def first_view(
    trace: pd.DataFrame, cluster: str, policy: Policy, perf: Performance | None = None
) -> View:
    """View of a policy when the first jobs arrive; `PolicyError` if it only ranks jobs."""

    class Stopping(type(policy)):  # type: ignore[misc]
        rule = None  # a compiled rule would bypass `session`

        def session(self, view: View) -> Callable[[View], Decision]:
            def stop(view: View) -> Decision:
                raise _FirstDecision(view)

            return stop

    values = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    try:
        simulate(trace, cluster, cast(Policy, Stopping(**values)), perf=perf)
    except _FirstDecision as stop:
        return cast(View, stop.args[0])
    raise PolicyError(f"policy {policy.name!r} only ranks jobs; give one that decides")


def first_shares(
    trace: pd.DataFrame,
    cluster: str,
    policy: str,
    types: Sequence[str],
    perf: Performance | None = None,
) -> Floats:
    """Allocation X of a policy when the first jobs arrive, shape (rows of the trace, GPU types).

    A job that has not arrived has shares of 0.
    """
    policy_object = make(policy)
    view = first_view(trace, cluster, policy_object, perf)
    decision = policy_object.session(view)(view)
    if not isinstance(decision, Shares):
        raise PolicyError(f"policy {policy!r} answers with runs; give one that answers with shares")
    matrix = np.zeros((len(trace), len(types)))
    columns = [decision.gpu_types.index(name) for name in types]
    row_of_id = {job_id: row for row, job_id in enumerate(trace["job_id"])}
    for job, fractions in zip(decision.jobs, decision.fractions, strict=True):
        for member in job if isinstance(job, tuple) else (job,):
            matrix[row_of_id[view.job_id(member)]] += fractions[columns]
    return matrix


def policy_table(
    rows: Mapping[str, str], trace: pd.DataFrame, cluster: str, gpus: Mapping[str, int]
) -> pd.DataFrame:
    """Table: objective, inputs, solver calls and largest constraint sums, by policy."""
    records = []
    for row, name in rows.items():
        policy_class = policies[name]
        with counted_solves() as counts:
            shares = first_shares(trace, cluster, name, list(gpus))
        sums = constraint_sums(shares, trace["num_gpus"].tolist(), list(gpus.values()))
        objective = (policy_class.__doc__ or "").strip().splitlines()[0]
        reads = [word for need, word in INPUT_NAMES.items() if need in policy_class.needs]
        solver = ", ".join(sorted(counts)) or NO_SOLVER
        solves = sum(counts.values())
        most_time = max(sums["time"])
        most_gpus = max(sums["gpus"])
        records.append((row, name, objective, reads, solver, solves, most_time, most_gpus))
    columns = ["row", "policy", "objective", "reads", "solver", "solves", "most_time", "most_gpus"]
    return pd.DataFrame(records, columns=columns)


def allocation_seconds(
    policy: Policy,
    trace: pd.DataFrame,
    cluster: str,
    perf: Performance,
    *,
    calls: int,
    per_job: bool,
) -> list[float]:
    """CPU seconds of each call of a policy's first allocation, all jobs submitted at once.

    ``per_job``: the programme has a row per job (`job_by_job`) instead of per kind.
    """
    view = first_view(trace.assign(submit_time=0.0), cluster, policy, perf)

    def kinds() -> object:
        return policy.session(view)(view)

    solve = job_by_job(cast(TypedShares, policy), view) if per_job else kinds
    # CPU time, so that other work on the machine does not count
    return timeit.repeat(solve, "gc.enable()", time.process_time, calls, 1)


def job_by_job(policy: TypedShares, view: View) -> Callable[[], Floats | None]:
    """Allocation with a row per job instead of per kind, as a function without arguments.

    The jobs belong to three entities in turn.
    """
    jobs = len(view.jobs)
    ones = np.ones(jobs)
    rows = Kinds(
        speeds=np.array([view.speeds(job) for job in view.jobs]),
        gpus=view.gpu_counts,
        counts=ones,
        widths=np.array([view.gpus(job) for job in view.jobs], float),
        weights=ones,
        key=lambda row: (row, f"{row % 3}"),
    )
    return functools.partial(policy.shares, rows)
