"""Muri-S and Muri-L: parameters, orderings, noise, decisions on a grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError, TraceError
from repro.model.policy import make
from repro.perf.muri_models import muri_profiles

BOTH = ("muri-s", "muri-l")
STAGES = ("stage_storage", "stage_gpu", "stage_network")


def jobs(number, seed=0, *, gap=200.0, widths=(1, 1, 2, 4)):
    """Jobs of the eight models; no two arrive together."""
    rng = np.random.default_rng(seed)
    table = muri_profiles().rename(columns={"stage_data": "stage_storage"})
    table = table.query("num_gpus in @widths")
    rows = table.iloc[rng.integers(len(table), size=number)].reset_index(drop=True)
    kept = rows[["model", "num_gpus", "iteration_time", *STAGES]]
    counts = rng.integers(200, 20_000, number)
    return kept.assign(
        job_id=rng.permutation(number),
        submit_time=np.cumsum(rng.exponential(gap, number)),
        duration=counts * rows["iteration_time"],
        iterations=counts,
    )


def ends(frame, policy, cluster="1x4", rules="muri", **settings):
    run = simulate(frame, cluster, make(policy, rules, **settings), rules=rules).jobs
    return run.set_index("job_id")["end_time"].sort_index()


def pair(**columns):
    frame = pd.DataFrame({"job_id": [0, 1], "submit_time": 0.0, "duration": 100.0, "num_gpus": 1})
    return frame.assign(iterations=100.0, iteration_time=1.0, model="bert", **columns)


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_group": 1}, "max_group is 1; give a whole number of jobs from 2 to 4"),
        ({"max_group": 5}, "max_group is 5; give a whole number of jobs from 2 to 4"),
        ({"max_group": 2.5}, "max_group is 2.5; give a whole number"),
        ({"ordering": "x"}, "ordering is 'x'; give best or worst"),
        ({"noise": 2}, "noise is 2; give a number from 0 to 1"),
        ({"noise": -0.1}, "noise is -0.1; give a number from 0 to 1"),
        ({"noise": float("nan")}, "noise is nan; give a number from 0 to 1"),
        ({"interval": 0}, "interval is 0; give a number of seconds above 0"),
        ({"interval": -360.0}, "interval is -360.0; give a number of seconds above 0"),
    ],
)
def test_settings_out_of_range_are_refused(policy, settings, message):
    with pytest.raises(ParamError, match=message) as caught:
        make(policy, **settings)
    assert policy in str(caught.value).partition(" is ")[0]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("policy", BOTH)
def test_the_rules_fill_open_parameters(policy):
    paper = make(policy)
    artifact = make(policy, "muri")
    assert (paper.measured_factors, paper.halving_rounds, paper.best_first) == (False, True, True)
    assert (paper.wide_first, paper.completions().tie_s) == (False, 0.0)
    assert (artifact.measured_factors, artifact.halving_rounds) == (True, False)
    assert (artifact.best_first, artifact.wide_first, artifact.completions().tie_s) == (
        False,
        True,
        1e-4,
    )
    assert artifact.performance().factors == (1.33 / 1.015, 1.5 / 1.015, 1.37 / 1.015)
    cheaper = make(policy, "muri", blossom=False).performance().factors
    assert cheaper == (1.33 / 1.015, 1.5 / 1.015, 1.3 / 1.015)
    assert paper.performance().factors == ()


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(("ordering", "period"), [("best", 0.228), ("worst", 0.345)])
def test_two_jobs_on_one_gpu_have_the_period_of_their_ordering(policy, ordering, period):
    """bert with vgg16; both advance one iteration per period."""
    frame = pair(stage_storage=[0.0005, 0.117], stage_gpu=[0.16, 0.068], stage_network=0.0)
    found = simulate(frame, "1x1", make(policy, ordering=ordering), rules="paper").jobs
    # per iteration the trace gives a job 1 s alone
    assert found["end_time"].tolist() == pytest.approx([100 * period] * 2)


@pytest.mark.parametrize("policy", BOTH)
def test_the_worst_ordering_is_never_faster_for_a_pair(policy):
    rng = np.random.default_rng(0)
    for _ in range(30):
        names = dict(zip(STAGES, rng.uniform(0.01, 1.0, (3, 2)), strict=True))
        best, worst = (ends(pair(**names), policy, "1x1", ordering=o) for o in ("best", "worst"))
        assert (best <= worst + 1e-9).all()


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize("rules", ["paper", "muri"])
def test_no_groups_while_gpus_suffice(policy, rules):
    frame = jobs(6, widths=(1, 2)).assign(submit_time=0.0)
    alone = ends(frame, "srtf", "2x8", rules)
    pd.testing.assert_series_equal(ends(frame, policy, "2x8", rules), alone, rtol=1e-12)


@pytest.mark.parametrize("policy", BOTH)
def test_noise_is_sampled_from_its_seed(policy):
    frame = jobs(60, 1, gap=20.0)
    plain = ends(frame, policy)
    noisy = ends(frame, policy, noise=0.9, noise_seed=1)
    assert ends(frame, policy, noise=0.9, noise_seed=1).equals(noisy)
    assert not ends(frame, policy, noise=0.9, noise_seed=2).equals(noisy)
    assert not noisy.equals(plain)
    assert ends(frame, policy, noise=0.0, noise_seed=5).equals(plain)


@pytest.mark.parametrize("policy", BOTH)
def test_noise_misleads_the_scheduler_only(policy):
    """Two jobs on one GPU make one group, whatever the scheduler knows of them."""
    frame = pair(stage_storage=[0.0005, 0.117], stage_gpu=[0.16, 0.068], stage_network=0.0)
    assert ends(frame, policy, "1x1", noise=1.0).equals(ends(frame, policy, "1x1"))


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize("rules", ["paper", "muri"])
def test_kinds_and_single_jobs_do_as_well(policy, rules):
    """The matchings have equal weight; the choice among equal jobs may differ."""
    means = [
        np.mean([ends(jobs(60, s, gap=20.0), policy, "2x4", rules, collapse=c) for s in range(6)])
        for c in (True, False)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.03)


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize("rules", ["paper", "muri"])
@pytest.mark.parametrize("settings", [{}, {"max_group": 3, "autopack": True}, {"blossom": False}])
def test_the_order_of_rows_in_the_file_changes_nothing(policy, rules, settings):
    frame = jobs(50, 2, gap=20.0)
    shuffled = frame.sample(frac=1.0, random_state=3).reset_index(drop=True)
    assert ends(shuffled, policy, "2x4", rules, **settings).equals(
        ends(frame, policy, "2x4", rules, **settings)
    )


@pytest.mark.parametrize(("most", "started"), [(2, 2), (3, 3), (4, 3)])
def test_rounds_of_matching_suffice_for_a_full_group(most, started):
    """Three jobs of different resources on one GPU; log2(3) rounds are rounded up to two."""
    frame = pd.concat([pair(), pair().iloc[:1].assign(job_id=2)])
    frame = frame.assign(
        stage_storage=[1.0, 0, 0], stage_gpu=[0, 1.0, 0], stage_network=[0, 0, 1.0]
    )
    policy = make("muri-s", max_group=most, halving_rounds=True)
    starts = simulate(frame, "1x1", policy).jobs["start_time"]
    assert (starts == 0).sum() == started


@pytest.mark.parametrize("policy", BOTH)
def test_the_widest_groups_take_the_first_nodes(policy):
    frame = pair(stage_storage=0.0, stage_gpu=1.0, stage_network=0.0).assign(num_gpus=[1, 2])
    run = simulate(frame, "2x2", make(policy, "muri"), rules="muri", placement="yarn")
    nodes = run.intervals.set_index("job_id")["nodes"]
    assert (nodes[1], nodes[0]) == (((0, 2),), ((1, 1),))


@pytest.mark.parametrize("policy", BOTH)
def test_rounds_decide_on_the_grid(policy):
    frame = jobs(30, 4)
    run = simulate(frame, "1x4", make(policy, "muri", interval=360.0), rules="muri")
    starts = run.jobs["start_time"].to_numpy()
    assert (starts % 360.0 == 0).all()
    assert (starts - run.jobs["submit_time"].to_numpy() >= 0).all()
    assert run.jobs["end_time"].notna().all()
    assert not ends(frame, policy).equals(ends(frame, policy, interval=360.0))


def test_the_name_of_a_policy_leaves_out_how_it_is_computed():
    assert repr(make("muri-s", collapse=False)) == repr(make("muri-s"))


def test_muri_l_knows_no_durations():
    frame = pair(stage_storage=0.5, stage_gpu=0.5, stage_network=0.0)
    assert "duration" not in make("muri-l").needs and "duration" in make("muri-s").needs
    longer = frame.assign(duration=[1e6, 1.0])
    assert ends(longer, "muri-l", "1x1").equals(ends(frame, "muri-l", "1x1"))


@pytest.mark.parametrize("policy", BOTH)
def test_traces_without_stage_times_are_refused(policy):
    with pytest.raises(TraceError, match="no column 'stage_storage'; grouped jobs need their"):
        simulate(pair(), "1x1", policy, rules="muri")
