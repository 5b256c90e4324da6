"""PCS's runs: statistics of jobs, contention over events, points beside published values."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import figure, simulate
from repro.base.errors import ParamError
from repro.figures.sweep import Case
from repro.papers.pcs import artifact, runs
from repro.trace import synth


def test_spread_counts_values_that_are_nothing_but_rounding() -> None:
    found = runs.statistics_of(pd.Series([0.0, 1e-9, 2.0, 4.0]), "pred_err_pct")
    assert found["zero_pred_err_pct"] == 50
    assert (found["avg_pred_err_pct"], found["max_pred_err_pct"]) == (pytest.approx(1.5), 4.0)
    assert found["p50_pred_err_pct"] == pytest.approx(1.0)


def test_rows_and_measured_say_what_summary_says() -> None:
    trace = synth.make("pcs-workload", 7, jobs=60, load=1.1, num_gpus=16)
    policy = artifact.policy("pcs-jct", "gavel")
    case = Case(trace, "1x16", policy, "pcs", measure=runs.measured).resolved()
    found = runs.measured(case)
    whole = simulate(trace, "1x16", policy, rules="pcs").summary()
    for name in ("avg_pred_err", "p99_pred_err", "avg_unfairness", "max_unfairness"):
        assert found[f"{name}_pct"] == pytest.approx(whole[name])
    assert found["avg_jct_s"] == pytest.approx(whole["avg_jct"])


def test_a_figure_opens_only_virtual_clusters() -> None:
    fig = figure("pcs/stored_runs", traces=["mine.csv"])
    with pytest.raises(ParamError, match=r"'mine.csv' is no virtual cluster of PCS.*ee9e8c"):
        runs.traces(fig)


def test_bars_of_unknown_configuration() -> None:
    fig = figure("pcs/fig07a_philly_jct")
    bars = pd.DataFrame({"x": ["6214e9"] * 3, "series": ["afs", "pcs-jct", "pcs-bal"]})
    assert runs.has_unknown_configuration(fig, bars).tolist() == [False, True, False]


def test_each_class_of_jobs_needs_a_gpu() -> None:
    fig = figure("pcs/reservations", cluster="1x4")
    jobs = pd.DataFrame({"service": [1.0] * 100 + [2.0, 3.0, 4.0]})
    with pytest.raises(ParamError, match="4 GPUs are too few for 4 classes; give more"):
        runs.partitioned(fig, jobs, [1.5, 2.5, 3.5])


def by_hand(start: list[int], end: list[int]) -> list[float]:
    """Replay the events of some jobs, completions before arrivals, counting who is present."""
    events = sorted(
        [(at, 0, job) for job, at in enumerate(end)]
        + [(at, 1, job) for job, at in enumerate(start)]
    )
    seen: dict[int, list[int]] = {}
    present: list[int] = []
    for _, arrives, job in events:
        for other in present:
            seen[other].append(len(present))
        if arrives:
            present.append(job)
            seen[job] = [len(present)]
        else:
            present.remove(job)
    return [float(np.mean(seen[job])) for job in range(len(start))]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=8))
def test_contention_is_the_mean_over_the_events_of_a_life(jobs: list[tuple[int, int]]) -> None:
    start = sorted(at for at, _ in jobs)
    # one completion per instant: of equal ones a job would see as many as come before its own
    ends = itertools.accumulate([0.5, *(length for _, length in jobs[1:])])
    end = [max(start) + at for at in ends]
    frame = pd.DataFrame({"submit_time": np.array(start, float), "end_time": end})
    assert runs.contention(frame) == pytest.approx(by_hand(start, end))


def test_contention_is_that_of_the_fair_finish_time_where_it_binds() -> None:
    trace = synth.make("pcs-workload", 3, jobs=200, load=1.5, num_gpus=8)
    jobs = simulate(trace, "1x8", "max-min", rules="pcs", predict=0).jobs
    number = runs.contention(jobs)
    work = jobs["duration"] * jobs["num_gpus"]
    binds = number > 8
    assert binds.sum() > 50
    ratio = 8 * jobs["fair_jct"][binds] / work[binds] / number[binds]
    assert ratio.to_numpy() == pytest.approx(1.0, abs=0.02)


def test_beside_keeps_what_both_tables_have() -> None:
    ours = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["x", "y"])
    theirs = pd.DataFrame({"a": [1.5], "c": [9.0]}, index=["y"])
    (point,) = runs.points(ours, theirs, "s").to_dict("records")
    assert (point["series"], point["quantity"], point["unit"]) == ("y", "a", "s")
    assert (point["published"], point["ours"]) == (1.5, 2.0)
    assert runs.points(ours, theirs, {"a": "%"}, comparable=False)["ours"].isna().all()
    assert runs.points(ours, theirs, {"a": "%"})["unit"].tolist() == ["%"]


def test_points_of_trials_are_judged_unless_fitted() -> None:
    models = [runs.DIVISIBLE, runs.TRIALS]
    index = pd.MultiIndex.from_product([models, ["afs"]], names=["model", "series"])
    table = pd.DataFrame({"avg_jct_s": [400.0, 520.0], "p90_jct_s": [800.0, 900.0]}, index)
    theirs = pd.DataFrame({"avg_jct_s": [500.0], "p90_jct_s": [850.0]}, pd.Index(["afs"]))
    points = runs.points_by_model(table, theirs, "s", True)
    assert points["aside"].fillna(False).tolist() == [True, True, False, False]
    assert points["fitted"].fillna(False).tolist() == [False, False, True, False]
    assert points["fitted_on"].dropna().tolist() == ["average JCT of Fig 5a"]
    assert points["ours"].tolist() == [400, 800, 520, 900]


def test_random_samples_without_an_error_are_refused() -> None:
    rng = np.random.default_rng(0)
    errors = pd.Series([1.0, 2.0, 3.0])
    with pytest.raises(ParamError, match=r"a random sample of 1 % of 3 errors is empty; give"):
        runs.sampled_ranges(errors, 0.01, rng, draws=10)
    assert runs.sampled_ranges(errors, 1.0, rng, draws=10)[0].tolist() == [2.0, 2.0]
