"""The door of `simulate`: every frame is checked, and what matters about the input is said."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import make, simulate
from repro.base.errors import InputWarning, TraceError
from repro.model.cluster.node import Node
from repro.model.cluster.spec import Cluster
from repro.perf.on_types import OnTypes
from repro.perf.slowdown import Slowdown, slowed
from repro.perf.speedup import SpeedUp
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import load_throughputs
from repro.testing import small_trace

POLICIES = ("srtf", "yarn-cs", "tiresias-l", "max-min", "gavel-las")
ODD = [0, 1, -3, 0.5, 2.5, 1e-9, 1e300, np.nan, np.inf, -np.inf, None, "", "7", "x", True]


def simulated_quietly(jobs, policy, cluster="1x4", **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return simulate(jobs, cluster, policy, **more)


def frame(**columns):
    whole = {
        "job_id": [0, 1, 2],
        "submit_time": [0.0, 5.0, 6.0],
        "duration": [10.0, 3.0, 4.0],
        "num_gpus": [1, 1, 2],
    }
    return pd.DataFrame(whole | columns)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"duration": [10.0, -3.0, 4.0]}, r"trace:row 1:duration: not positive \(-3\)"),
        ({"duration": [10.0, np.nan, 4.0]}, "trace:row 1:duration: missing value"),
        ({"duration": [10.0, np.inf, 4.0]}, "trace:row 1:duration: not finite"),
        ({"submit_time": [-5.0, 5.0, 6.0]}, "trace:row 0:submit_time: negative"),
        ({"job_id": [0, 0, 2]}, "trace:row 1:job_id: duplicate id"),
        ({"job_id": [True, False, True]}, "trace:row 0:job_id: neither whole number nor text"),
        ({"num_gpus": [1, -1, 2]}, "trace:row 1:num_gpus: too small"),
        ({"num_gpus": [1, 0.5, 2]}, "trace:row 1:num_gpus: not a whole number"),
        ({"submit_time": pd.to_datetime(["2024-01-01"] * 3)}, r"column 'submit_time' holds date"),
        ({"duration": pd.to_timedelta([1, 2, 3], "s")}, r"'duration'\]\.dt\.total_seconds\(\)"),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_frame_that_breaks_a_rule_is_refused_in_one_line(policy, columns, says):
    with pytest.raises(TraceError, match=says) as caught:
        simulate(frame(**columns), "1x4", policy)
    assert "\n" not in str(caught.value)


def test_what_is_no_frame_is_refused_in_one_line():
    with pytest.raises(TraceError, match=r"'job_id' is in the index.*reset_index\(\) makes it"):
        simulate(frame().set_index("job_id"), "1x4", "srtf")
    with pytest.raises(TraceError, match="the trace is a dict; give a DataFrame"):
        simulate(frame().to_dict("list"), "1x4", "srtf")
    with pytest.raises(TraceError, match="duration: missing column"):
        simulate(frame().drop(columns="duration"), "1x4", "srtf")


def test_a_path_is_loaded(tmp_path):
    path = tmp_path / "jobs.csv"
    frame().to_csv(path, index=False)
    assert simulate(path, "1x4", "srtf").jobs["jct"].tolist() == [10.0, 3.0, 4.0]
    path.write_text("job_id,num_gpu,submit_time,duration\n0,4,0,60\n")
    assert simulate(path, "1x4", "srtf").jobs["jct"].tolist() == [60.0]
    path.write_text("job_id,num_gpu,submit_time,submission_time,duration\n0,4,0,0,60\n")
    with pytest.raises(TraceError, match="needs a format"):
        simulate(path, "1x4", "srtf")
    with pytest.raises(TraceError, match="no such file"):
        simulate(str(tmp_path / "none.csv"), "1x4", "srtf")


def test_rows_come_back_in_the_order_given_whatever_their_index():
    jobs = frame().iloc[::-1]
    assert simulate(jobs, "1x4", "srtf").jobs["job_id"].tolist() == [2, 1, 0]


@st.composite
def frames(draw):
    count = draw(st.integers(1, 5))

    def column(usual):
        odd = st.sampled_from(ODD)
        cells = st.lists(usual if draw(st.booleans()) else usual | odd, min_size=count)
        return draw(cells)[:count]

    columns = {
        "job_id": column(st.integers(0, 40)) if draw(st.booleans()) else list(range(count)),
        "submit_time": column(st.floats(0, 1e10)),
        "duration": column(st.floats(1e-3, 1e4)),
        "num_gpus": column(st.integers(1, 4)),
    }
    return pd.DataFrame({name: pd.Series(cells) for name, cells in columns.items()})


@settings(max_examples=60)
@given(frames(), st.sampled_from(POLICIES))
def test_any_frame_is_refused_or_runs_to_its_end(jobs, policy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = simulate(jobs, "1x4", policy)
        except TraceError as error:
            assert "\n" not in str(error)
            return
    done = result.jobs
    assert done["end_time"].notna().all()
    assert (done["start_time"] >= done["submit_time"] - 1e-6).all()
    assert (done["jct"] >= done["duration"] * (1 - 1e-6) - 1e-6).all()


@pytest.mark.parametrize(
    ("rules", "policy"),
    [
        *(("paper", name) for name in (*POLICIES, "gandiva", "themis", "isolated")),
        *(("tiresias", name) for name in ("srtf", "yarn-cs", "tiresias-l")),
        *(("gavel", name) for name in ("gavel-las", "isolated", "fifo-agnostic", "gavel-fifo")),
        *(("pcs", name) for name in ("max-min", "themis", "afs")),
    ],
)
def test_where_the_clock_starts_does_not_matter(rules, policy):
    jobs = small_trace()
    more = {}
    if rules == "gavel":
        jobs = jobs.assign(model="m", iterations=10 * jobs["duration"])
        rows = {("m", gpus): {"v100": 10.0 * gpus} for gpus in (1, 2, 4)}
        more = {"perf": ThroughputTable(rows, "v100")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        early = simulate(jobs, "4xv100", policy, rules=rules, **more)
        late = jobs.assign(submit_time=jobs["submit_time"] + 2.0**20)
        after = simulate(late, "4xv100", policy, rules=rules, **more)
    assert after.jobs["jct"].tolist() == early.jobs["jct"].tolist()
    # added to 2**20 s, a float64 keeps nanoseconds
    starts = early.jobs["start_time"]
    ends = early.intervals["end"]
    assert (after.jobs["start_time"] - 2.0**20).tolist() == pytest.approx(starts.tolist(), abs=1e-8)
    assert (after.intervals["end"] - 2.0**20).tolist() == pytest.approx(ends.tolist(), abs=1e-8)


def test_a_clock_that_moved_by_more_than_a_day_is_said():
    jobs = small_trace()
    with pytest.warns(InputWarning, match=r"first submission, 1,600,000,000 s \(18,518\.5 days\)"):
        late = simulate(jobs.assign(submit_time=jobs["submit_time"] + 1.6e9), "1x4", "srtf")
    assert "the clock starts" in late.summary()["notes"][0]
    assert (
        simulate(jobs.assign(submit_time=jobs["submit_time"] + 9), "1x4", "srtf").summary()["notes"]
        == []
    )


def test_whole_seconds_that_leave_jobs_nothing_are_counted_or_refused():
    hours = frame(duration=[0.5, 0.25, 0.75])
    with pytest.raises(TraceError, match=r"all 3 jobs are shorter than 1 s.*in hours"):
        simulate(hours, "1x4", "tiresias-l", rules="tiresias")
    with pytest.warns(InputWarning, match="1 of 3 jobs are shorter than 1 s"):
        simulate(frame(duration=[10.0, 0.25, 4.0]), "1x4", "tiresias-l", rules="tiresias")


@pytest.mark.parametrize(
    ("policy", "baseline", "names"),
    [
        ("pcs", "fifo-elastic", "repro front"),
        ("pcs", "fifo-elastic", "--set c2"),
        ("liquid", "liquid-pack", "--set times=t4"),
        ("kubernetes", "liquid-pack", "--set times=t4"),
        ("gavel-fifo-ss", "gavel-fifo", "--throughputs"),
        ("gavel-min-cost-slo", "gavel-min-cost", "column slo"),
        ("gavel-hierarchical", "gavel-water-filling", "column entity or vc"),
    ],
)
def test_a_policy_that_is_its_baseline_says_so(policy, baseline, names):
    with pytest.warns(
        InputWarning, match=f"makes the decisions of '{baseline}' in this run"
    ) as said:
        result = simulate(small_trace(), "1x4", policy)
    assert names in str(said[0].message)
    assert (
        result.jobs["jct"].tolist() == simulate(small_trace(), "1x4", baseline).jobs["jct"].tolist()
    )
    assert any(baseline in note for note in result.summary()["notes"])


@pytest.mark.parametrize("policy", ["liquid", "kubernetes", "liquid-even"])
def test_nodes_in_several_domains_make_placements_differ(policy):
    cluster = Cluster((Node(4), Node(4, domain=1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        simulate(small_trace(), cluster, policy)


@pytest.mark.parametrize(
    ("policy", "baseline", "cluster", "options"),
    [
        ("liquid-even", "liquid-pack", "2x2", {"failures": "mtbf=300,repair=50,checkpoint=50"}),
        ("gavel-ftf", "ftf-agnostic", "1x2:v100,1x1:k80", {}),
        ("gavel-makespan", "makespan-agnostic", "1x2:v100,1x1:k80", {}),
        (make("gavel-ftf", lp_backend="highs"), "ftf-agnostic", "1x4", {}),
        (make("gavel-makespan", lp_backend="highs"), "makespan-agnostic", "1x4", {}),
    ],
)
def test_no_note_calls_policies_equal_that_differ(policy, baseline, cluster, options):
    jobs = frame(
        job_id=range(6),
        submit_time=[0.0, 0.0, 100.0, 200.0, 300.0, 300.0],
        duration=[1600.0, 1900.0, 700.0, 800.0, 1700.0, 1000.0],
        num_gpus=[1, 2, 1, 1, 1, 1],
    )
    result = simulate(jobs, cluster, policy, **options)
    ends = simulate(jobs, cluster, baseline, **options).jobs["end_time"]
    assert result.jobs["end_time"].tolist() != ends.tolist()
    assert not any(baseline in note for note in result.meta["notes"])


@pytest.mark.parametrize(
    ("policy", "placement", "slowdown"),
    [
        ("muri-s", "count", None),
        ("muri-l", "random", 1.5),
        (make("srtf", refill=True), "yarn", 1.5),
        (make("themis", form="shares"), "skew", 1.5),
    ],
)
def test_a_placement_that_decides_no_start_is_said(policy, placement, slowdown):
    jobs = small_trace().assign(stage_storage=0.0, stage_gpu=1.0, stage_network=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        default = simulate(jobs, "2x4", policy, slowdown=slowdown)
        result = simulate(jobs, "2x4", policy, placement=placement, slowdown=slowdown)
    says = f"placement '{placement}' decides no start under policy"
    assert any(says in note for note in result.meta["notes"])
    assert not any("decides no start" in note for note in default.meta["notes"])


@pytest.mark.parametrize("rounds", [{"shuffle_types": False}, {"ideal": "fluid"}])
@pytest.mark.parametrize(
    ("policy", "baseline"),
    [("gavel-ftf", "ftf-agnostic"), ("gavel-makespan", "makespan-agnostic")],
)
def test_types_in_a_fixed_order_make_no_policy_differ(policy, baseline, rounds):
    cluster = "1x4:v100,1x4:k80"
    with pytest.warns(InputWarning, match=f"makes the decisions of '{baseline}'"):
        ends = simulate(small_trace(), cluster, policy, rounds=rounds).jobs["end_time"]
    same = simulate(small_trace(), cluster, baseline, rounds=rounds).jobs["end_time"]
    assert ends.tolist() == pytest.approx(same.tolist())


@pytest.mark.parametrize(
    ("policy", "columns"),
    [
        ("gavel-min-cost-slo", {"slo": np.nan}),
        ("gavel-hierarchical", {"vc": None}),
        ("liquid", {"gpu_mem_mb": np.nan}),
    ],
)
def test_a_column_without_any_value_counts_as_absent(policy, columns):
    ends = simulated_quietly(small_trace(), policy).jobs["end_time"].tolist()
    with pytest.warns(InputWarning, match="makes the decisions of"):
        result = simulate(small_trace().assign(**columns), "1x4", policy)
    assert result.jobs["end_time"].tolist() == ends


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        ("gavel-las-ss", "or take gavel-las"),
        ("gavel-makespan-ss", "or take gavel-makespan"),
        ("antman", "column priority"),
    ],
)
def test_a_policy_without_what_sets_it_apart_says_so(policy, names):
    with pytest.warns(
        InputWarning, match="cannot do what its paper adds in this run: .*(nobody|no GPUs)"
    ) as said:
        simulate(small_trace(), "1x4", policy)
    assert names in str(said[0].message)


@pytest.mark.parametrize("policy", ["gavel-fifo-ss", "gavel-las-ss", "gavel-makespan-ss"])
def test_a_table_without_pairs_is_no_table_of_pairs(policy):
    jobs = small_trace().assign(model="m")
    rows = {("m", gpus): {"v100": 10.0 * gpus} for gpus in (1, 2, 4)}
    with pytest.warns(InputWarning, match="without speeds of pairs"):
        simulate(jobs, "4xv100", policy, perf=ThroughputTable(rows, "v100"))


@pytest.mark.parametrize(
    "policy",
    [make("pcs", c2=1.0, decay=0.5), make("pcs", thresholds=(9.0,)), make("liquid", share=1.3)],
)
def test_a_policy_that_has_something_to_go_by_says_nothing(policy):
    jobs = small_trace().assign(gpu_util=50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        simulate(jobs, "1x4", policy)


@pytest.mark.parametrize("policy", ["gandiva", "gavel-las"])
def test_a_gang_wider_than_every_gpu_type_is_refused_before_the_run(policy):
    jobs = frame(num_gpus=[1, 5, 2])
    with pytest.raises(TraceError, match=r"job 1 asks for 5 GPUs .*can never run on"):
        simulate(jobs, "4xv100,4xp100", policy)


@pytest.mark.parametrize("policy", ["gavel-las", "isolated", "gavel-ftf", "fifo-agnostic"])
def test_gpu_types_without_speeds_are_named(policy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        result = simulate(small_trace(), "4xv100,4xk80", policy)
    assert "GPU types of the cluster" in result.summary()["ignored"]["options"]


@pytest.mark.parametrize("attributes", [{"name": "tiresias-60"}, {"synthetic": True}])
def test_job_sizes_of_the_papers_own_trace_go_without_saying(attributes):
    jobs = small_trace()
    jobs.attrs |= attributes
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        simulate(jobs, "1x4", "tiresias-g")
    with pytest.warns(InputWarning, match="history of job sizes: tiresias-history-1000, not this"):
        simulate(small_trace(), "1x4", "tiresias-g")


@pytest.mark.parametrize("policy", ["gittins-2d", "tiresias-g"])
def test_a_history_may_be_an_array(policy):
    ends = [
        simulated_quietly(small_trace(), make(policy, history=history)).jobs["end_time"]
        for history in (np.array([1.0, 5.0, 9.0]), (1.0, 5.0, 9.0))
    ]
    assert ends[0].equals(ends[1])


def test_starts_without_nodes_are_those_of_the_run_itself():
    # of two jobs on three GPUs, each gets 1.5: when there are two first, and at last
    jobs = frame(submit_time=[0.0, 1.0, 2.0], duration=[10.0, 10.0, 10.0], num_gpus=2)
    model = slowed(None, Slowdown(node=1.3), Cluster.parse("1x3"))
    noted = [
        simulated_quietly(jobs, "max-min", "1x3", placement="yarn", **options).meta["notes"]
        for options in ({"slowdown": 1.3}, {"slowdown": 1.3, "predict": 3}, *[{"perf": model}] * 2)
    ]
    lines = [[line for line in notes if "have no nodes" in line] for notes in noted]
    assert lines[0][0].startswith("slowdown: 4 starts of jobs with a fraction of a GPU")
    assert lines[1:] == lines[:1] * 3


def test_new_rates_of_a_gang_without_nodes_are_no_start():
    class Renewed(SpeedUp):
        def renew(self, table, run, nodes):
            return 0.25

    jobs = frame(submit_time=[0.0, 1.0, 2.0], duration=[10.0, 10.0, 10.0], num_gpus=2)
    notes = [
        simulated_quietly(jobs, "max-min", "1x3", placement="yarn", slowdown=1.3, perf=perf).meta[
            "notes"
        ]
        for perf in (SpeedUp(), Renewed())
    ]
    assert notes[0] == notes[1]
    assert notes[0][0] == "slowdown: 1x3 has one node, so no gang spans more nodes than it needs"
    assert notes[0][1].startswith("slowdown: 4 starts")


def test_a_table_with_pairs_is_all_that_space_sharing_needs():
    together = {("m", "m", gpus): {"v100": (6.0, 6.0)} for gpus in (1, 2, 4)}
    alone = {("m", gpus): {"v100": 10.0 * gpus} for gpus in (1, 2, 4)}
    table = ThroughputTable(alone, "v100", together)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        simulate(small_trace().assign(model="m"), "4xv100", "gavel-las-ss", perf=table)


GAVEL = load_throughputs("gavel-like-throughputs")
RELATIVE = (
    "throughputs by GPU type of a relative (params/model_names.csv): vgg16 as ResNet-50 "
    "(batch size 16)"
)


@pytest.mark.parametrize("perf", [GAVEL, OnTypes(SpeedUp(), GAVEL)])
@pytest.mark.parametrize("slowdown", [None, 1.2])
def test_a_result_names_models_with_the_values_of_a_relative(perf, slowdown):
    jobs = frame(model=["vgg16", "resnet18", "resnet18"])
    result = simulated_quietly(jobs, "srtf", "2xv100,2xk80", perf=perf, slowdown=slowdown)
    assert RELATIVE in result.summary()["notes"]


def test_speeds_of_types_come_from_the_table_behind_the_durations():
    jobs = frame(model="vgg16")
    jobs.attrs = {"throughputs": "gavel-like-throughputs", "reference_gpu": "v100"}
    result = simulated_quietly(jobs, "srtf", "2xk80")
    slow = simulated_quietly(jobs, "srtf", "2xk80", perf=GAVEL)
    assert result.jobs["end_time"].tolist() == slow.jobs["end_time"].tolist()
    assert result.jobs["end_time"][0] > 10.0
