"""Dominant Resource Fairness: the example of the paper, and cases by hand."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

from repro import load, make, simulate
from repro.base.errors import InputWarning, ParamError, TraceError
from repro.model.cluster import Cluster, Node


def jobs(*rows):
    """Return jobs of (user, submit time, duration, GPUs, CPU cores, MiB)."""
    columns = ["user", "submit_time", "duration", "num_gpus", "num_cpus", "memory_mib"]
    trace = pd.DataFrame(rows, columns=columns)
    trace = trace.astype(dict.fromkeys(["submit_time", "duration", "num_cpus"], float))
    trace.insert(0, "job_id", range(len(trace)))
    return trace


def cluster(gpus, cpus, memory):
    return Cluster((Node(gpus, cpus=cpus, memory_mib=memory),), "one node")


def test_the_example_of_the_paper():
    """Section 4.1: of 9 CPUs and 18 GB, A runs 3 tasks of (1, 4) and B 2 tasks of (3, 1)."""
    tasks = [("b", 0, 10, 1, 3, 1), ("a", 0, 10, 1, 1, 4)] * 6
    trace = jobs(*tasks)
    starts = simulate(trace, cluster(18, 9.0, 18.0), "drf").jobs["start_time"]
    first = trace.loc[starts == 0.0, "user"]
    assert first.value_counts().to_dict() == {"a": 3, "b": 2}


def test_the_least_dominant_share_goes_first():
    # At 10 the node empties. Shares are 0, so b's job 2 is first, as it arrived before c's job 3.
    # b then holds 6 of 8 cores, c nothing: c's job 3 starts. Job 4 of b waits for cores until 20.
    trace = jobs(
        ("a", 0, 10, 4, 8, 0),
        ("a", 1, 10, 1, 1, 0),
        ("b", 2, 10, 1, 6, 0),
        ("c", 3, 10, 1, 1, 0),
        ("b", 4, 10, 1, 1, 0),
    )
    starts = simulate(trace, cluster(4, 8.0, 1.0), "drf").jobs["start_time"]
    assert starts.tolist() == [0.0, 10.0, 10.0, 10.0, 20.0]


def test_shares_are_relative_to_the_capacity():
    # a holds 4 of 8 GPUs and 4 of 100 cores, b holds 1 GPU and 20 cores; 3 GPUs are left
    trace = jobs(
        ("a", 0, 10, 4, 4, 0), ("b", 0, 10, 1, 20, 0), ("a", 1, 10, 3, 1, 0), ("b", 1, 10, 3, 1, 0)
    )
    starts = simulate(trace, cluster(8, 100.0, 1.0), "drf").jobs["start_time"]
    assert starts.tolist() == [0.0, 0.0, 10.0, 1.0]


def test_a_running_job_is_not_stopped_and_one_that_does_not_fit_is_skipped():
    # cores until 30: 6 of 8; job 1 needs 4 and waits, job 2 of the same user fits
    trace = jobs(("a", 0, 30, 1, 6, 0), ("b", 1, 10, 1, 4, 0), ("b", 2, 10, 1, 2, 0))
    starts = simulate(trace, cluster(4, 8.0, 1.0), "drf").jobs["start_time"]
    assert starts.tolist() == [0.0, 30.0, 2.0]


def test_the_last_gpu_is_given_away():
    trace = jobs(("a", 0, 10, 1, 1, 0), ("b", 0, 10, 1, 1, 0), ("c", 0, 10, 1, 1, 0))
    starts = simulate(trace, cluster(2, 8.0, 1.0), "drf").jobs["start_time"]
    assert starts.tolist() == [0.0, 0.0, 10.0]


def test_without_users_each_job_is_a_user_and_a_line_says_so():
    trace = jobs(("a", 0, 10, 4, 1, 0), ("a", 1, 10, 4, 1, 0), ("b", 2, 10, 4, 1, 0))
    with pytest.warns(InputWarning, match="each job is a user of its own.*give the column user"):
        result = simulate(trace.drop(columns="user"), cluster(4, 8.0, 1.0), "drf")
    assert result.jobs["start_time"].tolist() == [0.0, 10.0, 20.0]


def test_parameters_take_the_place_of_the_cluster_file():
    trace = jobs(("a", 0, 10, 1, 4, 0), ("b", 0, 10, 1, 4, 0)).drop(columns="memory_mib")
    for cpus_per_gpu, second in ((1.0, 10.0), (2.0, 0.0)):
        policy = make("drf", cpus_per_gpu=cpus_per_gpu)
        for where in ("1x4", cluster(4, 100.0, 1.0)):
            assert simulate(trace, where, policy).jobs["start_time"].tolist() == [0.0, second]


@pytest.mark.parametrize(
    ("columns", "settings", "error", "says"),
    [
        (
            ["num_cpus", "memory_mib"],
            {},
            TraceError,
            "over GPUs alone, DRF is max-min .* take max-min",
        ),
        (["memory_mib"], {}, ParamError, "the CPU cores of 1x4 are unknown; give cpus_per_gpu"),
        (["num_cpus"], {}, ParamError, "the MiB of memory of 1x4 are unknown; give memory_per_gpu"),
        (
            ["memory_mib"],
            {"cpus_per_gpu": 4.0, "memory_per_gpu": 9.0},
            ParamError,
            "memory_per_gpu has no effect",
        ),
        (
            ["memory_mib"],
            {"cpus_per_gpu": 1.0},
            TraceError,
            r"row 0 \(job 0\) demands 8 CPU cores and can never run on 1x4, which has 4",
        ),
    ],
)
def test_what_is_missing_is_said_before_the_run(columns, settings, error, says):
    trace = jobs(("a", 0, 10, 1, 8, 5)).drop(columns=columns)
    with pytest.raises(error, match=says) as caught:
        simulate(trace, "1x4", make("drf", **settings))
    assert "\n" not in str(caught.value)


def test_pods_and_node_list_of_openb_have_all_it_needs(tmp_path):
    pods = tmp_path / "pods.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
        "a,12000,16384,1,1000,0,100,0\n"
        "b,6000,1024,1,460,0,100,0\n"
    )
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,16000,262144,2,P100\n")
    trace = load(pods, "alibaba-openb")
    assert trace["num_cpus"].tolist() == [12.0, 6.0]
    assert trace["memory_mib"].tolist() == [16384.0, 1024.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        result = simulate(trace, str(nodes), "drf")
    assert result.jobs["start_time"].tolist() == [0.0, 100.0]


def test_a_cluster_without_any_of_a_resource_is_refused():
    trace = jobs(("a", 0, 10, 1, 0, 0), ("b", 1, 10, 1, 0, 0))
    with pytest.raises(ParamError, match="one node has no CPU cores") as caught:
        simulate(trace, cluster(2, 0.0, 1.0), "drf")
    assert "\n" not in str(caught.value)
    assert simulate(trace, cluster(2, 0.0, 1.0), make("drf", cpus_per_gpu=1.0)).jobs.shape[0] == 2


def test_cores_of_a_node_whose_gpus_are_all_in_use_do_not_count():
    columns = {"num_gpus": 2, "num_cpus": 8.0, "user": ["u", "v"]}
    jobs = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 1.0], "duration": [100.0, 100.0], **columns}
    )
    cluster = Cluster((Node(0, used=4, cpus=8), Node(4, cpus=8)))
    assert simulate(jobs, cluster, "drf").jobs["start_time"].tolist() == [0.0, 100.0]
