"""Queue length, blocking index and busy shares of two runs solved by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.model.records import Result
from repro.papers.muri import testbed


def run(jobs, spans, num_gpus=8):
    """Make records: a job is id, submit, end, duration; a span is job, start, end, used, rate, …"""
    frame = pd.DataFrame(jobs, columns=["job_id", "submit_time", "end_time", "duration"])
    frame["jct"] = frame["end_time"] - frame["submit_time"]
    columns = ["job_id", "start", "end", "used", "rate", "group"]
    return Result(frame, pd.DataFrame(spans, columns=columns), {"num_gpus": num_gpus})


def iterations(result, iteration_s=1.0):
    """Trace of a run whose jobs have whole iterations of this length."""
    jobs = result.jobs
    counts = jobs["duration"] / iteration_s
    return pd.DataFrame(
        {"job_id": jobs["job_id"], "iterations": counts, "iteration_time": iteration_s}
    )


@pytest.fixture
def queue():
    """A runs 10 to 20, is preempted for 20 s, and again 40 to 70 at half speed; B waits 5 s."""
    return run(
        [("a", 0.0, 70.0, 25.0), ("b", 15.0, 40.0, 20.0)],
        [
            ("a", 40.0, 70.0, 8, 0.5, "a"),
            ("a", 10.0, 20.0, 8, 1.0, "a"),
            ("b", 20.0, 40.0, 8, 1.0, "b"),
        ],
    )


def test_queue_length_counts_jobs_that_arrived_and_hold_nothing(queue):
    at = [0.0, 10.0, 14.9, 15.0, 20.0, 40.0, 69.0, 70.0]
    assert testbed.queue_length(queue, at).tolist() == [1, 0, 0, 1, 1, 0, 0, 0]


def test_blocking_index_is_waited_over_left(queue):
    # 5 s waited of 25 s to do; then both wait; then A alone with 10 of 25 s done
    expected = [5 / 25, 0.0, 1 / 20, (10 + 10) / 15, 0.0]
    at = [5.0, 12.0, 16.0, 30.0, 50.0]
    np.testing.assert_allclose(testbed.blocking_index(queue, iterations(queue), at), expected)


def test_blocking_index_is_a_mean_over_waiting_jobs():
    both = run(
        [("a", 0.0, 30.0, 10.0), ("b", 10.0, 60.0, 30.0)],
        [("a", 20.0, 30.0, 8, 1.0, "a"), ("b", 30.0, 60.0, 8, 1.0, "b")],
    )
    assert testbed.blocking_index(both, iterations(both), [15.0])[0] == pytest.approx(
        (15 / 10 + 5 / 30) / 2
    )


def test_progress_lost_to_overhead_is_spread_over_the_time_held():
    # 10 s of work took two spans of 10 s at full speed: half of each was lost
    slow = run(
        [("a", 0.0, 30.0, 10.0)], [("a", 0.0, 10.0, 8, 1, "a"), ("a", 20.0, 30.0, 8, 1, "a")]
    )
    assert testbed.blocking_index(slow, iterations(slow), [15.0])[0] == pytest.approx(5 / 5)


def test_the_work_left_is_in_whole_iterations():
    # 3 of 10 s are done; 7 s are 2 iterations of 5 s
    slow = run([("a", 0.0, 40.0, 10.0)], [("a", 0.0, 3.0, 8, 1, "a"), ("a", 20.0, 27.0, 8, 1, "a")])
    found = testbed.blocking_index(slow, iterations(slow, 5.0), [13.0])
    assert found[0] == pytest.approx(10 / 10)


@pytest.fixture
def group():
    """Two jobs of 4 GPUs in one group of period 4 s for 10 s, then one of them alone."""
    result = run(
        [("a", 0.0, 10.0, 8.0), ("b", 0.0, 20.0, 15.0)],
        [
            ("a", 0.0, 10.0, 4, 0.25, "a"),
            ("b", 0.0, 10.0, 4, 0.75, "a"),
            ("b", 10.0, 20.0, 4, 1.0, "b"),
        ],
    )
    trace = pd.DataFrame(
        {
            "job_id": ["a", "b"],
            "model": ["resnet18", "bert"],
            "batch_size": [128, 4],
            "iterations": [8.0, 5.0],
            "iteration_time": [1.0, 3.0],
            "stage_storage": [0.5, 0.9],
            "stage_gpu": [0.5, 1.5],
            "stage_network": [0.0, 0.3],
        }
    )
    return result, trace


def test_a_gpu_is_busy_in_the_stages_of_its_group(group):
    # slots of 0.3, 0.5 and 1.5 s in a period of 4 s; alone 1.8 of 3 s; 4 of 8 GPUs
    found = testbed.gpu_busy(*group, [5.0, 15.0, 20.0])
    np.testing.assert_allclose(found, [2.3 / 4 / 2, 1.8 / 3 / 2, 0.0])


def test_a_gpu_is_never_more_than_busy(group):
    result, trace = group
    crowded = trace.assign(stage_gpu=[4.0, 4.0])
    assert testbed.gpu_busy(result, crowded, [5.0])[0] == pytest.approx(4 / 8)


def test_members_left_in_a_group_are_busy_alone(group):
    result, trace = group
    ended = result.intervals.iloc[:2].assign(end=[4.0, 10.0])
    found = testbed.gpu_busy(Result(result.jobs, ended, result.meta), trace, [2.0, 6.0])
    np.testing.assert_allclose(found, [2.3 / 4 / 2, 1.8 / 4 / 2])


def test_cpus_are_busy_at_the_level_of_each_model(group):
    level = {"resnet18": 0.4, "bert": 0.2}
    found = testbed.cpu_busy(*group, level, [5.0, 15.0])
    np.testing.assert_allclose(found, [(0.25 * 0.4 + 0.75 * 0.2) / 2, 0.2 / 2])


def test_cpu_levels_follow_from_the_log_of_a_run(group):
    log = pd.DataFrame({"hour": [5 / 3600, 15 / 3600, 1.0], "cpu_percent": [12.5, 10.0, 0.0]})
    found = testbed.cpu_levels(*group, log)
    assert found == {"bert": pytest.approx(0.2), "resnet18": pytest.approx(0.4)}


def test_jobs_read_their_samples(group):
    # 128 samples of 2 MB per GPU and second alone, on 4 GPUs of one node, at 0.25 of the speed
    found = testbed.reads(*group, {"resnet18": 2048.0}, [5.0, 15.0])
    np.testing.assert_allclose(found, [0.25 * 128 * 4 * 2, 0.0])


def test_over_time_has_one_row_per_step(group):
    table = testbed.over_time(*group, 5.0, {"resnet18": 1024.0}, {"bert": 1.0})
    assert table["hours"].tolist() == [0.0, 5 / 3600, 10 / 3600, 15 / 3600]
    assert list(table) == [
        "hours",
        "queue_length",
        "blocking_index",
        "gpu_percent",
        "cpu_percent",
        "io_mb_s",
    ]
    np.testing.assert_allclose(table["gpu_percent"], [28.75, 28.75, 30.0, 30.0])
    np.testing.assert_allclose(table["cpu_percent"], [37.5, 37.5, 50.0, 50.0])
    assert table["io_mb_s"][0] == pytest.approx(0.25 * 128 * 4)


def test_logs_are_the_rows_that_the_paper_draws():
    table = testbed.logs()
    assert set(testbed.LABELS) < set(table)
    assert table.groupby("policy").size().to_dict() == {
        "srtf": 230,
        "srsf": 234,
        "muri-s": 147,
        "tiresias-l": 220,
        "themis": 218,
        "muri-l": 148,
    }


def test_smoothed_curves_are_means_around_each_instant_and_have_no_zero_index():
    hours = [0.0, 12.0, 24.0, 36.0]
    state = pd.DataFrame(
        {
            "policy": ["srtf"] * 4 + ["srsf"] * 4,
            "hours": hours * 2,
            "queue_length": range(8),
            "blocking_index": [0.0, 1.0, 2.0, 0.0] * 2,
            "gpu_percent": [0.0, 30.0, 60.0, 90.0] * 2,
            "cpu_percent": 50.0,
            "io_mb_s": 5.0,
        }
    )
    found = testbed.smoothed(state, 25)
    assert found["gpu_percent"].tolist() == [15.0, 30.0, 60.0, 75.0] * 2
    assert found["blocking_index"].isna().tolist() == [True, False, False, True] * 2
    assert found["queue_length"].tolist() == list(range(8))


def test_the_state_is_read_at_the_instants_of_the_log():
    log = pd.DataFrame({"policy": "srtf", "hour": [0.04, 0.1, 3.0], "queue_length": [5, 6, 7]})
    state = pd.DataFrame(
        {"policy": "srtf", "hours": [0.0, 0.1], **dict.fromkeys(testbed.LABELS, 2)}
    )
    rows = testbed.at_logged_instants(state, log)
    assert rows["ours"].tolist() == [2.0, 2.0, 0.0]
    assert rows["published"].tolist() == [5, 6, 7]
    assert rows["quantity"].tolist() == ["jobs waiting"] * 3


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("srtf", "^policy 'srtf' has no state within 0.05 h of hour 0.1; give a step_s of at most"),
        ("srsf", "^policy 'srsf' of the log has no rows in the state; simulate it too, or leave"),
    ],
)
def test_an_instant_without_a_state_is_no_idle_cluster(policy, message):
    log = pd.DataFrame({"policy": policy, "hour": [0.0, 0.1, 3.0], "queue_length": [5, 6, 7]})
    state = pd.DataFrame(
        {"policy": "srtf", "hours": [0.0, 0.2], **dict.fromkeys(testbed.LABELS, 2)}
    )
    with pytest.raises(ParamError, match=message):
        testbed.at_logged_instants(state, log)


def test_smoothed_curves_do_not_depend_on_which_policy_comes_first():
    hours = [0.0, 12.0, 24.0]
    busy = {"gpu_percent": [0.0, 30.0, 60.0, 7.0, 7.0, 7.0], "cpu_percent": 1.0, "io_mb_s": 1.0}
    state = pd.DataFrame(
        {"policy": ["srtf"] * 3 + ["srsf"] * 3, "hours": hours * 2, "blocking_index": 1.0, **busy}
    )
    alternating = state.iloc[[0, 3, 1, 4, 2, 5]]
    expected = testbed.smoothed(state, 25)
    pd.testing.assert_frame_equal(testbed.smoothed(alternating, 25).sort_index(), expected)


def test_of_several_states_near_a_logged_instant_the_nearest_counts():
    log = pd.DataFrame({"policy": "srtf", "hour": [0.0, 0.1], "queue_length": [5, 6]})
    hours = np.arange(5) / 20
    state = pd.DataFrame(
        {"policy": "srtf", "hours": hours, **dict.fromkeys(testbed.LABELS, 100 * hours)}
    )
    rows = testbed.at_logged_instants(state, log)
    assert rows["ours"].tolist() == [0.0, 10.0]
