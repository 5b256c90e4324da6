"""Accepted values of the arguments of `simulate`, and the error for any other value."""

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from repro.base.counts import is_count
from repro.base.errors import ParamError
from repro.engine.failures import Failures
from repro.files.checks import shown
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy
from repro.model.settings import Above, AtLeast, Bound
from repro.perf.slowdown import Slowdown
from repro.perf.throughput import ThroughputTable
from repro.placement.base import Placement


class Accepted(NamedTuple):
    """Accepted values of an argument: a test, and its description for messages."""

    accepts: Callable[[Any], bool]
    description: str


def _is_number(value: Any) -> bool:
    """Whether a value is a real number other than NaN; Boolean values are not numbers."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and value == value


def _within(bound: Bound) -> Callable[[Any], bool]:
    """Test for a number within bounds."""
    return lambda value: _is_number(value) and bound.holds(value)


def _has(*methods: str) -> Callable[[Any], bool]:
    """Test for an instance, not a class, that has these methods."""
    return lambda value: (
        not isinstance(value, type)
        and all(callable(getattr(value, name, None)) for name in methods)
    )


def _are_functions(value: Any) -> bool:
    return isinstance(value, Sequence) and all(map(callable, value))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)


def _are_counts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(is_count, value.values()))


def _optional(accepted: Accepted) -> Accepted:
    """Accept the same values, or None."""
    return Accepted(
        lambda value: value is None or accepted.accepts(value), f"{accepted.description}, or None"
    )


def _instance(*classes: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, classes)


#: Accepted values of every argument of `simulate` but the trace.
ARGUMENTS: Mapping[str, Accepted] = {
    "cluster": Accepted(_instance(Cluster, str), "a Cluster, or a spec such as '8x8'"),
    "policy": Accepted(
        _instance(Policy, str),
        "a policy such as make('srtf') (an instance, not its class), or a registered name",
    ),
    "placement": _optional(
        Accepted(_instance(Placement, str), "a placement rule (an instance), or its name")
    ),
    "rules": Accepted(_instance(str), "the name of a rule set, such as 'paper'"),
    "perf": _optional(Accepted(_has("rates"), "a performance model (an instance with `rates`)")),
    "slowdown": _optional(
        Accepted(
            lambda value: isinstance(value, str | Slowdown) or _is_number(value),
            "a factor such as 1.3, text such as 'node=1.2,rack=1.5' or 'tiresias', or a Slowdown",
        )
    ),
    "overhead": _optional(
        Accepted(
            lambda value: (
                isinstance(value, str) or _is_number(value) or _has("start_s", "pause_s")(value)
            ),
            "none, tiresias, h100, seconds that a resumed job loses, a measured folder, or an "
            "Overhead (an instance)",
        )
    ),
    "interval": _optional(Accepted(_within(Above(0, finite=True)), "a positive number of seconds")),
    "rounds": _optional(Accepted(_instance(Mapping), "settings by name, such as {'round_s': 60}")),
    "seed": Accepted(is_count, "a whole number of 0 or more"),
    "until": _optional(
        Accepted(
            lambda value: isinstance(value, Iterable) and not isinstance(value, str),
            "a list of job ids",
        )
    ),
    "stop_time": Accepted(_within(AtLeast(0)), "a time in the trace (s), 0 or more"),
    "keep_intervals": _optional(Accepted(_instance(bool), "True or False")),
    "predict": _optional(Accepted(is_count, "a number of jobs, 0 or more")),
    "predict_interval": _optional(
        Accepted(
            _within(Bound(0, 1, with_low=False, with_high=False)),
            "a probability above 0 and below 1",
        )
    ),
    "failures": _optional(
        Accepted(_instance(Failures, str), "Failures, or a text such as 'mtbf=86400,repair=600'")
    ),
    "processes": Accepted(
        _are_functions, "a list of functions that take the Engine and return a SimPy process"
    ),
    "types": Accepted(
        lambda value: isinstance(value, str) and value in ("fastest", "wished"),
        "'fastest' or 'wished'",
    ),
    "require_speeds": Accepted(_instance(bool), "True or False"),
}

#: Accepted values of the attributes of a trace, which a loader or a user has set.
ATTRIBUTES: Mapping[str, Accepted] = {
    "dropped": Accepted(_are_counts, "counts of dropped rows by reason, such as {'cancelled': 3}"),
    "notes": Accepted(_are_texts, "a list of text lines"),
    "unread": Accepted(_are_texts, "a list of column names"),
    "throughputs": Accepted(
        _instance(str, Path, pd.DataFrame, ThroughputTable), "the name of a throughput table"
    ),
}


def _quoted(value: Any) -> str:
    """Value as a message shows it, text in quotes."""
    return shown(value if _is_number(value) else repr(value))


def check(values: Mapping[str, Any]) -> None:
    """Raise ParamError for the first argument of `simulate` whose value is not accepted.

    ``values`` has all arguments of `simulate`, or those of them that another function takes.
    """
    for name, accepted in ARGUMENTS.items():
        if name in values and not accepted.accepts(values[name]):
            raise ParamError(f"{name} is {_quoted(values[name])}; give {accepted.description}")


def check_attributes(trace: pd.DataFrame) -> None:
    """Raise ParamError for the first attribute of a trace whose value is not accepted."""
    for name, accepted in ATTRIBUTES.items():
        if name in trace.attrs and not accepted.accepts(trace.attrs[name]):
            value = _quoted(trace.attrs[name])
            raise ParamError(f"trace.attrs[{name!r}] is {value}; give {accepted.description}")
