"""What a policy decides first on a small trace, and which solvers it calls to do so."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, make
from repro.core.view import View
from repro.errors import PolicyError
from repro.sim.simulate import simulate

Array = npt.NDArray[np.float64]

#: Function that solves -> what is written of it.
SOLVERS = {
    "linprog": "LP",
    "central_level": "LP",
    "central_ratio": "convex",
    "milp": "MILP",
    "linear_sum_assignment": "assignment",
}


class _Done(BaseException):
    """Ends a run after its first decision; no error, so nobody takes it for one of the policy."""


def first_decision(trace: pd.DataFrame, cluster: str, policy: Policy | str, **how: Any) -> Decision:
    """Return what a policy decides when the first jobs arrive.

    Parameters
    ----------
    trace : DataFrame
        Jobs.
    cluster : str
        Cluster.
    policy : Policy or str
        A policy or a registered name.
    **how
        perf and other settings of ``repro.simulate``.

    Raises
    ------
    PolicyError
        If the policy is only an ordering.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> first_decision(small_trace(), "1x4", "max-min").fill
    'exact'
    """
    held = make(policy) if isinstance(policy, str) else policy
    kept: list[Decision] = []

    class Watched(type(held)):  # type: ignore[misc]
        def session(self, view: View) -> Callable[[View], Decision]:
            decide = super().session(view)

            def once(view: View) -> Decision:
                kept.append(decide(view))
                raise _Done

            return once

    values = {field.name: getattr(held, field.name) for field in dataclasses.fields(held)}
    with contextlib.suppress(_Done):
        simulate(trace, cluster, cast(Policy, Watched(**values)), **how)
    if not kept:
        raise PolicyError(f"policy {held.name!r} only ranks jobs; give one that decides")
    return kept[0]


def first_shares(
    trace: pd.DataFrame, cluster: str, policy: Policy | str, types: Sequence[str], **how: Any
) -> Array:
    """Return the allocation matrix X a policy decides on when the first jobs arrive.

    Parameters
    ----------
    trace, cluster, policy, **how
        As for `first_decision`.
    types : sequence of str
        Order of the columns.

    Returns
    -------
    ndarray, shape (jobs, GPU types)
        Jobs in order of the trace; 0 for those that have not arrived.

    Raises
    ------
    PolicyError
        If the policy answers with runs instead of shares.

    Examples
    --------
    >>> trace = pd.DataFrame({"job_id": [0, 1], "submit_time": 0.0, "duration": 9.0, "num_gpus": 1})
    >>> first_shares(trace, "1xv100,1xk80", "las-agnostic", ["v100", "k80"]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    decided = first_decision(trace, cluster, policy, **how)
    if not isinstance(decided, Shares):
        raise PolicyError(f"policy {policy!r} answers with runs; give one that answers with shares")
    matrix = np.zeros((len(trace), len(types)))
    columns = [decided.gpu_types.index(kind) for kind in types]
    for job, row in zip(decided.jobs, decided.fractions, strict=True):
        for member in job if isinstance(job, tuple) else (job,):
            matrix[member] += row[columns]
    return matrix


def solver_calls(decide: Callable[[], object]) -> Counter[str]:
    """Return how often each kind of solver is called.

    Parameters
    ----------
    decide : callable
        What is watched.

    Returns
    -------
    Counter
        Kind of problem (a value of `SOLVERS`) to calls.

    Examples
    --------
    >>> from scipy.optimize import linprog
    >>> solver_calls(lambda: linprog([1.0]))
    Counter({'LP': 1})
    """
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        name = frame.f_code.co_name if event == "call" else getattr(arg, "__name__", "")
        if event in ("call", "c_call") and name in SOLVERS:
            calls[SOLVERS[name]] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        decide()
    finally:
        sys.setprofile(before)
    return calls
