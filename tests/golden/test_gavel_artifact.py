"""Gavel's public simulator: its average JCTs and makespans on its own generated jobs.

Single-GPU servers, rules gavel (1,920 s between recomputations). Policies without a linear
programme come out to every printed digit; the others within what its solver's choice among equal
optima makes (the simulator stops an interior-point solver near the centre of the optimal face).
"""

from __future__ import annotations

import pandas as pd
import pytest

from repro import make, simulate
from repro.papers.gavel.series import end_of_last_round
from repro.perf.throughput_files import EARLY, load_throughputs
from repro.trace import synth

SMALL = "4xv100,4xp100,4xk80"
LARGER = "8xv100,8xp100,8xk80"


@pytest.fixture(autouse=True)
def measured_throughputs(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))


def average(
    policy,
    *,
    first=20,
    last=59,
    seed=0,
    trace="gavel-single",
    rate=1.0,
    jobs=900,
    cluster=SMALL,
    rounds=None,
    job_table="public",
    **settings,
):
    """Average JCT (s) of the measured jobs while later ones keep arriving."""
    frame = synth.make(trace, seed, jobs=jobs, rate=rate, job_table=job_table)
    measured = range(first, last + 1)
    result = simulate(
        frame,
        cluster,
        make(policy, "gavel", **settings),
        rules="gavel",
        rounds=rounds,
        seed=seed,
        until=measured,
        keep_intervals=False,
    )
    found = result.jobs.set_index("job_id")["jct"].loc[list(measured)]
    assert found.notna().all()
    assert frame["submit_time"].max() > result.jobs["end_time"].max(), "arrivals ran out"
    return float(found.mean())


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        ("isolated", 93841.814),
        ("fifo-agnostic", 89402.529),
        ("gavel-fifo", 71558.779),
        ("allox", 77193.595),
    ],
)
def test_policies_without_a_programme_come_out_to_the_last_digit(policy, seconds):
    assert average(policy) == pytest.approx(seconds, abs=6e-4)


@pytest.mark.parametrize(
    ("policy", "settings", "seconds", "within"),
    [
        ("gavel-las", {}, 55963.611, 0.01),
        ("gavel-las", {"lp_backend": "highs"}, 55963.611, 0.02),
        ("las-agnostic", {}, 93634.564, 0.01),
        ("gavel-ftf", {}, 55256.563, 0.01),
    ],
)
def test_programmes_on_one_gpu(policy, settings, seconds, within):
    assert average(policy, **settings) == pytest.approx(seconds, rel=within)


def test_random_pairs():
    assert average("gandiva-ss") == pytest.approx(74767.206, abs=6e-4)


def test_another_seed_and_another_round():
    assert average("gavel-las", seed=1, jobs=2500) == pytest.approx(207324.470, rel=0.01)
    found = average("gavel-las", rounds={"round_s": 720.0})
    assert found == pytest.approx(56684.364, rel=0.01)


@pytest.mark.parametrize(
    ("policy", "seconds"), [("gavel-las", 74626.843), ("las-agnostic", 112133.055)]
)
def test_gangs(policy, seconds):
    several = {"trace": "gavel-multiple", "cluster": LARGER, "rate": 3600 / 5400}
    assert average(policy, **several) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize(
    ("policy", "seconds", "within"),
    [
        ("gavel-las-ss", 58430.418, 0.01),
        ("gavel-water-filling", 61447.705, 0.01),
    ],
)
def test_shorter_window(policy, seconds, within):
    assert average(policy, first=10, last=29) == pytest.approx(seconds, rel=within)


@pytest.mark.parametrize(
    ("policy", "seconds", "within"),
    [
        ("fifo-agnostic", 807029.008, 1e-9),
        ("gandiva-ss", 644047.458, 1e-9),
        ("gavel-makespan", 612422.718, 0.02),
        ("makespan-agnostic", 1036865.633, 0.01),
    ],
)
def test_makespan_of_forty_jobs_at_once(policy, seconds, within):
    frame = synth.make("gavel-static", 0, jobs=40)
    result = simulate(frame, LARGER, make(policy, "gavel"), rules="gavel", keep_intervals=False)
    assert result.jobs["end_time"].max() == pytest.approx(seconds, rel=within)


@pytest.mark.parametrize(
    ("rate", "seconds", "within"), [(1.0, 65079.751, 1e-4), (0.4, 55738.946, 0.01)]
)
def test_ideal_execution_between_arrivals(rate, seconds, within):
    found = average("gavel-las", rate=rate, rounds={"ideal": "artifact"})
    assert found == pytest.approx(seconds, rel=within)


@pytest.mark.parametrize(("seed", "seconds"), [(42, 59492.106756), (1234, 64494.582453)])
def test_the_walkthrough_of_the_artifact(seed, seconds):
    cluster = "36xv100,36xp100,36xk80"
    found = average("allox", first=4000, last=4999, seed=seed, rate=0.4, jobs=5200, cluster=cluster)
    assert found == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("policy", "trace", "rate", "hours", "settings"),
    [
        ("gavel-fifo", "gavel-single", 0.4, 15.31, {}),
        ("allox", "gavel-single", 2.8, 16.37, {}),
        ("gavel-las", "gavel-single", 2.8, 16.04, {"lp_backend": "ecos"}),
        ("gavel-fifo", "gavel-multiple", 2.0, 27.68, {}),
        ("gandiva-ss", "gavel-multiple", 1.0, 18.96, {}),
        ("gavel-las", "gavel-multiple", 2.0, 21.90, {"lp_backend": "ecos"}),
    ],
)
def test_stored_points_of_the_figures(policy, trace, rate, hours, settings):
    if settings:
        pytest.importorskip("ecos", reason="the package ecos (extra) is not installed")
    found = average(
        policy,
        first=4000,
        last=4999,
        trace=trace,
        rate=rate,
        jobs=7000,
        cluster="36xv100,36xp100,36xk80",
        job_table="published",
        **settings,
    )
    assert found / 3600 == pytest.approx(hours, abs=0.0151)


@pytest.mark.parametrize(
    ("policy", "settings", "seconds"),
    [
        ("gavel-las", {"lp_backend": "ecos"}, 55963.611),
        ("las-agnostic", {"form": "ecos"}, 93634.564),
        ("gavel-ftf", {"lp_backend": "ecos"}, 55256.563),
        ("ftf-agnostic", {"lp_backend": "ecos"}, 85095.590),
    ],
)
def test_the_simulators_own_solver_gives_its_digits(policy, settings, seconds):
    pytest.importorskip("ecos", reason="the package ecos (extra) is not installed")
    assert average(policy, **settings) == pytest.approx(seconds, rel=1e-4)


@pytest.mark.parametrize(
    ("policy", "settings", "seconds"),
    [
        ("gavel-las", {"lp_backend": "ecos"}, 74626.843),
        ("las-agnostic", {"form": "ecos"}, 112133.055),
    ],
)
def test_the_simulators_own_solver_on_gangs(policy, settings, seconds):
    pytest.importorskip("ecos", reason="the package ecos (extra) is not installed")
    several = {"trace": "gavel-multiple", "cluster": LARGER, "rate": 3600 / 5400}
    assert average(policy, **settings, **several) == pytest.approx(seconds, rel=1e-4)


@pytest.mark.parametrize(
    ("policy", "seconds"), [("gavel-makespan", 612422.718), ("makespan-agnostic", 1036865.633)]
)
def test_the_simulators_own_solver_on_makespans(policy, seconds):
    pytest.importorskip("ecos", reason="the package ecos (extra) is not installed")
    frame = synth.make("gavel-static", 0, jobs=40)
    theirs = make(policy, "gavel", lp_backend="ecos")
    result = simulate(frame, LARGER, theirs, rules="gavel", keep_intervals=False)
    assert result.jobs["end_time"].max() == pytest.approx(seconds, rel=1e-4)


PAPER = "36xv100,36xp100,36xk80"


def ends_h(frame, cluster, policy, seed, rounds, perf=None, **settings):
    """End of each job (h) under the rules of the simulator."""
    result = simulate(
        frame,
        cluster,
        make(policy, "gavel", **settings),
        rules="gavel",
        rounds=rounds,
        seed=seed,
        perf=perf,
        keep_intervals=False,
    )
    return result.jobs["end_time"] / 3600


@pytest.mark.parametrize(("jobs", "hours"), [(100, 182.319456), (200, 229.430326)])
def test_stored_makespans_of_fifo(jobs, hours):
    makespans = [
        ends_h(frame, PAPER, "fifo-agnostic", seed, {"round_s": 1920.0}).max()
        for seed in range(3)
        for frame in [synth.make("gavel-static", seed, jobs=jobs, job_table="published")]
    ]
    assert sum(makespans) / 3 == pytest.approx(hours, abs=1e-5)


@pytest.mark.parametrize(("seed", "ratio"), [(0, 1.237316), (1, 1.057099), (2, 1.136827)])
def test_stored_ratios_of_the_cluster_sweep(seed, ratio):
    pytest.importorskip("ecos", reason="the package ecos (extra) is not installed")
    frame = synth.make("gavel-static", seed, jobs=500)
    agnostic, aware = (
        ends_h(frame, "90xv100,10xk80", policy, seed, None, lp_backend="ecos").max()
        for policy in ("makespan-agnostic", "gavel-makespan")
    )
    assert agnostic / aware == pytest.approx(ratio, abs=2e-6)


@pytest.mark.parametrize(
    ("policy", "settings", "hours", "deviation"),
    [
        ("gavel-fifo-ss", {}, 156.309, 7.319),
        ("gavel-makespan", {"lp_backend": "ecos"}, 151.255, 9.664),
    ],
)
def test_stored_makespans_of_2019(policy, settings, hours, deviation):
    if settings:
        pytest.importorskip("ecos", reason="the package ecos (extra) is not installed")
    table = load_throughputs(EARLY)
    options = {"job_table": "published", "sampler": "2019", "throughputs": EARLY}
    rounds = {"round_s": 1920.0, "min_realloc_interval_s": 0.0}
    makespans = pd.Series(
        end_of_last_round(ends_h(frame, PAPER, policy, seed, rounds, table, **settings), 1, 8 / 15)
        for seed in range(5)
        for frame in [synth.make("gavel-single", seed, jobs=101, **options).assign(submit_time=0.0)]
    )
    # vector coordinates of the stored figure
    assert makespans.mean() == pytest.approx(hours, abs=0.01)
    assert makespans.std() == pytest.approx(deviation, abs=0.01)
