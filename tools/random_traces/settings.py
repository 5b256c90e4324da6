"""Random parameters of policies, from the values that their fields accept."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from typing import Annotated, Any, Literal

import numpy as np

from repro.model.policy import policies
from repro.model.settings import Bound

#: Parameters that keep their default, with the reason.
LEFT_OUT = {
    "throughputs": "a second table of throughputs; the run has one",
    "times": "public tables of run times by plan, whatever the durations of the trace",
    "reference": "the name of a GPU type",
    "market": "the name of a table of prices",
    "type_weights": "a text that depends on classes and GPU types",
    "entity_weights": "a mapping by entity",
    "stream": "a seed",
    "noise_seed": "a seed",
    "c2": "given instead of thresholds and weights",
    "decay": "given instead of thresholds and weights",
    "tie_window_s": "completions within this time of another event happen before their time",
    "strict": "a run ends with an error at the first SLO that cannot be met",
    "share": "needs columns with estimates for jobs alone",
    "ahead_s": "needs columns with estimates for jobs alone",
}
#: Words that are not sampled.
LEFT_OUT_WORDS = {"ecos": "an optional library"}
#: Parameters without which a policy does not run, or takes long.
ALWAYS: dict[str, dict[str, Any]] = {
    "drf": {"cpus_per_gpu": 4.0, "memory_per_gpu": 4096.0},
    "liquid-batch": {"generations": 4},
}
#: Parameters in seconds that are always sampled: their defaults do not fit the times of the jobs.
TIMES = ("quantum", "slice_s", "step_s", "lease", "interval", "every_s", "heartbeat_s", "history")
#: Largest values of counts.
_MOST = {"references": 4, "generations": 6}


def draw(rng: np.random.Generator, policy: str, rules: str, unit_s: float) -> dict[str, Any]:
    """Random parameters of a policy.

    Parameters
    ----------
    rng : Generator
        Source of random numbers.
    policy, rules : str
        Registered name, and rule set.
    unit_s : float
        Typical duration of a job (s).
    """
    cls = policies[policy]
    hints = _hints(cls)
    is_default = rng.random() < 0.4
    values: dict[str, Any] = {}
    for parameter in dataclasses.fields(cls):
        name = parameter.name
        if name in LEFT_OUT:
            continue
        if name in TIMES or (not is_default and rng.random() < 0.5):
            # A start under rules muri takes up to a minute, after every decision.
            low = 0.0 if rules == "muri" else -3.0
            value = _value(rng, name, hints[name], unit_s * float(2.0 ** rng.uniform(low, 2.0)))
            if value is not None:
                values[name] = value
    return _agreeing(rng, cls.name, values) | ALWAYS.get(policy, {})


@functools.cache
def _hints(policy: type) -> dict[str, Any]:
    """Types of the parameters of a policy."""
    return typing.get_type_hints(policy, include_extras=True)


def draw_rounds(rng: np.random.Generator, rules: str, unit_s: float) -> dict[str, Any]:
    """Random settings of rounds; times are of the order of ``unit_s`` (s)."""
    round_s = unit_s * float(2.0 ** rng.uniform(-2, 1))
    values: dict[str, Any] = {"round_s": round_s}
    if rules == "gavel" or rng.random() < 0.3:
        values["min_realloc_interval_s"] = round_s * float(rng.choice([0.0, 1.0, 2.5]))
    if rng.random() < 0.5:
        return values
    for name in ("whole_queue", "shuffle_types", "drop_unallocated", "lease_renewal", "idle_reset"):
        if rng.random() < 0.25:
            values[name] = bool(rng.random() < 0.5)
    if rng.random() < 0.25:
        values["prior_rounds"] = float(rng.choice([0.0, 0.5, 1.0]))
    if rng.random() < 0.2:
        values["preemption_overhead_s"] = round_s * float(rng.choice([0.01, 0.1]))
    if rng.random() < 0.2:
        values["max_realloc_interval_s"] = round_s * float(rng.choice([1.0, 3.0]))
    if rng.random() < 0.15:
        values["ideal"] = "artifact" if rules == "gavel" else "fluid"
    return values


def _value(rng: np.random.Generator, name: str, hint: Any, unit_s: float) -> Any:
    """Random value of a parameter; None: the default."""
    if name == "history":
        return tuple((unit_s * rng.lognormal(0, 1, 6)).tolist())
    if name == "thresholds":
        steps = unit_s * rng.exponential(2.0, rng.integers(1, 4))
        return tuple(np.cumsum(steps).tolist())
    choices = [choice for choice in _members(hint) if choice is not types.NoneType]
    choice = choices[0]
    if choice is bool:
        return bool(rng.random() < 0.5)
    origin = typing.get_origin(choice)
    if origin is Literal:
        words = [word for word in typing.get_args(choice) if word not in LEFT_OUT_WORDS]
        return str(rng.choice(words))
    if origin is Annotated:
        return _number(rng, name, choice, unit_s)
    return None


def _number(rng: np.random.Generator, name: str, choice: Any, unit_s: float) -> float | int | None:
    """Random number within the bounds of a parameter."""
    base, *limits = typing.get_args(choice)
    bound = next(limit for limit in limits if isinstance(limit, Bound))
    if base is int:
        most = _MOST.get(name, 4 if bound.high == math.inf else bound.high)
        return int(rng.integers(bound.low, most + 1))
    if "seconds" in bound.unit:
        # A pause is short against the time between decisions.
        is_pause = name in ("resize_s", "tie_window_s", "ahead_s")
        return unit_s / 64 if is_pause else unit_s
    if bound.high < math.inf:
        low = max(bound.low, 0.0)
        return float(rng.uniform(low, bound.high) if rng.random() < 0.8 else low) or None
    return float(2.0 ** rng.uniform(-3, 3))


def _agreeing(rng: np.random.Generator, policy: str, values: dict[str, Any]) -> dict[str, Any]:
    """Parameters without combinations that a policy refuses."""
    if policy == "pcs":
        thresholds = values.get("thresholds", ())
        values.pop("weights", None)
        if thresholds:
            weights = 2.0 ** rng.integers(-3, 4, len(thresholds) + 1)
            values["weights"] = tuple(weights.tolist())
    if policy == "gittins-2d" and values.get("index", "remaining") != "remaining":
        values.pop("delta", None)
    return values


def _members(hint: Any) -> tuple[Any, ...]:
    """Members of a union; of another type, the type alone."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)
