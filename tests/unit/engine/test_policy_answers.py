"""Policies whose methods take other arguments or return wrong values: one line names the method."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import make_dataclass

import numpy as np
import pytest

import repro
from repro.base.errors import PolicyError, TraceError
from repro.engine.select.refill import Refill
from repro.engine.select.resort import Resort
from repro.model.decision import Run, RunSet
from repro.model.elastic import Elastic
from repro.model.grouped import Grouped
from repro.model.policy import LinearKey, Order, Ordering, Policy
from repro.model.typed_shares import TypedShares
from repro.testing import check_policy, small_trace

HERE = r" \(test_policy_answers\.py:\d+\)"


def of(base, **members):
    """Policy of a class that is defined here, with these methods and attributes."""
    if base is Order:
        members.setdefault("key", lambda self, view, job: view.gpus(job))
    members["__module__"] = __name__
    return make_dataclass("Mine", [], bases=(base,), namespace=members, frozen=True)()


def refusal(make_policy, trace=None, cluster="1x4", kind=PolicyError):
    with pytest.raises(kind) as caught:
        repro.simulate(small_trace() if trace is None else trace, cluster, make_policy())
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("base", "name", "method", "expected"),
    [
        (Order, "key", lambda self, job: 1, "key(self, view, job)"),
        (Order, "slope", lambda self, view: 1, "slope(self, view, job)"),
        (Order, "performance", lambda self, view: None, "performance(self)"),
        (Order, "never_runs", lambda self, view, job: "", "never_runs(self, view)"),
        (Order, "under", lambda self: self, "under(self, rules)"),
        (Policy, "decide", lambda self: RunSet(()), "decide(self, view)"),
        (Policy, "session", lambda self: None, "session(self, view)"),
        (Elastic, "grants", lambda self, view: [], "grants(self, view, total)"),
        (TypedShares, "shares", lambda self: 1, "shares(self, kinds)"),
    ],
)
def test_a_method_with_other_parameters_is_refused_when_the_policy_is_made(
    base, name, method, expected
):
    with pytest.raises(PolicyError, match="takes other arguments than the engine") as caught:
        of(base, **{name: method})
    assert str(caught.value).endswith(f"passes; define {expected}")
    assert "(test_policy_answers.py:" in str(caught.value)


@pytest.mark.parametrize(
    "method",
    [
        lambda *arguments: 1,
        lambda self, view, job, more=0: 1,
        staticmethod(lambda view, job: 1),
        classmethod(lambda cls, view, job: 1),
    ],
)
def test_any_method_that_takes_the_arguments_is_accepted(method):
    result = repro.simulate(small_trace(), "1x4", of(Order, key=method))
    assert result.summary()["n_finished"] == 6


@pytest.mark.parametrize(
    ("base", "name", "member", "says"),
    [
        (Policy, "session", lambda self, view: RunSet(()), r"session\(view\) returned RunSet"),
        (Grouped, "session", lambda self, view: None, r"session\(view\) returned None"),
        (Policy, "session", lambda self, view: lambda: 1, r"decide\(\) .*; define decide\(view\)$"),
        (Order, "performance", lambda self: "fast", r"performance\(\) returned 'fast'"),
        (Order, "overhead", lambda self: "h100", r"overhead\(\) returned 'h100'"),
        (Order, "completions", lambda self: "x", r"completions\(\) returned 'x'"),
        (Order, "completions", lambda self: None, r"completions\(\) returned None"),
        (Order, "completions", lambda self: 1 / 0, "before the first event: ZeroDivisionError"),
        (Order, "quantum_s", lambda self: "60", r"quantum_s\(\) returned '60'"),
        (Order, "quantum_s", lambda self: 0, "give a number of seconds above 0, or infinity$"),
        (Order, "ordering", lambda self, view: None, r"ordering\(view\) returned None"),
        (Order, "never_runs", lambda self, view: "no", r"never_runs\(view\) returned 'no'"),
        (Order, "never_runs", lambda self, view: lambda: "", r"define reason\(job\)$"),
        (Order, "interval", "60", "interval is '60'.*; give a positive number of seconds, or None"),
        (Order, "baseline", "srtf", "baseline is 'srtf'.*; give a Baseline, or None"),
        (Order, "preemptive", "no", "preemptive is 'no'.*; give True or False$"),
        (Order, "preemptive", None, "preemptive is None.*; give True or False$"),
        (Order, "needs", "duration", "needs is 'duration'.*; give a set of inputs"),
        (Order, "needs", ["duration"], r"needs is \['duration'\].*; give a set of inputs"),
        (Order, "needs", property(lambda self: 1 / 0), "before the first event: ZeroDivisionError"),
        (Order, "placement", 3, "placement is 3.*; give a placement rule, or its name"),
        (Order, "time_fields", "slice_s", "time_fields is 'slice_s'.*; give a tuple of names"),
        (
            Order,
            "time_fields",
            ("slice_s",),
            r"time_fields is \('slice_s',\).*its parameters \(none",
        ),
        (Order, "requires", ("slo",), r"requires is \('slo',\).*, such as \(\('slo',\),\)$"),
        (Order, "slope", lambda self, view, job: None, "the slope of the key of job 0 is None"),
        (Order, "slope", lambda self, view, job: "1", "the slope of the key of job 0 is '1'"),
        (Order, "slope", lambda self, view, job: math.nan, "the slope of the key of job 0 is nan"),
        (Order, "slope", lambda self, view, job: 10**400, r"the slope of the key of job 0 is 1\.*"),
        (Elastic, "grants", lambda self, view, total: None, f"`grants` returned None{HERE}"),
        (Elastic, "grants", lambda self, view, total: [(0, "1")], rf"has \(0, '1'\){HERE}"),
        (Elastic, "grants", lambda self, view, total: [0], f"`grants` has 0{HERE}"),
        (TypedShares, "shares", lambda self, kinds: [["a"]], f"no array of numbers{HERE}"),
        (
            Policy,
            "decide",
            lambda self, view: RunSet([Run((job,), "1") for job in view.jobs]),
            r"names Run\(gpus='1'\); give a number of GPUs",
        ),
        (TypedShares, "key", lambda self, view: None, "check what the methods of class Mine retur"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(base, name, member, says):
    assert re.search(says, refusal(lambda: of(base, **{name: member}))), name


INFINITY = math.inf
NO_LINEAR_KEY = r"linear_key\(view\) returned .*; give a LinearKey of repro.model.policy, or None$"
NO_FACTORS = f"linear_key.*{HERE}; give finite factors, each a number or an array with a number per"
NO_LIMITS = f"linear_key.*{HERE}; give a tuple of ascending limits whose last is infinity"


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ((1.0, 0.0), NO_LINEAR_KEY),
        (1.0, NO_LINEAR_KEY),
        (LinearKey(per_second=math.nan), NO_FACTORS),
        (LinearKey(per_service=INFINITY), NO_FACTORS),
        (LinearKey(per_second="1"), NO_FACTORS),
        (LinearKey(per_second=None), NO_FACTORS),
        (LinearKey(per_second=np.ones(2)), NO_FACTORS),
        (LinearKey(per_second=np.ones((6, 1))), NO_FACTORS),
        (LinearKey(limits=5), NO_LIMITS),
        (LinearKey(limits=(5,)), NO_LIMITS),
        (LinearKey(limits=(5, 3, INFINITY)), NO_LIMITS),
        (LinearKey(limits=(math.nan, INFINITY)), NO_LIMITS),
        (LinearKey(np.ones(6), limits=(5, INFINITY)), "give limits or factors"),
        (
            LinearKey(1.0, limits=(5, INFINITY)),
            "give limits or factors, not both: factors have no ",
        ),
    ],
)
def test_a_wrong_linear_key_is_refused_in_one_line(key, says):
    """A factor that is NaN, or limits without infinity, would silently rank the jobs wrongly."""
    policy = of(Order, linear_key=lambda self, view: key)
    assert re.search(says, refusal(lambda: policy))
    with pytest.raises(PolicyError, match=says):
        repro.simulate_many([small_trace()], "1x4", {"mine": policy})


@pytest.mark.parametrize(
    "key", [None, LinearKey(1, -2.0), LinearKey(np.arange(6)), LinearKey(limits=(5, INFINITY))]
)
def test_linear_keys_of_numbers_and_arrays_are_accepted(key):
    policy = of(Order, linear_key=lambda self, view: key)
    assert repro.simulate(small_trace(), "1x4", policy).summary()["n_finished"] == 6


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (
            3,
            rf"compiled_run\(cluster\) returned 3{HERE}; give a function of job table, cluster",
        ),
        (lambda table: None, r"takes other arguments .*; define run\(table, cluster, intervals\)$"),
        (lambda table, cluster, intervals: 1 / 0, "fails at 0 s: ZeroDivisionError: division by z"),
        (
            lambda table, cluster, intervals: None,
            "leaves 6 jobs unfinished, first 0; it must",
        ),
    ],
)
def test_a_wrong_compiled_run_is_refused_in_one_line(run, says):
    members = {
        "decide": lambda self, view: RunSet(list(view.jobs)),
        "compiled_run": lambda self, cluster: run,
    }
    assert re.search(says, refusal(lambda: of(Policy, **members)))


def of_another_module(source):
    """The members of a module that is neither the policy's nor the package's."""
    members = {"__name__": "my_helpers", "Ordering": Ordering}
    exec(compile(source, "my_helpers.py", "exec"), members)
    return members


def test_errors_of_an_ordering_in_another_module_name_its_place():
    source = "class Mine(Ordering):\n    def wake(self, now):\n        return 1 / 0\n"
    ordering = of_another_module(source)["Mine"]
    message = refusal(lambda: of(Order, ordering=lambda self, view: ordering(self, view)))
    assert message == (
        "policy 'unnamed' fails at 0 s: ZeroDivisionError: division by zero "
        "(my_helpers.py:3 in wake)"
    )


@pytest.mark.parametrize("wake", [lambda self, now: now, lambda self, now: math.nan])
def test_an_ordering_that_wakes_at_the_present_instant_is_refused(wake):
    """The run stayed at this instant for ever."""
    ordering = type("Mine", (Ordering,), {"wake": wake, "__module__": __name__})
    message = refusal(lambda: of(Order, ordering=lambda self, view: ordering(self, view)))
    assert re.search(r"wake of its ordering returned .* at 0 s; return a later instant", message)


def with_ordering(selection=None, key=None, **members):
    """Policy whose ordering has these members; it selects jobs by ``selection``."""
    ordering = type("Mine", (Ordering,), {**members, "__module__": __name__})

    def make_ordering(self, view):
        made = ordering(self, view)
        made.selection = selection
        return made

    key = key or (lambda self, view, job: view.gpus(job))
    return of(Order, ordering=make_ordering, key=key)


@pytest.mark.parametrize("selection", [None, Resort, Refill])
@pytest.mark.parametrize("cluster", ["1x4", "1x4:v100,1x4:k80"])
@pytest.mark.parametrize(
    "moves", [[99], [-1], ["a"], [0.0], [True], [[0]], [None], None, 5, "ab", {"a": 1}]
)
def test_moves_of_an_ordering_are_row_numbers(selection, cluster, moves):
    """The keys of jobs with other names, such as ids, would silently not be read again."""
    policy = with_ordering(selection, moves=lambda self, now: moves)
    message = refusal(lambda: policy, cluster=cluster)
    assert re.search(rf"moves of its ordering returned .*{HERE}; give a list of row numb", message)


@pytest.mark.parametrize("selection", [None, Resort, Refill])
@pytest.mark.parametrize("moves", [range(6), np.arange(6), (5, 5)])
def test_moves_may_name_jobs_that_are_finished_or_not_submitted(selection, moves):
    policy = with_ordering(selection, moves=lambda self, now: moves)
    assert repro.simulate(small_trace(), "1x4", policy).summary()["n_finished"] == 6


def one_number(self, view, job):
    return view.gpus(job)


def two_numbers(self, view, job):
    return view.gpus(job), job


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        (one_number, lambda count: np.zeros(2 * count)),
        (one_number, lambda count: np.zeros((count, 2))),
        (one_number, lambda count: [1.0] * count),
        (one_number, lambda count: 5),
        (one_number, lambda count: np.array(["a"] * count)),
        (one_number, lambda count: np.zeros(count, complex)),
        (two_numbers, lambda count: np.zeros(2 * count)),
        (two_numbers, lambda count: np.zeros((count, 1))),
        # transposed: the jobs would be ranked by numbers of other jobs
        (two_numbers, lambda count: np.zeros((1, 2, count))),
    ],
)
def test_keys_of_an_ordering_have_a_row_per_job(key, keys):
    policy = with_ordering(Resort, key, keys=lambda self, jobs, now: keys(len(jobs)))
    message = refusal(lambda: policy)
    numbers = 1 if key is one_number else 2
    assert re.search(rf"keys of its ordering returned .*{HERE}; give an array of numbers", message)
    assert message.endswith(f"{numbers} per job")
    policy_keys = of(
        Order,
        key=key,
        keys=lambda self, view, jobs: keys(len(jobs)),
        ordering=lambda self, view: resorting(self, view),
    )
    assert re.search(rf"keys of its ordering returned .*{HERE}", refusal(lambda: policy_keys))


def resorting(policy, view):
    ordering = Ordering(policy, view)
    ordering.selection = Resort
    return ordering


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_number_per_job_may_be_a_column(shape):
    policy = with_ordering(
        Resort, keys=lambda self, jobs, now: np.ones(len(jobs), int).reshape(shape)
    )
    assert repro.simulate(small_trace(), "1x4", policy).summary()["n_finished"] == 6


def test_errors_of_a_decision_function_in_another_module_name_its_place():
    decide = of_another_module("def decide(view):\n    return 1 / 0\n")["decide"]
    message = refusal(lambda: of(Policy, session=lambda self, view: decide))
    assert message.endswith("ZeroDivisionError: division by zero (my_helpers.py:2 in decide)")


def test_an_added_process_in_the_module_of_the_policy_fails_with_its_own_error():
    def process(engine):
        yield engine.env.timeout(1)
        raise ZeroDivisionError("the process")

    with pytest.raises(ZeroDivisionError, match="the process"):
        repro.simulate(small_trace(), "1x4", of(Order), processes=[process])


def test_decisions_by_gpu_type_are_checked_alike():
    """A policy that names no types decides on each type of the cluster."""
    policy = of(Grouped, session=lambda self, view: None)
    message = refusal(lambda: policy, small_trace().head(1), "1xv100,1xk80")
    assert "session(view) returned None" in message


def test_shares_may_be_a_list():
    policy = of(TypedShares, shares=lambda self, kinds: np.full(kinds.speeds.shape, 0.1).tolist())
    assert repro.simulate(small_trace(), "1x4", policy).summary()["n_finished"] == 6


def test_an_exit_inside_a_policy_is_its_error():
    policy = of(Order, key=lambda self, view, job: sys.exit(7))
    assert "fails at 0 s, job 0: SystemExit: 7 (test_policy_answers.py:" in refusal(lambda: policy)


def test_a_comparison_goes_on_without_the_policy_that_fails():
    policies = {"mine": of(Order, quantum_s=lambda self: None), "srtf": "srtf"}
    comparison = repro.compare(small_trace(), "1x4", policies, workers=1)
    assert list(comparison.refused) == ["mine"]
    assert "quantum_s() returned None" in comparison.refused["mine"]


def test_errors_of_the_package_keep_their_traceback(monkeypatch):
    """Only a policy from outside the package is asked what it returned."""
    from repro.engine.select.ranked import OrderDriver

    def broken(self, now):
        raise ZeroDivisionError

    monkeypatch.setattr(OrderDriver, "wake", broken)
    with pytest.raises(ZeroDivisionError):
        repro.simulate(small_trace(), "1x4", "srtf", interval=1.0)


def test_a_run_without_a_required_column_is_refused():
    policy = of(Order, requires=(("user", "slo"), ("model",)))
    trace = small_trace().assign(slo=2.0)
    message = refusal(lambda: policy, trace, kind=TraceError)
    assert message == (
        "the trace: no column model, which policy 'unnamed' requires; add it, or take another "
        "policy"
    )
    message = refusal(lambda: policy, trace.assign(slo=np.nan), kind=TraceError)
    assert "no columns user or slo" in message
    assert repro.simulate(trace.assign(model="vgg16"), "1x4", policy).summary()["n_finished"] == 6
    with pytest.raises((PolicyError, TraceError), match="no columns user or slo"):
        check_policy(policy, traces=small_trace())
