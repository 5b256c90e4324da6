"""Runs in which policies know durations as the trace predicts them, with an error."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate, simulate_many
from repro.engine.select.job_heaps import JobHeaps
from repro.model.jobs import JobTable
from repro.model.policy import LinearKey, Order, policies
from repro.testing.battery import _trace, _with_deadlines
from repro.trace import synth

KNOWING = [name for name in policies if "duration" in policies[name].needs]
#: policies that know durations, but whose decisions do not depend on them
WITHOUT_SIZES = {"edf", "fifo-elastic", "max-min"}
SETTINGS = {"pcs": {"thresholds": (100.0,)}}


def jobs(*rows: tuple[float, float, int, float]) -> pd.DataFrame:
    """Jobs, as (submission, duration, GPUs, predicted duration)."""
    submit, duration, gpus, predicted = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "job_id": range(len(rows)),
            "submit_time": np.array(submit, float),
            "duration": np.array(duration, float),
            "num_gpus": gpus,
            "predicted_duration": np.array(predicted, float),
        }
    )


def contended(count: int = 40, gpus: int | None = None) -> pd.DataFrame:
    """Jobs that wait, with the columns of all policies."""
    rng = np.random.default_rng(7)
    submit = np.sort(rng.integers(0, 200, count)).astype(float)
    demands = rng.choice([1, 1, 2, 4], count) if gpus is None else np.full(count, gpus)
    return _with_deadlines(_trace(submit, rng.uniform(5, 120, count), demands))


def with_error(trace: pd.DataFrame, error: float, seed: int = 1) -> pd.DataFrame:
    factors = np.exp(error * np.random.default_rng(seed).standard_normal(len(trace)))
    return trace.assign(predicted_duration=trace["duration"] * factors)


def run(name: str, trace: pd.DataFrame, **options):
    return simulate(trace, "1x6", make(name, **SETTINGS.get(name, {})), **options)


def trace_for(name: str) -> pd.DataFrame:
    return contended(gpus=1 if name == "allox" else None)


@pytest.mark.parametrize("name", KNOWING)
def test_exact_predictions_change_nothing(name):
    trace = trace_for(name)
    plain = run(name, trace, predict=3)
    exact = run(name, trace.assign(predicted_duration=trace["duration"]), predict=3)
    pd.testing.assert_frame_equal(plain.jobs, exact.jobs, check_exact=True)
    pd.testing.assert_frame_equal(plain.intervals, exact.intervals, check_exact=True)


@pytest.mark.parametrize("name", KNOWING)
def test_wrong_predictions_change_the_run_or_are_named(name):
    trace = trace_for(name)
    plain = run(name, trace)
    wrong = run(name, with_error(trace, 1.5))
    changed = not np.allclose(plain.jobs["end_time"], wrong.jobs["end_time"])
    named = "predicted_duration" in wrong.meta["ignored"].get("columns", ())
    assert changed != named
    assert named == (name in WITHOUT_SIZES)
    assert wrong.jobs["duration"].equals(plain.jobs["duration"])


@pytest.mark.parametrize("name", ["las-2d", "tiresias-l", "yarn-cs", "gavel-las"])
def test_policies_that_know_no_durations_name_the_column(name):
    trace = contended()
    plain = run(name, trace)
    predicted = run(name, with_error(trace, 1.5))
    assert "predicted_duration" in predicted.meta["ignored"]["columns"]
    pd.testing.assert_frame_equal(plain.jobs, predicted.jobs, check_exact=True)


@pytest.mark.parametrize("name", ["srtf", "srsf", "sjf"])
def test_a_wrong_prediction_swaps_two_jobs(name):
    # on one GPU A takes 10 s and B 5 s: B goes first, unless A seems to take 4 s
    right = jobs((0, 10, 1, 10), (0, 5, 1, 5))
    wrong = jobs((0, 10, 1, 4), (0, 5, 1, 5))
    assert simulate(right, "1x1", name).jobs["end_time"].tolist() == [15.0, 5.0]
    assert simulate(wrong, "1x1", name).jobs["end_time"].tolist() == [10.0, 15.0]


def test_a_wrong_prediction_swaps_two_jobs_under_muri():
    # groups of two: B and C go first, unless A seems to take 4 s
    stages = dict.fromkeys(("stage_storage", "stage_cpu", "stage_gpu", "stage_network"), 0.1)
    right = jobs((0, 20, 1, 20), (0, 5, 1, 5), (0, 4.5, 1, 4.5))
    wrong = jobs((0, 20, 1, 4), (0, 5, 1, 5), (0, 4.5, 1, 4.5))
    starts = []
    for trace in (right, wrong):
        dressed = trace.assign(iteration_time=0.4, **stages)
        result = simulate(dressed, "1x1", make("muri-s", max_group=2)).jobs
        starts.append((result["start_time"] == 0).tolist())
    assert starts == [[False, True, True], [True, False, True]]


@pytest.mark.parametrize("name", ["srtf", "srsf", "srsf-elastic"])
def test_the_remaining_time_has_the_factor_of_the_duration(name):
    # At 6 s A has 4 of 10 s left, and seems to have 8 of 20 s left. B needs 5 s.
    right = jobs((0, 10, 1, 10), (6, 5, 1, 5))
    wrong = jobs((0, 10, 1, 20), (6, 5, 1, 5))
    assert simulate(right, "1x1", name).jobs["end_time"].tolist() == [10.0, 15.0]
    assert simulate(wrong, "1x1", name).jobs["end_time"].tolist() == [15.0, 11.0]


def philly_like(error: float = 1.0, count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return with_error(synth.make("philly-like", rng, jobs=count, load=2.0, num_gpus=16), error)


@pytest.mark.parametrize("name", ["srtf", "srsf"])
@pytest.mark.parametrize("cluster", ["2x8", "8x64"])
def test_compiled_orders_equal_the_engine(name, cluster):
    # on 2x8 there are more slopes than GPUs, on 8x64 fewer
    trace = philly_like()
    fast = simulate(trace, cluster, name)
    with patch("repro.engine.simulate.simulate_compiled", lambda setup: None):
        slow = simulate(trace, cluster, name)
    assert cluster == "8x64" or fast.summary()["preemptions"] > 5
    pd.testing.assert_frame_equal(fast.jobs, slow.jobs, check_exact=True)
    pd.testing.assert_frame_equal(fast.intervals, slow.intervals, check_exact=True)
    assert fast.meta["ignored"] == slow.meta["ignored"]


@pytest.mark.parametrize("name", ["pcs", "max-min", "themis", "afs", "srsf-elastic"])
def test_compiled_divisions_equal_the_engine(name):
    trace = with_error(contended(), 1.0).drop(columns="slo")
    policy = make(name, **SETTINGS.get(name, {}))
    fast = simulate(trace, "1x6", policy)
    with patch("repro.engine.simulate.simulate_compiled", lambda setup: None):
        slow = simulate(trace, "1x6", policy)
    assert fast.jobs["end_time"].tolist() == pytest.approx(slow.jobs["end_time"].tolist(), abs=1e-7)
    assert fast.meta["ignored"] == slow.meta["ignored"]


def test_many_runs_equal_single_runs():
    traces = {"plain": philly_like().drop(columns="predicted_duration"), "wrong": philly_like()}
    names = ["srtf", "srsf", "las-2d", "yarn-cs"]
    table = simulate_many(traces, "2x8", names, loads=(1.0, 1.5), workers=1, keep_jct=True)
    for row in table.to_dict("records"):
        frame = traces[row["trace"]]
        at_load = frame.assign(submit_time=frame["submit_time"] / row["load"])
        single = simulate(at_load, "2x8", row["policy"])
        assert row["jct"].tolist() == single.jobs["jct"].tolist()
        assert row["preemptions"] == single.summary()["preemptions"]
    ends = table.pivot_table(index=("policy", "load"), columns="trace", values="avg_jct")
    changed = (ends["plain"] != ends["wrong"]).groupby("policy").any()
    assert changed.to_dict() == {"srtf": True, "srsf": True, "las-2d": False, "yarn-cs": False}


@pytest.mark.parametrize("name", ["srtf", "srsf"])
@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_a_common_factor_changes_nothing(name, factor):
    trace = philly_like().drop(columns="predicted_duration")
    plain = simulate(trace, "2x8", name)
    scaled = simulate(trace.assign(predicted_duration=factor * trace["duration"]), "2x8", name)
    assert scaled.jobs["end_time"].tolist() == pytest.approx(plain.jobs["end_time"].tolist())


@pytest.mark.parametrize("name", ["themis", "srsf-elastic", "max-min"])
def test_predictions_that_are_the_durations_of_others_decide_as_theirs(name):
    """The first decision on jobs of predicted durations is that on jobs which last so long."""
    rows = contended().drop(columns="slo").assign(submit_time=0.0)
    wrong = with_error(rows, 1.0)
    longer = rows.assign(duration=wrong["predicted_duration"])
    at_start = []
    for trace in (wrong, longer):
        held = simulate(trace, "1x6", name).intervals
        first = held[held["start"] == 0].set_index("job_id")["gpus"].sort_index()
        at_start.append(first.to_dict())
    assert at_start[0] == pytest.approx(at_start[1])


def test_an_order_of_ones_own_reads_predictions_by_its_linear_key():
    class Own(Order):
        name = "own"
        needs = frozenset({"duration"})

        def key(self, view, job):
            return 2.0 * view.remaining(job) + view.attained(job)

        def slope(self, view, job):
            return view.gpus(job) * view.rate(job) - 2.0 * view.remaining_rate(job)

        def linear_key(self, view):
            return LinearKey(per_second=2.0, per_service=1.0)

    trace = philly_like()
    fast = simulate(trace, "2x8", Own())
    with patch("repro.engine.simulate.simulate_compiled", lambda setup: None):
        slow = simulate(trace, "2x8", Own())
    assert fast.jobs["end_time"].tolist() == slow.jobs["end_time"].tolist()


def test_heaps_of_running_jobs_are_used_again():
    trace = philly_like()
    made: list[JobHeaps] = []
    init = JobHeaps.__init__

    def spy(self, *args):
        made.append(self)
        init(self, *args)

    with (
        patch.object(JobHeaps, "__init__", spy),
        patch("repro.engine.simulate.simulate_compiled", lambda setup: None),
    ):
        simulate(trace, "2x8", "srtf")
    # every job has a slope of its own, and at most 16 run together
    assert len(trace) > 100
    assert made[0]._num_running_heaps <= 2 * 16


def test_deadlines_are_true():
    trace = contended()
    wrong = with_error(trace, 1.5)
    plain, predicted = (simulate(frame, "1x6", "edf").jobs for frame in (trace, wrong))
    assert plain["end_time"].equals(predicted["end_time"])


def test_division_rules_predict_with_predicted_durations():
    # A has the GPU for 10 s and is expected to need 20 s, so that B seems to wait for A
    trace = jobs((0, 10, 1, 20), (5, 4, 1, 4))
    result = simulate(trace, "1x1", "fifo-elastic", predict=2).jobs
    assert result["end_time"].tolist() == [10.0, 14.0]
    # at 5 s A seems to have 10 s left
    assert result["predicted_jct"].tolist() == pytest.approx([20.0, 14.0])


def test_rollouts_keep_true_durations():
    trace = jobs((0, 10, 1, 20), (5, 4, 1, 4))
    result = simulate(trace, "1x1", "yarn-cs", predict=2)
    jobs_of_run = result.jobs
    assert jobs_of_run["predicted_jct"].tolist() == jobs_of_run["jct"].tolist() == [10.0, 9.0]
    assert any("have true durations" in note for note in result.meta["notes"])
    for other in (
        simulate(trace, "1x1", "yarn-cs", predict=0),
        simulate(trace.drop(columns="predicted_duration"), "1x1", "yarn-cs", predict=2),
        simulate(trace, "1x1", "fifo-elastic", predict=2),
    ):
        assert not any("have true durations" in note for note in other.meta["notes"])


def test_size_errors_multiply_predictions():
    trace = with_error(contended(), 0.5)
    both = simulate(trace, "1x6", make("srsf-elastic", size_error=0.9)).jobs["end_time"]
    predicted = simulate(trace, "1x6", "srsf-elastic").jobs["end_time"]
    assert not np.allclose(both, predicted)


def test_whole_seconds_keep_the_factor():
    table = JobTable(jobs((5, 10.5, 1, 21), (0, 4, 2, 1)))
    factors = table.prediction_factors
    assert factors is not None
    assert factors.tolist() == [0.25, 2.0]
    rounded = simulate(jobs((0, 10.9, 1, 4), (0, 5, 1, 5)), "1x1", "srtf", rules="tiresias")
    assert rounded.jobs["end_time"].tolist() == [10.0, 15.0]


def test_a_column_without_values_is_absent():
    trace = contended()
    empty = trace.assign(predicted_duration=np.nan)
    plain, other = (simulate(frame, "1x6", "srtf") for frame in (trace, empty))
    assert plain.jobs.equals(other.jobs)
    assert other.meta["ignored"]["columns"].count("predicted_duration") == 1
