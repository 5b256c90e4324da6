"""Checks of what the methods of a policy return before the first event of a simulation."""

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from repro.base.errors import PolicyError
from repro.base.outside import outside_classes, place_note, takes
from repro.engine.arguments import ARGUMENTS, Accepted
from repro.engine.run_errors import naming_the_policy
from repro.model.baseline import Baseline
from repro.model.cluster.spec import Cluster
from repro.model.decision import ROW_NUMBER
from repro.model.jobs import JobTable
from repro.model.methods import check_methods, wrong_parameters
from repro.model.performance import Overhead
from repro.model.policy import CompiledRun, LinearKey, Order, Ordering, Policy
from repro.model.rules import Completions
from repro.model.settings import Above
from repro.model.view import View
from repro.placement.base import Placement

_QUANTUM = Above(0, "seconds")


def _are_names(value: Any) -> bool:
    """Whether a value is a tuple of texts."""
    return isinstance(value, tuple | list) and all(isinstance(name, str) for name in value)


def _are_alternatives(value: Any) -> bool:
    """Whether a value is a tuple of names of columns that is not empty."""
    return _are_names(value) and len(value) > 0


def _are_requirements(value: Any) -> bool:
    """Whether a value is a tuple of tuples of names of columns, none of these tuples empty."""
    return isinstance(value, tuple | list) and all(map(_are_alternatives, value))


#: Accepted values of attributes of a policy.
_ATTRIBUTES: Mapping[str, Accepted] = {
    "needs": Accepted(
        lambda value: isinstance(value, set | frozenset), "a set of inputs, such as {'duration'}"
    ),
    "requires": Accepted(_are_requirements, "a tuple of tuples of columns, such as (('slo',),)"),
    "placement": Accepted(
        lambda value: isinstance(value, str | Placement), "a placement rule, or its name"
    ),
    "time_fields": Accepted(
        _are_names, "a tuple of names of parameters in seconds, such as ('slice_s',)"
    ),
    "baseline": Accepted(lambda value: isinstance(value, Baseline | None), "a Baseline, or None"),
    "interval": ARGUMENTS["interval"],
}
_TRUTH = Accepted(lambda value: isinstance(value, bool | np.bool_), "True or False")
#: Accepted values of further attributes of an `Order`.
_ATTRIBUTES_OF_ORDER: Mapping[str, Accepted] = {"preemptive": _TRUTH, "blocking": _TRUTH}
#: Accepted results of methods without arguments.
_RESULTS: Mapping[str, Accepted] = {
    "performance": ARGUMENTS["perf"],
    "overhead": Accepted(
        lambda value: isinstance(value, Overhead | None), "an Overhead (an instance), or None"
    ),
    "completions": Accepted(
        lambda value: isinstance(value, Completions), "a Completions of repro.model.rules"
    ),
}
_QUANTUM_RESULT = Accepted(_QUANTUM.holds, f"{_QUANTUM.words('a number')}, or infinity")


def check_answers(policy: Policy) -> None:
    """Check attributes of a policy from outside the package, and methods without arguments.

    Raises
    ------
    PolicyError
        If a method fails, or a value is not accepted. The message has the file and line.
    """
    if not outside_classes(type(policy)):
        return
    of_order = _ATTRIBUTES_OF_ORDER if isinstance(policy, Order) else {}
    for name, accepted in {**_ATTRIBUTES, **of_order}.items():
        with naming_the_policy(policy):
            value = getattr(policy, name)
        if not accepted.accepts(value):
            _refuse(policy, name, f"{name} is", value, accepted.description)
    parameters = [field.name for field in dataclasses.fields(policy)]
    if not set(policy.time_fields) <= set(parameters):
        names = f"a tuple of names of its parameters ({', '.join(parameters) or 'none'})"
        _refuse(policy, "time_fields", "time_fields is", policy.time_fields, names)
    results = dict(_RESULTS)
    if isinstance(policy, Order):
        results["quantum_s"] = _QUANTUM_RESULT
    for name, accepted in results.items():
        with naming_the_policy(policy):
            value = getattr(policy, name)()
        if not accepted.accepts(value):
            _refuse(policy, name, f"{name}() returned", value, accepted.description)


def session_of(policy: Policy, view: View) -> Callable[[View], Any]:
    """Decision function of a policy for one run, checked; PolicyError if it is no such function."""
    session = policy.session(view)
    if not callable(session):
        _refuse(policy, "session", "session(view) returned", session, "a function of a view")
    if not takes(session, 1):
        subject = f"policy {policy.name!r}"
        if type(policy).session is Policy.session:
            raise wrong_parameters(subject, "decide", type(policy).decide, "decide(self, view)")
        subject += ", function that session(view) returned"
        raise wrong_parameters(subject, "decide", session, "decide(view)")
    return session


def ordering_of(policy: Order, view: View) -> Ordering:
    """Ranking of the jobs of one run, checked; PolicyError if it is no `Ordering`."""
    ordering = policy.ordering(view)
    if not isinstance(ordering, Ordering):
        _refuse(policy, "ordering", "ordering(view) returned", ordering, "an Ordering")
    check_methods(type(ordering), f"policy {policy.name!r}, ordering")
    return ordering


def moves_of(ordering: Ordering, now: float, table: JobTable) -> list[int]:
    """Unfinished jobs whose key jumps, by `Ordering.moves` of a user; PolicyError for other rows.

    An ordering may also name jobs that are finished or not submitted.
    """
    moves: Any = ordering.moves(now)
    rows = list(moves) if isinstance(moves, Iterable) else [None]
    if not all(_is_row(row, table.count) for row in rows):
        accepted = f"a list of row numbers from 0 to {table.count - 1}"
        _refuse_answer(ordering, "moves", moves, accepted)
    return [int(row) for row in rows if row in table.active]


def _is_row(row: Any, num_jobs: int) -> bool:
    """Whether a value is the row number of one of the jobs."""
    return isinstance(row, ROW_NUMBER) and type(row) is not bool and bool(0 <= row < num_jobs)


def check_keys(ordering: Ordering, keys: Any, num_jobs: int, key_length: int) -> None:
    """Check the array of `Ordering.keys`; PolicyError unless it has a row of numbers per job."""
    shapes = [(num_jobs, key_length), *([(num_jobs,)] if key_length == 1 else [])]
    is_array = isinstance(keys, np.ndarray) and keys.dtype.kind in "biuf"
    if not is_array or keys.shape not in shapes:
        accepted = f"an array of numbers for {num_jobs} jobs, {key_length} per job"
        _refuse_answer(ordering, "keys", keys, accepted)


def linear_key_of(policy: Order, view: View) -> LinearKey | None:
    """Keys of the jobs that are linear in time, checked; PolicyError if they are no `LinearKey`."""
    key = policy.linear_key(view)
    if key is None or not outside_classes(type(policy)):
        return key
    accepted = ""
    if not isinstance(key, LinearKey):
        accepted = "a LinearKey of repro.model.policy, or None"
    elif not all(_are_factors(factor, len(view.widths)) for factor in key[:2]):
        accepted = "finite factors, each a number or an array with a number per job"
    elif not _are_limits(key.limits):
        accepted = "a tuple of ascending limits whose last is infinity, or no limits"
    elif key.limits and any(np.any(factor) for factor in key[:2]):
        accepted = "limits or factors, not both: factors have no effect on a key with limits"
    if accepted:
        _refuse(policy, "linear_key", "linear_key(view) returned", key, accepted)
    return key


def _are_factors(value: Any, num_jobs: int) -> bool:
    """Whether a value is a finite number, or an array of as many finite numbers as jobs."""
    if not isinstance(value, numbers.Real | np.ndarray):
        return False
    factors = np.asarray(value)
    return (
        factors.dtype.kind in "biuf"
        and factors.shape in {(), (num_jobs,)}
        and bool(np.isfinite(factors).all())
    )


def _are_limits(value: Any) -> bool:
    """Whether a value is an empty tuple, or a tuple of ascending numbers that ends at infinity."""
    return isinstance(value, tuple) and (
        not value
        or (
            all(isinstance(limit, numbers.Real) for limit in value)
            and all(lower < upper for lower, upper in pairwise(value))
            and value[-1] == math.inf
        )
    )


def compiled_run_of(policy: Policy, cluster: Cluster) -> CompiledRun | None:
    """Compiled functions of a policy, checked; PolicyError if they are no such function."""
    run = policy.compiled_run(cluster)
    accepted = "a function of job table, cluster and intervals, or None"
    call = "run(table, cluster, intervals)"
    _check_function(policy, run, "compiled_run(cluster)", call, accepted)
    return run


def reasons_of(policy: Policy, view: View) -> Callable[[int], str] | None:
    """Function of `Policy.never_runs`, checked; PolicyError if it is no function of a job."""
    reason_of = policy.never_runs(view)
    accepted = "a function of a row number, or None"
    _check_function(policy, reason_of, "never_runs(view)", "reason(job)", accepted)
    return reason_of


def _check_function(policy: Policy, value: Any, method: str, call: str, accepted: str) -> None:
    """Check that what a method of a policy returned is None or can be called as in ``call``."""
    if value is None:
        return
    if not callable(value):
        _refuse(policy, method.partition("(")[0], f"{method} returned", value, accepted)
    name, _, arguments = call.partition("(")
    if not takes(value, arguments.count(",") + 1):
        subject = f"policy {policy.name!r}, function that {method} returned"
        raise wrong_parameters(subject, name, value, call)


def _refuse(policy: Policy, name: str, what: str, value: object, accepted: str) -> NoReturn:
    """Raise PolicyError for a value of a policy, with the place of the method or class."""
    cls = type(policy)
    definer = next((base for base in cls.__mro__ if name in vars(base)), cls)
    note = place_note(vars(definer).get(name)) or place_note(definer)
    raise PolicyError(f"policy {policy.name!r}: {what} {_short(value)}{note}; give {accepted}")


def _refuse_answer(ordering: Ordering, name: str, value: object, accepted: str) -> NoReturn:
    """Raise PolicyError for what a method of an ordering returned, with the place of the method."""
    owner = ordering if outside_classes(type(ordering)) else ordering.policy
    note = place_note(getattr(owner, name, None))
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    raise PolicyError(
        f"policy {ordering.policy.name!r}: {name} of its ordering returned {_short(value)}{shape}"
        f"{note}; give {accepted}"
    )


def _short(value: object) -> str:
    """Beginning of the text of a value on one line; arrays have texts of several lines."""
    return " ".join(repr(value).split())[:60]
