"""Random failures of nodes, and costs of preemptions by name or by methods of an overhead."""

import math
import re

import pandas as pd
import pytest
from hand_traces import trace as hand_trace

from repro import simulate
from repro.base.errors import ParamError, PolicyError
from repro.engine.failures import Failures
from repro.engine.overheads import named_overhead
from repro.model.decision import Run, RunSet
from repro.model.performance import Overhead
from repro.model.policy import Policy
from repro.perf.overhead import CheckpointOverhead, Phases
from repro.testing import small_trace


def test_failures_cost_time_and_follow_the_seed():
    trace = small_trace()
    plain = simulate(trace, "2x2", "srtf", placement="yarn")
    failing = [
        simulate(trace, "2x2", "srtf", failures="mtbf=5,repair=1", seed=s) for s in (1, 1, 2)
    ]
    ends = [result.jobs["end_time"].tolist() for result in failing]
    assert ends[0] == ends[1] != ends[2]
    assert failing[0].meta["overhead_s"] > 0
    assert failing[0].summary()["avg_jct"] > plain.summary()["avg_jct"]


@pytest.mark.parametrize("rules", ["paper", "tiresias"])
def test_gandiva_slices_time_also_after_failures(rules):
    six = {"job_id": range(6), "submit_time": 0.0, "duration": 3000.0, "num_gpus": 1}
    failures = "mtbf=500,repair=0,checkpoint=1"
    jobs = simulate(
        pd.DataFrame(six), "2x1", "gandiva", rules=rules, failures=failures, seed=1
    ).jobs
    assert (jobs["preemptions"] > 40).sum() >= 5


def test_without_failures_in_its_time_a_run_is_as_before():
    rare = simulate(small_trace(), "2x2", "srtf", failures=Failures(mtbf_s=1e15))
    plain = simulate(small_trace(), "2x2", "srtf", placement="yarn")
    assert rare.jobs["end_time"].equals(plain.jobs["end_time"])


def test_a_failure_takes_nothing_from_a_job_that_waits_for_gpus():
    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": 0.0, "duration": 256.0, "num_gpus": 8, "user": "ada"}
    )
    # each job holds some GPUs of the other's gang for a while
    runs = [
        simulate(trace, "3x4", "kubeflow", failures="mtbf=40,repair=1,checkpoint=64", seed=seed)
        for seed in range(5)
    ]
    for result in runs:
        assert result.jobs["end_time"].notna().all()
        assert result.meta["overhead_s"] > 0


class Idle(Policy):
    """Runs no job."""

    def decide(self, view):
        return RunSet([])


@pytest.mark.parametrize("failures", [None, "mtbf=10"])
def test_a_policy_that_runs_no_job_is_an_error_also_if_nodes_fail(failures):
    with pytest.raises(PolicyError, match="leaves 6 jobs waiting for ever"):
        simulate(small_trace(), "1x4", Idle(), failures=failures)


@pytest.mark.parametrize(
    ("policy", "options", "reason", "remedy"),
    [
        (
            "gavel-las",
            {"rounds": {"ideal": "fluid"}},
            "ideal execution has no nodes; leave out ideal",
            {"rounds": {}},
        ),
        (
            "gavel-las",
            {"rules": "gavel"},
            "rounds count whole steps; set whole_steps=false",
            {"rounds": {"whole_steps": False}},
        ),
        (
            "srtf",
            {"rules": "muri"},
            "jobs pay a start in every interval; give another overhead",
            {"overhead": "none"},
        ),
    ],
)
def test_failures_are_refused_where_no_job_can_be_set_back(policy, options, reason, remedy):
    jobs = small_trace().assign(iterations=100.0, iteration_time=0.1)
    with pytest.raises(ParamError, match=f"^failures: {reason}"):
        simulate(jobs, "1x4", policy, failures="mtbf=1e12", **options)
    result = simulate(jobs, "1x4", policy, failures="mtbf=1e12", **options | remedy)
    assert result.jobs["end_time"].notna().all()


@pytest.mark.parametrize("rules", ["paper", "tiresias", "gavel"])
def test_nodes_fail_under_rules_that_predict_completions(rules):
    jobs = small_trace().assign(iterations=100.0)
    result = simulate(jobs, "2x2", "srtf", failures="mtbf=20,repair=1", rules=rules)
    assert result.meta["overhead_s"] > 0


@pytest.mark.parametrize(
    ("node", "checkpoint_s", "restart_s", "message"),
    [
        (7, 10.0, 0.0, "node is 7; give a whole number from 0 to 0"),
        (-1, 10.0, 0.0, "node is -1; give a whole number from 0 to 0"),
        (0, 0.0, 0.0, "checkpoint_s is 0.0; give seconds above 0"),
        (0, float("nan"), 0.0, "checkpoint_s is nan; give seconds above 0"),
        (0, 10.0, -50.0, "restart_s is -50.0; give finite seconds of 0 or more"),
    ],
)
def test_a_failure_that_cannot_be_is_one_line(node, checkpoint_s, restart_s, message):
    def process(engine):
        yield engine.env.timeout(1)
        engine.fail(node, checkpoint_s, restart_s)

    with pytest.raises(ParamError, match=message):
        simulate(hand_trace((0, 10, 1)), "1x1", "srtf", placement="yarn", processes=[process])


def test_a_failure_during_a_restart_begins_another_after_it():
    def process(engine):
        for _ in range(2):
            yield engine.env.timeout(10 if engine.env.now == 0 else 50)
            engine.fail(0, checkpoint_s=1.0, restart_s=100.0)

    jobs = hand_trace((0, 30, 1))
    result = simulate(jobs, "1x1", "srtf", placement="yarn", processes=[process])
    # failures at 10 s and 60 s: progress from 210 s on, with 20 s left
    assert result.jobs["end_time"].tolist() == [230.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repair=60", "give mtbf=SECONDS, the mean time between failures"),
        ("mtbf=soon", "'mtbf=soon': give mtbf=SECONDS"),
        ("mtbf=1,mtbf=2", "'mtbf=2': give mtbf=SECONDS"),
        ("mtbf=-1", "mtbf_s is -1.0"),
        ("mtbf=60,checkpoint=0", "checkpoint_s is 0.0"),
    ],
)
def test_bad_failures_are_one_line(text, message):
    with pytest.raises(ParamError, match=message) as caught:
        Failures.parse(text)
    assert "\n" not in str(caught.value)


def test_divided_gpus_lie_on_no_node():
    with pytest.raises(ParamError, match="policy 'max-min' divides GPUs into shares"):
        simulate(small_trace(), "1x4", "max-min", failures="mtbf=100")


def test_seconds_are_lost_at_each_resumption():
    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 2.0], "duration": [10.0, 3.0], "num_gpus": 1}
    )
    # job 0 stops at 2 s, resumes at 5 s, progresses from 9 s on for 8 s
    assert simulate(trace, "1x1", "srtf", overhead=4).jobs["end_time"].tolist() == [17.0, 5.0]
    assert simulate(trace, "1x1", "srtf", overhead="4").jobs["end_time"].tolist() == [17.0, 5.0]
    none = simulate(trace, "1x1", "srtf", overhead="none").jobs["end_time"]
    assert none.tolist() == [13.0, 5.0]


@pytest.mark.parametrize("zero", [0, 0.0, "0"])
def test_a_cost_of_zero_is_no_cost(zero):
    trace = small_trace()
    for rules in ("paper", "pcs"):
        free = simulate(trace, "1x4", "max-min", rules=rules, overhead=zero)
        assert "avg_unfairness" in free.summary()
        pd.testing.assert_frame_equal(
            free.jobs, simulate(trace, "1x4", "max-min", rules=rules).jobs
        )


def test_measured_costs():
    tiresias = named_overhead("tiresias")
    h100 = named_overhead("h100")
    assert tiresias.pause["vgg19"] == 2.7
    assert tiresias.resume == 50.0
    # medians of the measured table: 0.36 + 1.30 + 0.52 + 0.27 s, and about 12 s to resume
    assert h100.pause["vgg16"] == pytest.approx(2.447, abs=1e-3)
    assert h100.resume == pytest.approx(12.1, abs=0.1)


def test_none_takes_the_costs_of_the_rules_away():
    trace = small_trace()
    free = simulate(
        trace, "1x4", "gavel-las", overhead="none", rounds={"preemption_overhead_s": 9.0}
    )
    assert free.meta["overhead_s"] == 0


@pytest.mark.parametrize("overhead", [1, 5, "tiresias", "h100"])
def test_rounds_of_whole_steps_refuse_an_overhead(overhead):
    trace = small_trace().assign(iterations=100.0)
    message = "^overhead: rounds of whole steps charge the round setting preemption_overhead_s"
    with pytest.raises(ParamError, match=message):
        simulate(trace, "1x4", "gavel-las", rules="gavel", overhead=overhead)


@pytest.mark.parametrize("name", ["cheap", "-1", "inf", "", pytest.param(10**400, id="huge")])
def test_unknown_overheads_are_one_line(name):
    with pytest.raises(ParamError, match="give none, tiresias, h100, or seconds"):
        simulate(small_trace(), "1x4", "srtf", overhead=name)


class Cost(Overhead):
    """Gives a value as the seconds of one method."""

    def __init__(self, method, value, **attributes):
        self.__dict__ |= attributes
        setattr(self, method, lambda *arguments: value)


def refusal_of(overhead):
    # job 0 is preempted at 2 s and resumes at 5 s
    trace = pd.DataFrame(
        {"job_id": ["a", "b"], "submit_time": [0.0, 2.0], "duration": [10.0, 3.0], "num_gpus": 1}
    )
    with pytest.raises(ParamError) as caught:
        simulate(trace, "1x1", "srtf", overhead=overhead)
    return str(caught.value)


@pytest.mark.parametrize("method", ["start_s", "save_s", "pause_s", "resume_s"])
@pytest.mark.parametrize("value", [math.nan, -5.0, math.inf, "3", None])
def test_a_cost_that_is_no_time_names_method_job_and_value(method, value):
    assert refusal_of(Cost(method, value)) == (
        f"overhead Cost: `{method}` is {value!r} for job 'a'; "
        "give a finite number of seconds, 0 or more"
    )


@pytest.mark.parametrize("method", ["start_s", "launch_s"])
def test_a_cost_of_every_interval_is_checked(method):
    overhead = Cost(method, math.nan, every_interval=True)
    assert refusal_of(overhead).startswith(f"overhead Cost: `{method}` is nan for job 'a'")


def test_a_resumption_of_nan_seconds_is_refused():
    message = refusal_of(CheckpointOverhead({}, resume=math.nan))
    assert message.startswith("overhead CheckpointOverhead: `resume_s` is nan for job 'a'")


class Guest(Policy):
    """Job 1 runs on the GPUs of job 0."""

    def decide(self, view):
        runs = [Run((0,), 2)] if view.is_unfinished(0) else []
        if view.is_unfinished(1):
            runs.append(Run((1,), 2, hosts=(0,), shared=2) if runs else Run((1,), 2))
        return RunSet(runs)


def test_a_job_that_shares_gpus_fails_with_its_host():
    jobs = hand_trace((0, 100, 2), (0, 100, 2))
    failures = "mtbf=30,repair=1,checkpoint=7"
    result = simulate(jobs, "1x2", Guest(), placement="yarn", failures=failures, seed=1)
    host_s, guest_s = result.jobs["jct"]
    assert host_s == guest_s > 100


def test_a_job_that_fails_while_it_saves_repeats_the_work_since_its_checkpoint():
    def failure(engine):
        yield engine.env.timeout(140.0)
        engine.fail(0, checkpoint_s=60.0, restart_s=0.0)

    jobs = hand_trace((0, 100, 1)).assign(model="m")
    phases = Phases(launch={}, save={"m": 50.0})
    options = {"placement": "yarn", "overhead": phases, "processes": [failure]}
    result = simulate(jobs, "1x1", "srtf", **options)
    # the checkpoint at 60 s is kept; 40 s of work and the save follow the failure
    assert result.jobs["jct"].tolist() == [230.0]


class Failing(CheckpointOverhead):
    """Costs of a user, with a method that fails."""

    def start_s(self, table, job):
        return {}[job]


def test_a_cost_that_fails_is_one_line():
    with pytest.raises(ParamError) as caught:
        simulate(small_trace(), "1x4", "srtf", overhead=Failing({}, 1.0))
    assert re.fullmatch(
        r"overhead Failing, job 0: `start_s` fails: KeyError: 0 "
        r"\(test_failures_and_overheads\.py:\d+ in start_s\)",
        str(caught.value),
    )
