"""Gavel's policies at their first decision: shares, problems solved (Table 1, Fig 12)."""

import dataclasses
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
from repro.model.view import View
from repro.papers.gavel.examples import constraint_sums
from repro.solve.counted import counted_solves

#: What a policy declares to read -> the word for it in Table 1.
READS = {
    "throughput": "speeds",
    "duration": "work left",
    "priority_weight": "weights",
    "slo": "SLOs",
    "entity": "entities",
}
NONE = "greedy or closed form"


class _Reached(BaseException):
    """Ends a run at its first decision; not an `Exception`, which the simulator might handle."""


def first_view(
    trace: pd.DataFrame, cluster: str, policy: Policy, perf: Performance | None = None
) -> View:
    """Return what a policy sees when the first jobs arrive; `PolicyError` if it only ranks jobs."""

    class Stopping(type(policy)):  # type: ignore[misc]
        rule = None  # by a compiled rule nobody would ask

        def session(self, view: View) -> Callable[[View], Decision]:
            def stop(view: View) -> Decision:
                raise _Reached(view)

            return stop

    values = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    try:
        simulate(trace, cluster, cast(Policy, Stopping(**values)), perf=perf)
    except _Reached as reached:
        return cast(View, reached.args[0])
    raise PolicyError(f"policy {policy.name!r} only ranks jobs; give one that decides")


def first_shares(
    trace: pd.DataFrame,
    cluster: str,
    policy: str,
    types: Sequence[str],
    perf: Performance | None = None,
) -> Floats:
    """Return the matrix X a policy decides on when the first jobs arrive, shape (jobs, types)."""
    made = make(policy)
    view = first_view(trace, cluster, made, perf)
    decided = made.session(view)(view)
    if not isinstance(decided, Shares):
        raise PolicyError(f"policy {policy!r} answers with runs; give one that answers with shares")
    matrix = np.zeros((len(trace), len(types)))
    columns = [decided.gpu_types.index(name) for name in types]
    for job, row in zip(decided.jobs, decided.fractions, strict=True):
        for member in job if isinstance(job, tuple) else (job,):
            matrix[member] += row[columns]
    return matrix


def policy_table(
    rows: Mapping[str, str], trace: pd.DataFrame, cluster: str, gpus: Mapping[str, int]
) -> pd.DataFrame:
    """Return what each policy optimises and reads, and what one decision solves and uses."""
    records = []
    for row, name in rows.items():
        declared = policies[name]
        with counted_solves() as counts:
            shares = first_shares(trace, cluster, name, list(gpus))
        sums = constraint_sums(shares, trace["num_gpus"].tolist(), list(gpus.values()))
        objective = (declared.__doc__ or "").strip().splitlines()[0]
        reads = [word for need, word in READS.items() if need in declared.needs]
        solver = ", ".join(sorted(counts)) or NONE, sum(counts.values())
        most = max(sums["time"]), max(sums["gpus"])
        records.append((row, name, objective, reads, *solver, *most))
    columns = ["row", "policy", "objective", "reads", "solver", "solves", "most_time", "most_gpus"]
    return pd.DataFrame(records, columns=columns)
