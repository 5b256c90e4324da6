"""Themis by shares of time: shares, ranking, and the choice between shares and leases."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from repro import make, simulate
from repro.base.errors import ParamError, TraceError
from repro.model.rules import rules_named
from repro.perf import SpeedUp, ThroughputTable
from repro.policies.pcs._themis_shares import FairShares, fair_shares
from repro.policies.pcs.themis import Themis
from repro.testing import check_policy, small_trace
from repro.trace.load import load


def fairness(share, elapsed, remaining, isolated):
    return (elapsed + remaining / share) / isolated


def is_feasible(rho, elapsed, remaining, isolated, gpus, total):
    """Whether shares exist at which no job is above rho, by linear programming."""
    slack = rho * isolated - elapsed
    if (slack <= 0).any():
        return False
    smallest_share = remaining / slack
    if (smallest_share > 1).any():
        return False
    bounds = [(share, 1) for share in smallest_share]
    return linprog(np.zeros(len(gpus)), A_ub=[gpus], b_ub=[total], bounds=bounds).status == 0


columns = st.lists(
    st.tuples(
        st.floats(0, 1e4), st.floats(1, 1e5), st.floats(1, 1e5), st.sampled_from([1, 2, 4, 8, 32])
    ),
    min_size=1,
    max_size=12,
)


@given(jobs=columns, total=st.sampled_from([32.0, 64.0]))
@settings(max_examples=60)
def test_no_smaller_rho_is_feasible(jobs, total):
    elapsed, remaining, isolated, gpus = np.array(jobs, float).T
    share = fair_shares(elapsed, remaining, isolated, gpus, total)
    assert (share > 0).all()
    assert (share <= 1).all()
    assert share @ gpus <= total * (1 + 1e-9)
    # all jobs have the same rho: no job has more than it needs
    rho = fairness(share, elapsed, remaining, isolated)
    assert np.allclose(rho, rho.max(), rtol=1e-9)
    assert is_feasible(rho.max() * (1 + 1e-6), elapsed, remaining, isolated, gpus, total)
    assert not is_feasible(rho.max() * (1 - 1e-6), elapsed, remaining, isolated, gpus, total)


def test_shares_by_hand():
    ones = np.ones(3)
    zeros = np.zeros(3)
    # too few GPUs: equal jobs have equal shares
    assert fair_shares(zeros, ones, ones, 2 * ones, 3.0) == pytest.approx([0.5] * 3)
    # enough GPUs: the job of largest rho runs all the time, the others reach the same rho
    share = fair_shares(zeros, ones, np.array([1.0, 2.0, 4.0]), ones, 64.0)
    assert share == pytest.approx([1.0, 0.5, 0.25])


def test_a_job_about_to_end_after_a_long_wait():
    """The remaining time is below the rounding error of the time since submission."""
    share = fair_shares(np.array([1e12]), np.array([1e-6]), np.array([10.0]), np.ones(1), 4.0)
    assert share.tolist() == [1.0]


def test_a_denominator_in_iterations_favours_jobs_of_long_iterations():
    """With a denominator in seconds, jobs of equal duration run in order of the trace."""
    jobs = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": 0.0,
            "duration": 60.0,
            "num_gpus": 2,
            "iteration_time": [1.0, 4.0, 2.0],
        }
    )

    def starts(**chosen):
        policy = make("themis", form="shares", **chosen)
        return simulate(jobs, "1x2", policy).jobs.set_index("job_id")["start_time"].tolist()

    assert starts(iterations_in_denominator=True) == [120.0, 0.0, 60.0]
    assert starts(iterations_in_denominator=False) == [0.0, 60.0, 120.0]


@pytest.mark.parametrize(
    ("rules", "factor"), [("paper", 1.0), ("muri", rules_named("muri").iterations)]
)
def test_times_of_iterations_are_those_of_the_rules_with_an_entry_per_job(
    rules, factor, monkeypatch
):
    made = []
    monkeypatch.setattr(
        "repro.policies.pcs.themis.FairShares",
        lambda *args, **named: made.append(FairShares(*args, **named)) or made[-1],
    )
    jobs = small_trace().assign(iterations=10, iteration_time=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    jobs["duration"] = jobs["iterations"] * jobs["iteration_time"]
    policy = make("themis", rules, form="shares", iterations_in_denominator=True)
    simulate(jobs, "1x4", policy, rules=rules, overhead="none")
    expected = factor * jobs["iteration_time"].to_numpy()
    assert made[0].iteration_s == pytest.approx(expected, rel=1e-6)


def test_among_equals_the_wider_gang_goes_first():
    jobs = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": 0.0,
            "duration": [10.0, 60.0, 60.0],
            "num_gpus": [2, 1, 2],
            "iteration_time": [8.0, 1.0, 2.0],
        }
    )
    policy = make("themis", form="shares", iterations_in_denominator=True)
    # the last two have equal shares: half the pace makes up for an iteration twice as long
    assert simulate(jobs, "1x2", policy).jobs["start_time"].tolist() == [0.0, 70.0, 10.0]


def test_a_job_that_never_ran_goes_before_a_job_that_ran():
    jobs = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 10.0], "duration": [50.0, 20.0], "num_gpus": 2}
    )
    result = simulate(jobs, "1x2", make("themis", form="shares"))
    assert result.jobs["start_time"].tolist() == [0.0, 10.0]
    assert result.jobs["end_time"].tolist() == [70.0, 30.0]


@pytest.mark.parametrize(("seconds", "start"), [(0.0, 10.0), (2.0, 10.0), (10.0, 410.0)])
def test_initial_service_delays_a_job_that_never_ran(seconds, start):
    """At 10 s the shares are about 0.8 and 0.2, and the jobs have run 10 s and 0 s."""
    jobs = pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": [0.0, 10.0],
            "duration": [410.0, 1.0],
            "num_gpus": 2,
            "iteration_time": [4.0, 1.0],
        }
    )
    chosen = {"iterations_in_denominator": True, "initial_service": seconds}
    result = simulate(jobs, "1x2", make("themis", form="shares", **chosen))
    assert result.jobs["start_time"].tolist() == [0.0, start]


@pytest.mark.parametrize(("counts", "ends"), [(False, [161, 71, 13]), (True, [103, 161, 13])])
def test_shares_are_divided_by_executed_time_or_by_starts(counts, ends):
    """At 13 s the shares are about 0.67 and 0.33, the jobs have run 10 s and 2 s, once each."""
    jobs = pd.DataFrame(
        {
            "job_id": [0, 1, 2],
            "submit_time": [0.0, 10.0, 12.0],
            "duration": [100.0, 60.0, 1.0],
            "num_gpus": 2,
            "iteration_time": [2.0, 1.0, 1.0],
        }
    )
    chosen = {"iterations_in_denominator": True, "count_starts": counts}
    result = simulate(jobs, "1x2", make("themis", form="shares", **chosen))
    assert result.jobs["end_time"].tolist() == ends


def test_rules_choose_the_form():
    assert make("themis").form == "leases"
    muri = make("themis", "muri")
    assert (muri.form, muri.iterations_in_denominator) == ("shares", True)
    assert (Themis.elastic, muri.elastic) == (True, False)
    assert muri.under("paper") == muri
    assert make("themis", "pcs").form == "leases"
    leases = make("themis", "muri", form="leases")
    assert (leases.elastic, leases.needs) == (True, {"duration"})


def test_a_policy_made_by_hand_equals_the_policy_made_by_name():
    by_hand = simulate(small_trace(), "1x4", Themis(form="shares"))
    by_name = simulate(small_trace(), "1x4", make("themis", form="shares"))
    assert by_hand.jobs.equals(by_name.jobs)


@pytest.mark.parametrize("cluster", ["2x4", "1x4,2x2"])
def test_battery(cluster):
    check_policy(make("themis", form="shares"), cluster=cluster, placement="yarn")


@pytest.mark.parametrize(
    ("jobs", "cluster", "chosen", "error", "message"),
    [
        (small_trace(), "1x4", {"form": "auction"}, ParamError, "give leases or shares"),
        (small_trace(), "1x4", {"lease": 0.0}, ParamError, "lease is 0.0"),
        (
            small_trace(),
            "1x4",
            {"form": "shares", "initial_service": -1.0},
            ParamError,
            "seconds, 0 or more",
        ),
        (
            small_trace(),
            "1x4",
            {"form": "shares", "iterations_in_denominator": True},
            TraceError,
            "no column 'iteration_time'",
        ),
        (
            small_trace().assign(submit_time=0.0, iteration_time=[np.nan, *[1.0] * 5]),
            "1x4",
            {"form": "shares", "iterations_in_denominator": True},
            TraceError,
            r"row 0 \(job 0\) has no iteration_time",
        ),
        (small_trace(), "1x2,2x1", {"form": "shares"}, TraceError, "4 GPUs and never fits"),
    ],
)
def test_wrong_settings_and_traces_are_refused_in_one_line(jobs, cluster, chosen, error, message):
    with pytest.raises(error, match=message) as caught:
        simulate(jobs, cluster, make("themis", **chosen))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "published", "within"),
    [
        ("trace3", (397058.802, 8172104.51), 0.02),
        pytest.param("trace4", (994970.736, 13793094.42), 0.06, marks=pytest.mark.nightly),
    ],
)
def test_results_are_close_to_the_published_numbers(mirror, name, published, within):
    """The published runs had no factor on iteration times, so that the results are not equal."""
    file = mirror / "Rivendile+Muri" / "simulator" / "trace-data" / f"{name}.csv"
    summary = simulate(load(file, format="muri"), "8x8", "themis", rules="muri").summary()
    assert summary["avg_jct"] == pytest.approx(published[0], rel=within)
    assert summary["makespan"] == pytest.approx(published[1], rel=0.03)


def test_a_policy_can_be_pickled():
    for rules in ("pcs", "muri"):
        policy = make("themis", rules, lease=5.0)
        copy = pickle.loads(pickle.dumps(policy))
        assert copy == policy and copy.rule == policy.rule


def test_shares_on_several_gpu_types_name_each_job_once():
    trace = small_trace().assign(model="a")
    rows = {("a", gpus): {"v100": 2.0, "k80": 1.0} for gpus in (1, 2, 4)}
    policy = make("themis", form="shares")
    table = ThroughputTable(rows, "v100")
    result = simulate(trace, "1x4:v100,1x4:k80", policy, perf=table)
    assert result.jobs["end_time"].notna().all()
    assert set(result.intervals["gpu_type"]) == {"v100", "k80"}


def test_a_lease_of_pcs_lasts_600_s():
    jobs = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": 0.0, "duration": [1000.0, 1000.0], "num_gpus": 1}
    )
    result = simulate(jobs, "1x1", "themis", rules="pcs")
    assert result.jobs["start_time"].tolist() == [0.0, 600.0]


def test_of_equal_rhos_the_earlier_arrival_gets_the_gpu():
    """At 600 s both have rho 3/4: 6000 / (6000 / (3/4)), and (600 + 1200) / (1200 / (1/2)).

    They saw 4/3 and 2 jobs on average. At 1200 s the rho of the second is 1.
    """
    jobs = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": 0.0, "duration": [6000.0, 1200.0], "num_gpus": 1}
    )
    result = simulate(jobs, "1x1", "themis", rules="pcs")
    assert result.jobs["start_time"].tolist() == [0.0, 1200.0]


def test_a_narrow_job_goes_before_wide_jobs_whose_rho_falls_with_fewer_gpus():
    """Six jobs of three GPUs, of which 3 GPUs are slower than 2, have the largest rhos.

    One of them gets three of five GPUs. The rho of the others on 2 GPUs is below that of the narrow
    job, which gets a GPU.
    """
    jobs = pd.DataFrame(
        {
            "job_id": range(7),
            "submit_time": 0.0,
            "duration": [6.0, *[10.0] * 6],
            "num_gpus": [1, *[3] * 6],
            "model": "slow on three",
        }
    )
    speeds = SpeedUp({"slow on three": (1.0, 1.2, 0.5)})
    spans = simulate(jobs, "1x5", "themis", perf=speeds).intervals
    first = spans[spans["start"] == 0].set_index("job_id")["gpus"]
    assert first.to_dict() == {1: 3.0, 0: 1.0, 2: 1.0}
