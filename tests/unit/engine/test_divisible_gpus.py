"""The compiled clock of divisible GPUs: against the engine, against reruns, and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from repro import make, simulate
from repro.base.errors import ParamError
from repro.perf import OnTypes, SpeedUp, ThroughputTable

CURVES = SpeedUp({"flat": (1.0, 1.6, 1.9, 2.0, 2.0, 2.1, 2.1, 2.1), "bump": (1.0, 1.2, 2.4, 2.9)})
POLICIES = {
    "fifo-elastic": {},
    "srsf-elastic": {},
    "afs": {},
    "max-min": {},
    "reservation": {},
    "themis": {"lease": 7.0},
    "pcs": {
        "thresholds": (20.0, 60.0),
        "weights": (5.0, 3.0, 1.0),
        "zeta_min": 0.9,
        "delta": 0.07,
    },
}
#: Ends after all jobs: the engine asks the policy event by event, the clock is not used.
LATER = {"stop_time": 1e12}
TIMES = ["start_time", "end_time"]


@st.composite
def traces(draw, models=("flat", "bump", None)):
    count = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    model = rng.choice(np.array(models, dtype=object), count)
    most = np.where(model == "bump", 4, 8)
    return pd.DataFrame(
        {
            "job_id": range(count),
            "submit_time": np.cumsum(rng.integers(0, 12, count)).astype(float),
            # not equal: rounding decides between equals, and engine and clock round differently
            "duration": rng.uniform(1, 40, count),
            "num_gpus": rng.integers(1, most + 1),
            "model": model,
        }
    )


def both(trace, policy, **more):
    fast = simulate(trace, "1x5", policy, perf=CURVES, **more)
    return fast, simulate(trace, "1x5", policy, perf=CURVES, **LATER)


def settled(trace, lease):
    """Tell whether no tie is decided by rounding: in other units of time both runs are the same.

    Themis ranks by ratios, which are 1 for all who never lacked a GPU, but for rounding.
    """
    clock, engine = [], []
    for unit in (1.0, *np.random.default_rng(0).uniform(0.5, 2.0, 20)):
        scaled = trace.assign(**{name: trace[name] * unit for name in ("submit_time", "duration")})
        fast, slow = both(scaled, make("themis", lease=lease * unit))
        clock.append(fast.jobs[TIMES].to_numpy() / unit)
        engine.append(slow.jobs[TIMES].to_numpy() / unit)
    # each with itself: where the two differ in every unit, the test below is to see it
    return all(
        np.allclose(run, runs[0], rtol=1e-9, atol=1e-7) for runs in (clock, engine) for run in runs
    )


def test_settled_sees_a_tie_that_moves_a_start_and_no_end():
    trace = pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": [5.0, 15.0],
            "duration": [23.41387254000142, 17.03881015634168],
            "num_gpus": [8, 2],
            "model": ["flat", "flat"],
        }
    )
    assert not settled(trace, **POLICIES["themis"])


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
@given(trace=traces())
@settings(max_examples=25)
def test_the_clock_does_what_the_engine_does(name, trace):
    assume(name != "themis" or settled(trace, **POLICIES[name]))
    fast, slow = both(trace, make(name, **POLICIES[name]))
    for column in TIMES:
        assert fast.jobs[column].to_numpy() == pytest.approx(slow.jobs[column].to_numpy(), abs=1e-7)
    held = [
        (spans["gpus"] * (spans["end"] - spans["start"])).sum() for spans in map(of, (fast, slow))
    ]
    assert held[0] == pytest.approx(held[1], rel=1e-9)
    assert fast.summary()["utilisation"] == pytest.approx(slow.summary()["utilisation"], rel=1e-9)


def of(result):
    return result.intervals


@pytest.mark.parametrize("name", POLICIES)
@given(trace=traces())
@settings(max_examples=15)
def test_a_prediction_is_what_happens_if_nothing_more_arrives(name, trace):
    """The clock's own playouts against one whole run per arrival."""
    policy = make(name, **POLICIES[name])
    jobs = simulate(trace, "1x5", policy, perf=CURVES, predict=len(trace)).jobs
    runs = [simulate(trace.head(n + 1), "1x5", policy, perf=CURVES).jobs for n in range(len(trace))]
    expected = [run["jct"].iloc[-1] for run in runs]
    assert jobs["predicted_jct"].tolist() == pytest.approx(expected, rel=1e-9)


@given(trace=traces())
@settings(max_examples=15)
@pytest.mark.parametrize("name", POLICIES)
def test_without_intervals_it_is_the_same_run(name, trace):
    """Max-min follows one job of each kind then."""
    policy = make(name, **POLICIES[name])
    whole = simulate(trace, "1x5", policy, perf=CURVES)
    bare = simulate(trace, "1x5", policy, perf=CURVES, keep_intervals=False)
    assert bare.jobs["end_time"].to_numpy() == pytest.approx(whole.jobs["end_time"].to_numpy())
    assert bare.jobs["fair_jct"].to_numpy() == pytest.approx(whole.jobs["fair_jct"].to_numpy())
    assert bare.summary()["utilisation"] == pytest.approx(whole.summary()["utilisation"])
    assert len(bare.intervals) == 0


def jobs_of(*rows):
    frame = pd.DataFrame(rows, columns=["submit_time", "duration", "num_gpus"], dtype=float)
    return frame.assign(job_id=range(len(rows)), num_gpus=frame["num_gpus"].astype(int))


def test_a_job_may_ask_for_more_than_there_is():
    """Eight GPUs for 10 s are 80 GPU-seconds: 20 s on four."""
    result = simulate(jobs_of((0, 10, 8)), "1x4", "fifo-elastic")
    assert result.jobs["jct"].tolist() == [20.0]
    assert result.summary()["utilisation"] == 1.0


@pytest.mark.parametrize("count", [3, 6, 7, 9, 11])
def test_equal_jobs_hold_equally_many_gpus_to_the_last_bit(count):
    """Otherwise rounding would decide which of them completes first."""
    trace = jobs_of(*[(0, 10, 5)] * count)
    held = simulate(trace, "1x5", "max-min").intervals
    assert held[held["start"] == 0]["gpus"].unique().tolist() == [5 / count]
    # a pause begins where the GPUs of a job change, which they never do
    paused = simulate(trace, "1x5", make("max-min", resize_s=1.0)).jobs["end_time"]
    assert paused.tolist() == pytest.approx([10.0 * count + 1.0] * count)


def test_a_change_of_gpus_costs_a_pause():
    """Alone on four GPUs from 1 s on; the second arrives at 5 s with 24 of 40 GPU-seconds to go.

    Both hold two GPUs then and work from 6 s on; at 18 s the first is done, and the second, with 16
    of its 40 GPU-seconds left, works on four from 19 s on.
    """
    policy = make("max-min", resize_s=1.0)
    result = simulate(jobs_of((0, 10, 4), (5, 10, 4)), "1x4", policy)
    assert result.jobs["end_time"].tolist() == [18.0, 23.0]


def test_wrong_sizes_change_who_is_first_and_what_is_predicted():
    policy = make("fifo-elastic", size_error=0.5)
    jobs = simulate(jobs_of((0, 10, 1), (0, 10, 1)), "1x1", policy, predict=2, seed=1).jobs
    assert jobs["jct"].tolist() == [10.0, 20.0]
    first, both_ = jobs["predicted_jct"]
    assert 5 <= first <= 15 and first != 10 and first + 5 <= both_ <= first + 15
    again = simulate(jobs_of((0, 10, 1), (0, 10, 1)), "1x1", policy, predict=2, seed=1).jobs
    assert again["predicted_jct"].tolist() == jobs["predicted_jct"].tolist()


@pytest.mark.parametrize("rules", ["paper", "pcs"])
def test_starts_and_preemptions_of_max_min_need_no_intervals(rules):
    trace = jobs_of((15, 19, 1), (19, 21, 1), (25, 7, 1), (25, 7, 1))
    columns = ["start_time", "end_time", "preemptions"]
    kept, without = (
        simulate(trace, "1x1", "max-min", rules=rules, keep_intervals=keep).jobs[columns]
        for keep in (True, False)
    )
    assert without["start_time"].tolist() == [15.0, 19.0, 25.0, 25.0]
    pd.testing.assert_frame_equal(kept, without)


def test_fair_time_counts_jobs_over_events():
    """PCS, 2.6: the first sees 1 (itself), 1 (before the second comes), 2 (before it ends)."""
    result = simulate(jobs_of((0, 10, 1), (5, 10, 1)), "1x1", "max-min")
    assert result.jobs["end_time"].tolist() == [15.0, 20.0]
    mean_first = 4 / 3
    mean_second = (2 + 2 + 1) / 3
    assert result.jobs["fair_jct"].tolist() == pytest.approx([10 * mean_first, 10 * mean_second])


def test_some_are_predicted_by_seed():
    trace = jobs_of(*[(float(at), 10, 1) for at in range(20)])
    one, two, other = (
        simulate(trace, "1x4", "srsf-elastic", predict=5, seed=seed).jobs["predicted_jct"]
        for seed in (1, 1, 2)
    )
    assert one.notna().sum() == 5 and one.equals(two)
    assert not one.notna().equals(other.notna())
    # the seed is used for the choice, and for nothing where all are predicted
    ignored = [
        simulate(trace, "1x4", "srsf-elastic", predict=number, seed=1).summary()["ignored"]
        for number in (5, 20)
    ]
    assert ["seed" in one.get("options", ()) for one in ignored] == [False, True]


def test_intervals_are_told_from_the_jobs_of_the_class_that_had_ended():
    """Alone, jobs take what was predicted; the long one is overtaken by nobody in FIFO."""
    trace = jobs_of(*[(20.0 * at, 100 if at % 5 == 0 else 10, 1) for at in range(30)])
    policy = make("pcs", thresholds=(50.0,))
    jobs = simulate(trace, "1x99", policy, predict_interval=0.5).jobs
    assert jobs["job_class"].tolist() == [int(at % 5 == 0) for at in range(30)]
    # with three of its class ended there is one on either side to leave out
    told = jobs["predicted_jct_low"].notna().to_numpy()
    for job in range(30):
        same = (trace["duration"] == trace["duration"][job]) & (trace.index < job)
        ended = same & (jobs["end_time"] <= jobs["submit_time"][job])
        assert told[job] == (ended.sum() >= 3)
    assert (jobs["predicted_jct_high"] == jobs["duration"])[told].all()
    found = simulate(trace, "1x99", policy, predict_interval=0.5).summary()
    assert (found["interval_coverage"], found["interval_width"]) == (1.0, 0.0)
    assert found["without_interval"] == 30 - told.sum() > 0


def test_intervals_of_some_predictions_and_of_none():
    trace = jobs_of(*[(float(at), 10, 1) for at in range(60)])
    result = simulate(trace, "1x4", "srsf-elastic", predict=40, predict_interval=0.8)
    jobs = result.jobs
    assert jobs.loc[jobs["predicted_jct"].isna(), "predicted_jct_low"].isna().all()
    known = jobs["predicted_jct_low"].notna().sum()
    assert result.summary()["without_interval"] == 40 - known and 0 < known < 40
    assert "job_class" not in jobs
    until = simulate(trace, "1x4", "srsf-elastic", predict_interval=0.8, until=range(20, 40))
    ended = until.jobs.dropna(subset=["jct", "predicted_jct_low"])
    has_bounds = ended["jct"].between(ended["predicted_jct_low"], ended["predicted_jct_high"])
    assert until.summary()["interval_coverage"] == has_bounds.mean() == 1.0
    none = simulate(trace.head(3), "1x4", "afs", predict_interval=0.8).summary()
    assert none["without_interval"] == 3 and np.isnan(none["interval_coverage"])


def test_rules_pcs_round_to_microseconds():
    third = simulate(jobs_of((0, 10 / 3, 1)), "1x1", "fifo-elastic", rules="pcs").jobs
    assert third["end_time"].tolist() == [3.333333]


@pytest.mark.parametrize(
    ("policy", "more", "says"),
    [
        ("srtf", {"rules": "pcs"}, "rules pcs: policy 'srtf' has no compiled division rule"),
        ("afs", {"predict": -1}, "predict is -1; give a number of jobs, 0 or more"),
        ("afs", {"predict_interval": 1.0}, "predict_interval is 1; give a probability above 0"),
        ("afs", {"predict_interval": float("nan")}, "predict_interval is nan; give a probability"),
        ("afs", {"predict_interval": 0.9, "predict": 0}, "predict=0 predicts no job"),
        (
            make("afs", resize_s=1.0),
            {"interval": 5.0},
            "'afs': size_error and resize_s need the compiled .* but decisions are made at interv",
        ),
        (
            make("afs", size_error=0.2),
            {"stop_time": 5.0},
            "event loop, but the simulation may end before all jobs do; set both to 0",
        ),
        (
            make("afs", resize_s=1.0),
            {"processes": [lambda engine: iter(())]},
            "event loop, but processes are added; set both to 0",
        ),
    ],
)
def test_what_the_clock_cannot_do_is_one_line(policy, more, says):
    with pytest.raises(ParamError, match=says) as caught:
        simulate(jobs_of((0, 10, 1)), "1x1", policy, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cluster", ["1x1:k80", "1x1:v100,1x1:k80"])
def test_rules_pcs_say_that_they_know_no_gpu_types(cluster):
    table = ThroughputTable.of({"m": {"v100": 2.0, "k80": 1.0}}, "v100")
    perf = OnTypes(SpeedUp({"m": (1.0,)}), table)
    with pytest.raises(ParamError, match=r"^rules pcs: the run .* GPU types?; use rules other"):
        simulate(jobs_of((0, 10, 1)).assign(model="m"), cluster, "afs", rules="pcs", perf=perf)


@pytest.mark.parametrize("more", [{"interval": 5.0}, {"stop_time": 12.0}, {"placement": "yarn"}])
def test_what_the_clock_cannot_do_is_predicted_by_rollouts(more):
    # job 1 ends after the arrival of job 2, so that its prediction needs a run of its own
    jobs = jobs_of((0, 10, 1), (0, 10, 1), (4, 10, 1))
    predicted = simulate(jobs, "1x1", "fifo-elastic", predict=3, **more).jobs["predicted_jct"]
    assert predicted.tolist()[:2] == [10.0, 20.0]
    # only with a stop before its end
    unfinished = simulate(jobs, "1x1", "fifo-elastic", predict=3, **more).jobs["end_time"].isna()
    assert unfinished.any() == ("stop_time" in more)


@pytest.mark.parametrize("policy", ["fifo-elastic", "srtf", "gavel-las"])
def test_predictions_do_not_depend_on_the_stop_time(policy):
    jobs = jobs_of((0, 10, 1), (0, 10, 1), (4, 10, 1), (20, 10, 1))
    whole = simulate(jobs, "1x1", policy, predict=4).jobs["predicted_jct"]
    stopped = simulate(jobs, "1x1", policy, predict=4, stop_time=12.0).jobs["predicted_jct"]
    assert stopped[:3].tolist() == whole[:3].tolist()
    assert np.isnan(stopped[3])
    ended = simulate(jobs, "1x1", policy, predict=4, until=[0]).jobs["predicted_jct"]
    assert ended[0] == whole[0]
    assert np.isnan(ended[3])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"size_error": 1.0}, "'afs': size_error is 1.0; give a number from 0 to below 1"),
        ({"resize_s": -1.0}, "'afs': resize_s is -1.0; give a"),
    ],
)
def test_errors_of_sizes_and_times_of_resizing_have_bounds(settings, says):
    with pytest.raises(ParamError, match=says):
        make("afs", **settings)


def test_a_job_that_loses_some_gpus_is_not_preempted():
    some = simulate(jobs_of((0, 10, 2), (2, 10, 2)), "1x2", "max-min")
    assert some.jobs["preemptions"].tolist() == [0, 0]
    all_ = simulate(jobs_of((0, 10, 1), (2, 3, 1)), "1x1", "srsf-elastic")
    assert all_.jobs["preemptions"].tolist() == [1, 0]


def test_jobs_that_end_together_do_not_end_another():
    policy = make("max-min", resize_s=1.0)
    result = simulate(jobs_of((0, 10, 1), (0, 10, 1), (0, 15, 1)), "1x3", policy)
    assert result.jobs["end_time"].tolist() == [11.0, 11.0, 16.0]


def test_a_job_that_is_done_but_for_rounding_is_not_resized():
    """From 1.3 s on each of two jobs works off one GPU-second on half a GPU."""
    policy = make("max-min", resize_s=1.0)
    result = simulate(jobs_of((0, 0.5, 2), (0.3, 1.0, 1)), "1x1", policy)
    assert result.jobs["end_time"].tolist() == pytest.approx([3.3, 3.3])
