"""Arguments of `simulate`: what is not accepted is refused in one line that names it."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

from repro import compare, simulate, simulate_many
from repro.base.errors import ParamError
from repro.engine.arguments import ARGUMENTS
from repro.model.policy import policies
from repro.perf import SpeedUp
from repro.testing import check_policy, small_trace


def refusal(trace=None, cluster="1x4", policy="srtf", **more):
    with pytest.raises(ParamError) as caught:
        simulate(small_trace() if trace is None else trace, cluster, policy, **more)
    message = str(caught.value)
    assert "\n" not in message
    return message


def queue_length(engine):
    return 0


@pytest.mark.parametrize(
    ("argument", "value", "says"),
    [
        ("cluster", 8, "cluster is 8; give a Cluster, or a spec such as '8x8'"),
        ("cluster", None, "cluster is None; give a Cluster"),
        ("policy", None, "policy is None; give a policy such as make('srtf')"),
        ("policy", policies["srtf"], "SRTF'>; give a policy such as make('srtf') (an instance"),
        ("placement", 3, "placement is 3; give a placement rule"),
        ("rules", None, "rules is None; give the name of a rule set"),
        ("perf", "x", "perf is 'x'; give a performance model"),
        ("perf", SpeedUp, "SpeedUp'>; give a performance model (an instance"),
        ("overhead", [5.0], "overhead is [5.0]; give none, tiresias, h100, seconds"),
        ("interval", "60", "interval is '60'; give a positive number of seconds, or None"),
        ("interval", 0, "interval is 0; give a positive number of seconds"),
        ("interval", math.inf, "interval is inf; give a positive number of seconds"),
        ("rounds", "x", "rounds is 'x'; give settings by name"),
        ("seed", -1, "seed is -1; give a whole number of 0 or more"),
        ("seed", 1.5, "seed is 1.5; give a whole number of 0 or more"),
        ("seed", True, "seed is True; give a whole number"),
        ("until", 3, "until is 3; give a list of job ids"),
        ("until", [[0]], "until names job [0], which is not in the trace"),
        ("until", [], "until names no job; give ids of the trace"),
        ("stop_time", -1, "stop_time is -1; give a time in the trace (s), 0 or more"),
        ("stop_time", math.nan, "stop_time is nan; give a time in the trace"),
        ("keep_intervals", 1, "keep_intervals is 1; give True or False"),
        ("predict", 2.5, "predict is 2.5; give a number of jobs, 0 or more"),
        ("predict_interval", -0.5, "predict_interval is -0.5; give a probability above 0"),
        ("predict_interval", 1.0, "predict_interval is 1; give a probability above 0"),
        ("predict_interval", -0.5, "predict_interval is -0.5; give a probability above 0"),
        ("types", np.array(["fastest", "x"]), "'x'], dtype='<U7'); give 'fastest' or 'wished'"),
        ("types", ["fastest"], "types is ['fastest']; give 'fastest' or 'wished'"),
        ("processes", [3], "processes is [3]; give a list of functions"),
        ("processes", [queue_length], "processes: queue_length returned 0, not a generator; a"),
    ],
)
def test_an_argument_that_is_not_accepted_is_named(argument, value, says):
    assert says in refusal(**{argument: value})


@pytest.mark.parametrize("policy", [None, 3, policies["srtf"], lambda view, job: 1])
@pytest.mark.parametrize(
    "run",
    [
        check_policy,
        lambda policy: compare(small_trace(), "1x4", [policy], workers=1),
        lambda policy: compare(small_trace(), "1x4", {"mine": policy}, workers=1),
        lambda policy: simulate_many([small_trace()], "1x4", [policy]),
    ],
    ids=["check_policy", "compare", "compare by label", "simulate_many"],
)
def test_other_functions_refuse_the_same_policies(run, policy):
    with pytest.raises(ParamError, match=r"^policy is .*; give a policy such as make\('srtf'\)"):
        run(policy)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("dropped", "x"), ("notes", 3), ("unread", {"a": 1}), ("throughputs", 3)],
)
def test_an_attribute_of_the_trace_that_cannot_be_read_is_named(attribute, value):
    trace = small_trace()
    trace.attrs[attribute] = value
    assert refusal(trace).startswith(f"trace.attrs['{attribute}'] is {value!r}; give ")


def test_every_argument_has_a_rule():
    assert list(inspect.signature(simulate).parameters) == ["trace", *ARGUMENTS]


def test_numbers_of_numpy_are_numbers():
    plain = simulate(small_trace(), "1x4", "srtf", seed=3, stop_time=20.0, interval=2.0)
    numpy = {"seed": np.int64(3), "stop_time": np.float64(20.0), "interval": np.int32(2)}
    ends = simulate(small_trace(), "1x4", "srtf", **numpy).jobs["end_time"]
    assert ends.equals(plain.jobs["end_time"])


def test_until_hints_that_ids_are_text():
    trace = small_trace().astype({"job_id": object})
    trace.loc[0, "job_id"] = "b"
    with pytest.raises(
        ParamError, match=r"until names job 2, .*; the ids of this trace are text: '2'"
    ):
        simulate(trace, "1x4", "srtf", until=[2])
