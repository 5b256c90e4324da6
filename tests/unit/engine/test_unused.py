"""Nothing is ignored without a word: a changed column changes the result, or the run names it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from hand_traces import trace

import repro
from repro.base.errors import ParamError, PolicyError, TraceError
from repro.cli import app
from repro.engine import livelock
from repro.engine.ignored import TYPES_ALIKE, ignored_lines
from repro.model.policy import Order
from repro.perf.overhead import CheckpointOverhead
from repro.perf.throughput import ThroughputTable
from repro.policies.liquid.gpu_sharing import ByUtilisation
from repro.testing import small_trace

N = 14
MODELS = np.array(["VGG16", "ResNet50", "AlexNet"])[np.arange(N) % 3]
SPEEDS = ThroughputTable(
    {
        (model, gang): {"v100": fast * gang**0.8, "k80": slow * gang**0.8}
        for model, fast, slow in (
            ("VGG16", 4.0, 0.8),
            ("ResNet50", 3.0, 1.5),
            ("AlexNet", 9.0, 3.0),
        )
        for gang in (1, 2, 4)
    },
    "v100",
)


class Done:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run_cli(capsys):
    def run(*words):
        code = app.main([str(word) for word in words])
        shown = capsys.readouterr()
        return Done(code, shown.out, shown.err)

    return run


def contended() -> pd.DataFrame:
    """Return jobs that queue for GPUs, with every optional column."""
    row = np.arange(N)
    jobs = pd.DataFrame(
        {
            "job_id": 100 - row,
            "submit_time": row * 20.0,
            "duration": 300.0 + 97.0 * ((row * 5) % N),
            "num_gpus": np.array([1, 2, 4, 1, 2])[row % 5],
            "gpu_share": np.array([0.5, 1.0])[row % 2],
            "gpu_type": np.array(["v100", "k80"])[row % 2],
            "user": np.array(["ada", "ben", "cy"])[(row // 2) % 3],
            "vc": np.array(["one", "two"])[row % 2],
            "entity": np.array(["red", "blue", "green"])[(row // 2) % 3],
            "model": MODELS,
            "batch_size": np.array([16, 32])[row % 2],
            "iteration_time": np.array([0.5, 1.0, 0.25])[row % 3],
            "num_ps": 1 + row % 2,
            "num_cpus": np.array([2.0, 9.0, 4.0])[row % 3],
            "memory_mib": np.array([900.0, 100.0])[row % 2],
            "min_gpus": np.ones(N, int),
            "max_gpus": np.full(N, 4),
            "priority": row % 2,
            "priority_weight": np.array([1.0, 5.0, 2.0])[row % 3],
            "slo": np.array([1.2, 4.0, 10.0])[row % 3],
            "stage_storage": np.array([0.05, 0.25])[row % 2],
            "stage_cpu": np.array([0.05, 0.3])[row % 2],
            "stage_gpu": np.array([0.125, 0.1])[row % 2],
            "stage_network": np.array([0.25, 0.05])[row % 2],
        }
    )
    jobs["iterations"] = jobs["duration"] / jobs["iteration_time"]
    return jobs


def perturbed(jobs: pd.DataFrame, column: str) -> list[pd.DataFrame]:
    """Return the trace with the column changed in several ways."""
    held = jobs[column]
    changes = [held[::-1].to_numpy(), np.roll(held, 1)]
    if held.dtype.kind == "f":
        larger = held * (1.0 + 0.31 * np.arange(N) % 1.7)
        changes.append(larger.clip(upper=1.0) if column == "gpu_share" else larger)
    return [jobs.assign(**{column: new}) for new in changes]


CASES = {
    "srtf": {},
    "yarn-cs": {},
    "sjf": {},
    "edf": {},
    "drf": {"cpus_per_gpu": 6.5, "memory_per_gpu": 700.0},
    "las-2d": {},
    "tiresias-l": {},
    "tiresias-l, skew": {"placement": "skew", "cluster": "3x2"},
    "tiresias-g": {"history": (100.0, 900.0)},
    "srtf, muri": {"rules": "muri"},
    "muri-s": {},
    "muri-l": {"rules": "muri"},
    "antman": {"rules": "muri"},
    "themis": {},
    "max-min": {},
    "srsf-elastic": {},
    "gavel-las": {"types": True},
    "gavel-las, gavel": {"types": True, "rules": "gavel"},
    "gavel-ftf": {"types": True},
    "gavel-hierarchical": {"types": True},
    "gavel-min-cost-slo": {"types": True},
    "gavel-water-filling": {"types": True},
    "gandiva-ss": {"types": True, "rules": "gavel"},
    "fifo-agnostic": {"types": True},
    "srtf, types without speeds": {"cluster": "2x2:v100,3x2:k80"},
    "gavel-las, no types": {},
}


def run(case: str, jobs: pd.DataFrame):
    given = dict(CASES[case])
    name = case.split(",")[0]
    own = ("history", "cpus_per_gpu", "memory_per_gpu")
    settings = {key: given.pop(key) for key in own if key in given}
    cluster = given.pop("cluster", "1x4")
    if given.pop("types", False):
        given["perf"] = SPEEDS
        cluster = "2x2:v100,3x2:k80"
    rules = given.get("rules", "paper")
    if rules == "muri":
        jobs = jobs.replace(
            {"model": {"VGG16": "vgg16", "ResNet50": "resnet18", "AlexNet": "bert"}}
        )
    result = repro.simulate(jobs, cluster, repro.make(name, rules=rules, **settings), **given)
    return result.jobs.drop(columns="model"), result.intervals, result.meta["ignored"]


@pytest.mark.parametrize("case", CASES)
def test_a_changed_column_changes_the_result_or_is_named(case):
    jobs = contended()
    first, spans, ignored = run(case, jobs)
    named = ignored.get("columns", [])
    for column in jobs.columns.drop("job_id"):
        changed = False
        for other in perturbed(jobs, column):
            again, held, _ = run(case, other)
            changed = changed or not (first.equals(again) and spans.equals(held))
        assert changed != (column in named), f"{column}: changed {changed}, named {named}"


def test_half_gpus_and_gpu_types_of_pods_are_named(tmp_path, run_cli):
    pods = tmp_path / "pods.csv"
    head = "name,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"
    pods.write_text(head + "a,1,500,V100M16,0,100,0\nb,1,500,,0,100,0\nc,1,500,,0,,0\n")
    words = ["simulate", "--trace", pods, "--format", "alibaba-openb", "--cluster", "1x1:t4"]
    done = run_cli(*words, "--policy", "srtf", "--json")
    assert done.code == 0
    assert done.json["makespan"] == 200.0
    assert done.json["ignored"]["columns"] == ["gpu_share", "gpu_type"]
    assert done.json["ignored"]["rows"] == {"still running": 1}
    assert done.json["ignored"]["options"] == ["GPU types of the cluster"]
    assert "trace columns gpu_share, gpu_type (every job holds whole GPUs" in done.err
    assert "left out: rows of the trace (still running: 1)" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--throughputs nofile", "--throughputs nofile: needs a cluster with GPU types"),
        ("--throughputs=", "--throughputs: is empty"),
        ("--reference-gpu x", "--reference-gpu x: needs a cluster with GPU types"),
        ("--placement=", "--placement: is empty"),
        ("--policy gavel-las --set lease_renewal=x", "lease_renewal is 'x'; give true or false"),
        ("--policy gavel-las --set lease_renewal=2", "lease_renewal is 2; give true or false"),
        ("--policy tiresias-l --set thresholds=true", "thresholds is True"),
        ("--policy tiresias-g --set history=true", "history is True"),
        ("--policy gavel-las --interval 77", "returns shares, whose rounds"),
        ("--interval inf", "interval is inf; give a positive number"),
        ("--policy tiresias-l --set thresholds=,", "thresholds=,: has a comma but no value"),
        ("--policy tiresias-l --set thresholds=1e999", "1e999 is too large"),
        ("--policy tiresias-l --set thresholds=3," + "9" * 400, "9… is too large"),
        (
            "--policy tiresias-g --set history=philly",
            "'philly' is a file of format philly, not a history",
        ),
        ("--interval 1e-300", "more than 10,000,000 decisions"),
        ("--policy las-2d --set quantum=1e-9", "quantum is 1e-09 s"),
        ("--policy gavel-las --set round_s=1e-6", "round_s is 1e-06 s"),
    ],
)
def test_options_without_use_or_sense_are_refused(words, message, tmp_path, run_cli):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,submit_time,duration,num_gpus\n1,0,1000,1\n2,5,500,2\n3,9,70,1\n")
    policy = [] if "--policy" in words else ["--policy", "srtf"]
    done = run_cli(
        "simulate",
        "--trace",
        jobs,
        "--format",
        "repro",
        "--cluster",
        "2x4",
        *policy,
        *words.split(),
    )
    assert done.code == 2
    assert message in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--policy srtf --seed 3", ["seed"]),
        ("--policy fifo-agnostic --seed 3", []),
        ("--policy srtf --placement random --seed 3", []),
        ("--policy antman --set round_s=720", ["round_s"]),
        ("--policy gavel-las --set round_s=720", []),
        ("--policy gavel-las --set round_s=720 --set ideal=fluid", ["round_s"]),
        ("--policy gavel-las --set shuffle_types=false", ["shuffle_types"]),
    ],
)
def test_options_without_effect_are_named(words, named, tmp_path, run_cli):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,submit_time,duration,num_gpus\n1,0,1000,1\n2,5,500,2\n3,9,70,1\n")
    done = run_cli(
        "simulate",
        "--trace",
        jobs,
        "--format",
        "repro",
        "--cluster",
        "2x4",
        "--json",
        *words.split(),
    )
    assert done.code == 0
    assert done.json["ignored"].get("options", []) == named


def _sleep(engine):
    yield engine.env.timeout(1.0)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, ["seed"]),
        ({"placement": "yarn"}, ["seed"]),
        # the seed decides which nodes fail, and when
        ({"failures": "mtbf=10,repair=1"}, []),
        # an added process may read the seed
        ({"processes": [_sleep]}, []),
    ],
)
def test_a_seed_is_named_only_if_nothing_may_have_used_it(options, named):
    result = repro.simulate(small_trace(), "2x4", "srtf", seed=3, **options)
    assert result.meta["ignored"].get("options", []) == named


@pytest.mark.parametrize(
    ("policy", "options", "used"),
    [
        ("srtf", {}, True),
        ("srtf", {"overhead": 5}, False),
        ("srtf", {"overhead": "none"}, False),
        # rules gavel count the overhead in rounds, and srtf has none
        ("srtf", {"rules": "gavel"}, False),
        ("max-min", {}, True),
        ("las-agnostic", {}, True),
        ("las-agnostic", {"overhead": 5}, False),
        ("las-agnostic", {"overhead": "none"}, False),
        ("las-agnostic", {"rules": "gavel"}, True),
        ("las-agnostic", {"rules": "gavel", "overhead": "none"}, True),
    ],
)
def test_an_overhead_of_rounds_is_named_only_where_it_costs_nothing(policy, options, used):
    jobs = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": [0.0, 1.0, 2.0],
            "duration": [900.0, 700.0, 500.0],
            "num_gpus": 1,
            "iterations": [900.0, 700.0, 500.0],
        }
    )
    with_overhead = {"preemption_overhead_s": 60.0}
    free = repro.simulate(jobs, "1x1", policy, **options)
    costly = repro.simulate(jobs, "1x1", policy, rounds=with_overhead, **options)
    assert free.jobs["end_time"].equals(costly.jobs["end_time"]) != used
    named = costly.meta["ignored"].get("options", [])
    assert ("preemption_overhead_s" in named) != used


@dataclasses.dataclass(frozen=True)
class CostlyStarts(Order):
    """FIFO with a cost of starts of its own."""

    def key(self, view, job):
        return view.submit(job)

    def overhead(self):
        return CheckpointOverhead({}, resume=60.0)


@pytest.mark.parametrize(("seconds", "used"), [(0.0, False), (9.0, True)])
def test_an_overhead_of_rounds_of_0_does_not_replace_that_of_the_policy(seconds, used):
    rounds = {"preemption_overhead_s": seconds}
    result = repro.simulate(small_trace(), "1x4", CostlyStarts(), rounds=rounds)
    assert ("preemption_overhead_s" not in result.meta["ignored"].get("options", [])) == used


def test_wishes_without_effect_are_named_where_the_policy_names_the_types():
    jobs = contended().assign(gpu_type="k80")
    options = {"perf": SPEEDS, "types": "wished"}
    result = repro.simulate(jobs, "2x2:v100,3x2:k80", "las-agnostic", **options)
    assert set(result.intervals["gpu_type"]) == {"v100", "k80"}
    assert "gpu_type" in result.meta["ignored"]["columns"]
    assert "types" in result.meta["ignored"]["options"]


@pytest.mark.parametrize(
    ("types", "mean_jct_s", "unused"), [("wished", 200, False), ("fastest", 400 / 3, True)]
)
def test_types_that_jobs_wish_for_are_used_without_speeds(types, mean_jct_s, unused):
    # three jobs of 100 s on 2 V100s each: one after another on the V100s, or two at once
    jobs = trace((0, 100, 2), (0, 100, 2), (0, 100, 2)).assign(gpu_type="v100")
    result = repro.simulate(jobs, "1x2:v100,1x2:k80", "yarn-cs", types=types)
    assert result.jobs["jct"].mean() == pytest.approx(mean_jct_s)
    assert (TYPES_ALIKE in result.meta["ignored"].get("options", [])) == unused


@pytest.mark.parametrize(
    ("options", "has_types", "reason"),
    [
        (
            [],
            True,
            "a job runs on GPUs of any type; repro simulate --types wished runs jobs on "
            "the type in column gpu_type, unless the policy chooses it",
        ),
        (["types"], True, "a job runs on GPUs of any type"),
        (
            [],
            False,
            "the cluster names no GPU types; repro simulate --types wished runs jobs on "
            "the type in column gpu_type on a cluster such as 1x8:v100",
        ),
        (["types"], False, "the cluster names no GPU types"),
    ],
)
def test_wishes_for_types_are_proposed_where_they_have_an_effect(options, has_types, reason):
    ignored = {"columns": ["gpu_type"], "options": options}
    line = ignored_lines(ignored, has_types=has_types)[0]
    assert line == f"not used by this run: trace columns gpu_type ({reason})"


def test_a_column_that_the_format_does_not_read_has_no_reason_of_a_run():
    lines = ignored_lines({"file_columns": ["gpu_type"]})
    assert lines == ["not read by the format: columns of the file gpu_type"]


def test_an_interval_beside_shares_is_refused_in_python_too():
    with pytest.raises(ParamError, match="set round_s=77"):
        repro.simulate(contended(), "1x4", "gavel-las", interval=77.0)


def test_an_error_inside_a_policy_names_policy_time_and_job(run_cli, monkeypatch):
    from repro.model.policy import Order

    class Zed(Order):
        name = "zed"

        def key(self, view, job):
            return view.submitt(job) if view.now > 30 else 1 / (job - 0.0 or 1.0)

    with pytest.raises(PolicyError, match=r"fails at 40 s, job 98: AttributeError.*\)$") as failed:
        repro.simulate(contended(), "1x4", Zed())

    def fail(*_, **__):
        raise failed.value

    monkeypatch.setattr(repro, "simulate", fail)
    words = ("--trace", "testbed", "--cluster", "1x4", "--policy", "tiresias-l")
    done = run_cli("simulate", *words)
    assert done.code == 2 and "policy 'zed' fails" in done.err
    assert done.err.strip().endswith("--debug shows the traceback")


def test_an_error_of_the_engine_itself_has_no_traceback_to_show(run_cli, monkeypatch):
    """SimPy chains it to a copy of itself, which says no more."""
    monkeypatch.setattr(livelock, "MAX_LOST_FAILURES", 20)
    words = ("--trace", "testbed", "--cluster", "15x4", "--policy", "srtf")
    done = run_cli("simulate", *words, "--failures", "mtbf=1e-6,repair=0")
    assert done.code == 2 and "livelock at" in done.err
    assert "--debug" not in done.err


def test_ids_that_a_spreadsheet_would_run_are_quoted_and_a_missing_folder_is_said_first(
    tmp_path, run_cli
):
    jobs = tmp_path / "jobs.csv"
    out = tmp_path / "out.csv"
    jobs.write_text("job_id,submit_time,duration,num_gpus\n=1+1,0,10,1\nb,5,5,2\n")
    words = ["simulate", "--trace", jobs, "--format", "repro", "--cluster", "2x4"]
    assert run_cli(*words, "--policy", "srtf", "--out", out).code == 0
    assert out.read_text().splitlines()[1] == "'=1+1,0,0,10,10,1,0,0,0"
    done = run_cli(*words, "--policy", "srtf", "--out", tmp_path / "no/out.csv")
    assert done.code == 2 and "no folder" in done.err and not done.out
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("far", [1e15, np.nan, np.inf])
def test_times_a_float_does_not_carry_are_refused_in_python_too(far):
    jobs = contended()
    with pytest.raises(TraceError, match="trace:row 0:submit_time: "):
        repro.simulate(jobs.assign(submit_time=jobs["submit_time"] + far), "1x4", "srtf")


def test_names_of_columns_cannot_steer_a_terminal(tmp_path, run_cli):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,submit_time,duration,num_gpus,a\x1b]0;b\n1,0,10,1,x\n")
    words = ["--format", "repro", "--cluster", "2x4", "--policy", "srtf"]
    done = run_cli("simulate", "--trace", jobs, *words)
    assert "\x1b" not in done.err and r"a\x1b]0;b" in done.err


# a placement without effect ----------------------------------------------------------------------

NO_EFFECT = "changes no speed and no start in this run"


def notes_under(policy, *, cluster="2x4", **options):
    return repro.simulate(small_trace(), cluster, policy, **options).summary()["notes"]


@pytest.mark.parametrize("placement", ["yarn", "skew", "random", "ilp", "liquid"])
@pytest.mark.parametrize("policy", ["srtf", "las-2d", "gavel-las", "max-min"])
def test_a_placement_that_changes_no_speed_is_told(policy, placement):
    notes = notes_under(policy, placement=placement)
    assert [NO_EFFECT in note for note in notes].count(True) == 1
    assert f"placement {placement!r}" in next(note for note in notes if NO_EFFECT in note)
    plain = repro.simulate(small_trace(), "2x4", policy).jobs
    placed = repro.simulate(small_trace(), "2x4", policy, placement=placement).jobs
    # the compiled loop of max-min rounds differently, and adds columns
    pd.testing.assert_frame_equal(plain[placed.columns], placed, rtol=1e-12)


def test_shared_gpus_are_as_fast_on_any_node():
    notes = notes_under("srtf", placement="yarn", perf=ByUtilisation())
    assert any(NO_EFFECT in note for note in notes)


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("srtf", {}),
        ("srtf", {"placement": "count"}),
        ("srtf", {"placement": "yarn", "slowdown": 1.3}),
        # fragments can keep a gang waiting
        ("yarn-cs", {"placement": "yarn"}),
        ("srtf", {"placement": "yarn", "processes": [_sleep]}),
    ],
)
def test_a_placement_with_an_effect_or_not_asked_for_is_not(policy, options):
    assert not any(NO_EFFECT in note for note in notes_under(policy, **options))


def test_a_policy_that_reads_nodes_is_not_told():
    @dataclasses.dataclass(frozen=True)
    class Emptiest(Order):
        def key(self, view, job):
            return view.idle_gpus[0], job

    assert not any(NO_EFFECT in note for note in notes_under(Emptiest(), placement="yarn"))
