"""Gaps in optional columns: refused where something reads them, harmless elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import make, simulate
from repro.base.errors import TraceError
from repro.perf.stages import STAGE_COLUMNS
from repro.perf.throughput import ThroughputTable

TABLE = ThroughputTable(
    {(model, gpus): {"v100": 2.0 * gpus} for model in ("a", "b") for gpus in (1, 2)}, "v100"
)
STAGES = dict.fromkeys(STAGE_COLUMNS, 0.1)
WEIGHED = (
    "gavel-las",
    "gavel-las-ss",
    "gavel-water-filling",
    "gavel-hierarchical",
    "las-agnostic",
)


def frame(**columns):
    whole = {
        "job_id": [0, 1, 2, 3],
        "submit_time": [0, 10, 20, 30],
        "duration": [1000, 2000, 500, 700],
        "num_gpus": [1, 2, 1, 1],
    }
    return pd.DataFrame(whole | columns)


def run(jobs, policy, cluster="1x4:v100", **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return simulate(jobs, cluster, policy, **more)


def refusal(*arguments, **more):
    with pytest.raises(TraceError) as caught:
        run(*arguments, **more)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("policy", WEIGHED)
def test_a_gap_in_the_weights_is_refused_with_row_and_job(policy):
    jobs = frame(priority_weight=[1, np.nan, 2, 1])
    said = refusal(jobs, policy)
    assert said == "the trace: row 1 (job 1) has no priority_weight; fill it or drop the column"


@pytest.mark.parametrize(
    ("policy", "column", "cells"),
    [
        ("kubernetes", "gpu_mem_mb", [900, np.nan, 900, 900]),
        ("liquid", "bandwidth_mb_s", [9, np.nan, 9, 9]),
        (make("liquid", share=1.3), "gpu_util", [50, np.nan, 50, 50]),
        ("gavel-hierarchical", "vc", ["x", None, "y", "x"]),
        ("gavel-hierarchical", "entity", ["x", None, "y", "x"]),
        ("muri-s", "stage_gpu", [0.1, np.nan, 0.1, 0.1]),
        ("muri-l", "stage_network", [0.1, np.nan, 0.1, 0.1]),
    ],
)
def test_a_gap_in_a_column_that_the_policy_reads_is_refused(policy, column, cells):
    stages = STAGES if "stage" in column else {}
    said = refusal(frame(**stages | {column: cells}), policy, "1x4")
    assert said.startswith(f"the trace: row 1 (job 1) has no {column}; fill it or ")


def test_rows_are_those_of_the_trace_whatever_the_order_of_submission():
    jobs = frame(submit_time=[30, 20, 10, 0], priority_weight=[1, 1, np.nan, np.nan])
    said = refusal(jobs, "gavel-las")
    assert said.startswith("the trace: row 2 (job 2) has no priority_weight")
    assert said.endswith("(1 more like it)")


@pytest.mark.parametrize("policy", ["gavel-las", "gavel-fifo", "isolated"])
def test_a_throughput_table_needs_a_model_of_every_job(policy):
    said = refusal(frame(), policy, perf=TABLE)
    assert said.startswith(
        "the trace has no column 'model', which a throughput table (--throughputs)"
    )
    said = refusal(frame(model=["a", "b", None, "a"]), policy, perf=TABLE)
    assert said.startswith("the trace: row 2 (job 2) has no model; a throughput table")


def test_a_table_of_the_policy_needs_a_model_too():
    said = refusal(frame(model=["a", None, "b", "a"]), make("gavel-las", throughputs=TABLE))
    assert said.startswith("the trace: row 1 (job 1) has no model; the throughput table of policy")


def test_start_overheads_need_a_model_of_every_job():
    jobs = frame(model=["vgg16", None, "vgg16", "vgg16"], iterations=9, iteration_time=1.0)
    said = refusal(jobs, "srtf", "1x4", rules="muri")
    assert said.startswith("the trace: row 1 (job 1) has no model; these rules charge every start")


def test_steps_without_their_time_are_refused():
    jobs = frame(model="a", iterations=900, iteration_time=[1, np.nan, 1, 1])
    said = refusal(jobs, "gavel-las", perf=TABLE, rules="gavel")
    assert said.startswith("the trace: row 1 (job 1) has no iteration_time; fill it or drop")


@pytest.mark.parametrize("policy", ["srtf", "gavel-makespan", "fifo-agnostic", "max-min"])
def test_gaps_in_columns_that_nobody_reads_change_nothing(policy):
    gaps = {"priority_weight": [1, np.nan, 2, 1], "vc": None, "gpu_mem_mb": [np.nan, 1, 1, 1]}
    with_gaps = run(frame(**gaps), policy)
    assert with_gaps.jobs["end_time"].tolist() == run(frame(), policy).jobs["end_time"].tolist()


def test_jobs_without_a_deadline_are_no_gaps():
    done = run(frame(slo=[np.nan, 2.0, np.nan, 9.0]), "gavel-min-cost-slo")
    assert done.jobs["end_time"].notna().all()


GAPPED = {
    "priority_weight": st.sampled_from([1.0, 2.0, 1e-9, np.nan]),
    "gpu_mem_mb": st.sampled_from([500.0, np.nan]),
    "vc": st.sampled_from(["x", "y", None]),
    "model": st.sampled_from(["a", "b", None]),
    "slo": st.sampled_from([2.0, np.nan]),
    "gpu_util": st.sampled_from([40.0, np.nan]),
    **dict.fromkeys(STAGE_COLUMNS, st.sampled_from([0.1, 0.3, np.nan])),
}


@st.composite
def gapped(draw):
    chosen = draw(st.sets(st.sampled_from(sorted(GAPPED)), max_size=7))
    cells = {name: draw(st.lists(GAPPED[name], min_size=4, max_size=4)) for name in chosen}
    return frame(**cells)


@settings(max_examples=80)
@given(
    gapped(),
    st.sampled_from([*WEIGHED, "gavel-min-cost-slo", "kubernetes", "liquid", "muri-l", "antman"]),
    st.sampled_from([None, TABLE]),
)
def test_any_frame_with_gaps_is_refused_or_ends_at_finite_times(jobs, policy, perf):
    if not policy.startswith(("gavel", "las")):
        perf = None
    try:
        result = run(jobs, policy, perf=perf)
    except TraceError as error:
        assert "\n" not in str(error)
        return
    assert np.isfinite(result.jobs[["start_time", "end_time", "jct"]].to_numpy()).all()
