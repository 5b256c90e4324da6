"""Gavel's sweeps: which points, what is measured, what is remembered, what is compared."""

import sys
import types
from dataclasses import replace

import pandas as pd
import pytest

import repro
from repro.errors import ParamError
from repro.experiments.gavel import cases, cluster, published, sweep
from repro.optimise import ecos

TABLE = "gavel-like-throughputs"


def inputs(**changes):
    """Return the inputs of a sweep small enough for a second."""
    small = {
        "trace": "gavel-single",
        "options": {"throughputs": TABLE, "fixed_duration": 3600.0},
        "throughputs": TABLE,
        "cluster": "2xv100,2xp100,2xk80",
        "seeds": [0],
        "measured": [5, 9],
        "rates": [0.6, 3.0],
        "scale": 3,
        "rules": "gavel",
        "rounds": {"min_realloc_interval_s": 0},
        "series": {"gavel-las": {}, "las-agnostic": {"to": 1.0}},
    }
    return {**small, **changes}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))


def test_each_series_goes_as_far_as_it_may_highest_rate_first():
    points = sweep.rate_points(inputs(), seed=4)
    assert [(p.series, p.x) for p in points] == [
        ("gavel-las", 3.0), ("gavel-las", 0.6), ("las-agnostic", 0.6)
    ]  # fmt: skip
    assert {p.case.seed for p in points} == {4}
    assert points[0].case.options["rate"] == pytest.approx(1.0)


def test_series_may_not_set_what_does_not_exist():
    with pytest.raises(ParamError, match="'LAS': unknown colour"):
        sweep.rate_points(inputs(series={"LAS": {"colour": "red"}}))


def test_without_its_solver_the_centre_stands_in(monkeypatch):
    from repro.experiments.gavel.cases import solvable

    asked = {"lp_backend": "ecos", "tolerance": 0.05}
    monkeypatch.setattr("repro.optimise.ecos.is_installed", lambda: True)
    assert solvable(asked) == (asked, False)
    monkeypatch.setattr("repro.optimise.ecos.is_installed", lambda: False)
    assert solvable(asked) == ({"lp_backend": "centre", "tolerance": 0.05}, True)


def test_without_its_solver_a_figure_says_so_and_other_results_are_remembered(
    monkeypatch, tmp_path
):
    series = {"LAS": {"policy": "gavel-las", "settings": {"lp_backend": "ecos"}}, "gavel-las": {}}
    is_installed = ecos.is_installed.__wrapped__
    monkeypatch.setattr(ecos, "is_installed", is_installed)
    keys, notes = [], []
    for there in (True, False):
        if there:
            monkeypatch.setitem(sys.modules, "ecos", types.ModuleType("ecos"))
        else:
            monkeypatch.setitem(sys.modules, "ecos", None)  # what an absent package is to import
        points = sweep.rate_points(inputs(series=series))
        keys.append({point.series: sweep.digest(point.case) for point in points})
        fig = repro.figure("gavel/fig08_las_single", out=tmp_path)
        sweep.note_traces(fig, points)
        notes.append(fig._notes)
    assert notes == [[], ["without the solver ECOS, by the centre of the optima: LAS"]]
    assert keys[0]["LAS"] != keys[1]["LAS"] and keys[0]["gavel-las"] == keys[1]["gavel-las"]


def test_an_own_table_that_changes_is_another_case(tmp_path):
    speeds = tmp_path / "speeds.csv"
    head = "job_type,scale_factor,gpu_type,steps_per_second\n"
    digests = []
    for rate in (1, 2):
        speeds.write_text(f"{head}A3C,1,v100,{rate}\n")
        case = sweep.rate_points(inputs(throughputs=str(speeds)))[0].case
        digests.append(sweep.digest(case))
        assert case.throughputs == str(speeds)
    assert digests[0] != digests[1]


def test_a_figure_records_a_trace_of_each_seed_and_the_throughputs(tmp_path):
    fig = repro.figure("gavel/fig08_las_single", out=tmp_path)
    sweep.note_traces(fig, sweep.rate_points(inputs(seeds=[3, 5])))
    assert [(used.name, used.seed) for used in fig._used.values()] == [
        ("gavel-single", 3), ("gavel-single", 5), (TABLE, None)
    ]  # fmt: skip


def test_only_measured_jobs_are_kept_and_arrivals_outlast_them():
    point = sweep.rate_points(inputs())[0]
    result = cases.measure(point.case)
    assert result.jobs["job_id"].tolist() == [5, 6, 7, 8, 9]
    assert result.intervals.empty
    assert result.jobs["jct_h"].gt(0).all()


def test_measured_jobs_that_outlast_the_arrivals_have_no_end():
    point = sweep.rate_points(inputs())[0]
    found = cases.measure(replace(point.case, horizon_h=1e-3)).jobs
    assert found["job_id"].tolist() == [5, 6, 7, 8, 9]
    late = found["jct_h"].isna()
    assert late.any() and (found["end_h"].isna() == late).all()
    whole = cases.measure(point.case).jobs
    # those that ended in time ended as they do with more arrivals
    assert found.loc[~late, "end_h"].tolist() == whole.loc[~late, "end_h"].tolist()
    jobs = found.assign(series="a", x=1.0, seed=0)
    assert sweep.unfinished(jobs)["jobs"].tolist() == [late.sum()]
    assert published.means(jobs).empty


def test_a_killed_sweep_goes_on_from_the_points_it_has(monkeypatch):
    points = sweep.rate_points(inputs())
    done = sweep.run_points(points[:1], workers=1)
    counted = []
    real = sweep.measure
    monkeypatch.setattr(sweep, "measure", lambda case: counted.append(case) or real(case))
    both = sweep.run_points(points, workers=1)
    assert len(counted) == len(points) - 1
    # the longest first
    rates = [case.options["rate"] for case in counted]
    assert rates == sorted(rates, reverse=True)
    pd.testing.assert_frame_equal(both[: len(done)], done)
    counted.clear()
    pd.testing.assert_frame_equal(sweep.run_points(points, workers=2), both)
    assert counted == []


def test_same_answers_in_several_processes():
    points = sweep.rate_points(inputs())
    apart = sweep.run_points(points, workers=2)
    again = pd.concat([cases.measure(point.case).jobs for point in points])
    assert apart["jct_h"].tolist() == again["jct_h"].tolist()


def test_cases_that_differ_are_told_apart_and_labels_are_not():
    case = sweep.rate_points(inputs())[0].case
    same = sweep.rate_points(inputs(series={"Gavel": {"policy": "gavel-las"}}))[0].case
    longer = replace(case, rounds={"min_realloc_interval_s": 1920})
    assert cases.digest(case) == cases.digest(same) != cases.digest(longer)


def test_static_jobs_are_all_measured():
    both = {"gavel-las": {}, "las-agnostic": {}}
    given = inputs(trace="gavel-static", cluster="8xv100,8xp100,8xk80", jobs=[30], series=both)
    jobs = sweep.run_points(sweep.size_points(given), workers=1)
    assert jobs.groupby("series")["job_id"].count().to_dict() == {
        "gavel-las": 10, "las-agnostic": 10
    }  # fmt: skip
    ends = sweep.makespans(jobs).set_index("series")["makespan_h"]
    assert ends["gavel-las"] == jobs.loc[jobs["series"] == "gavel-las", "end_h"].max()


def test_published_points_hold_no_invented_ones():
    for figure in ("las_single", "las_multiple", "fifo_single", "ftf_multiple", "rounds_single"):
        assert published.curves(figure)["mean"].max() < 100


def test_unknown_published_figure():
    with pytest.raises(ParamError, match="no figure 'fig99'"):
        published.curves("fig99")


def test_published_curve_agrees_with_itself():
    known = published.curves("las_single")
    jobs = known.rename(columns={"mean": "jct_h"}).assign(seed=0)
    table = published.means(jobs, known=known)
    assert published.distance(table, "gavel-las", first_seed=False) == 0
    assert published.knee(table, "las-agnostic") == 4.8
    assert published.knee(table, "gavel-las") == 5.6
    assert published.ratio(table, "las-agnostic", "gavel-las", 5.6) == pytest.approx(3.456, 1e-3)


def test_cluster_sweep_pairs_policies_at_each_part():
    roles = {"agnostic": {"policy": "las-agnostic"}, "aware": {"policy": "gavel-las"}}
    given = inputs(
        clusters={0.5: "8xv100,8xk80"},
        jct={"trace": "gavel-single", **roles, "measured": [3, 5], "rates": {0.5: [1.0]}},
        makespan={"trace": "gavel-static", **roles, "jobs": 30},
    )
    points = cluster.sweep_points(given)
    jobs = sweep.run_points(points["makespan"], workers=1)
    found = cluster.quotients(sweep.makespans(jobs), "makespan_h")
    assert found[["series", "x"]].to_numpy().tolist() == [["all", 0.5]]
    assert {p.series for p in points["jct"]} == {"V100s: 0.5 agnostic", "V100s: 0.5 aware"}
