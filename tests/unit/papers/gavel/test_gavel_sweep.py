"""Gavel's sweeps: which simulations, what is measured, remembered and compared."""

import sys
import types
from dataclasses import replace

import pandas as pd
import pytest

import repro
from repro.base.errors import ParamError
from repro.figures import sweep
from repro.figures.figure import Inputs
from repro.papers.gavel import curves
from repro.papers.gavel import series as gavel
from repro.solve import ecos

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


def figure(seed=0, **changes):
    """Return a figure with the small inputs."""
    fig = repro.figure("gavel/fig08_las_single", seed=seed)
    fig.inputs = Inputs({**inputs(), "workers": 1, **changes})
    fig.file_inputs = Inputs(fig.inputs)
    return fig


def cases(seed=0, **changes):
    """Return the cases of the small inputs, in order."""
    return list(gavel.cases(figure(seed, **changes)).values())


def test_each_series_goes_as_far_as_it_may_highest_rate_first():
    found = gavel.cases(figure(seed=4))
    assert list(found) == [("gavel-las", 3.0, 4), ("gavel-las", 0.6, 4), ("las-agnostic", 0.6, 4)]
    first = next(iter(found.values()))
    assert first.options["rate"] == pytest.approx(1.0) and first.seed == 4


def test_series_may_not_set_what_does_not_exist():
    with pytest.raises(ParamError, match="'LAS': unknown 'colour'"):
        cases(series={"LAS": {"colour": "red"}})


def test_without_its_solver_the_centre_stands_in(monkeypatch):
    asked = {"lp_backend": "ecos", "tolerance": 0.05}
    monkeypatch.setattr("repro.solve.ecos.is_installed", lambda: True)
    assert gavel.settings_for_available_solver(figure(), {"a": asked}) == {"a": asked}
    monkeypatch.setattr("repro.solve.ecos.is_installed", lambda: False)
    replaced = {"lp_backend": "centre", "tolerance": 0.05}
    assert gavel.settings_for_available_solver(figure(), {"a": asked}) == {"a": replaced}


def test_without_its_solver_a_figure_says_so_and_other_results_are_remembered(monkeypatch):
    series = {"LAS": {"policy": "gavel-las", "settings": {"lp_backend": "ecos"}}, "gavel-las": {}}
    is_installed = ecos.is_installed.__wrapped__
    monkeypatch.setattr(ecos, "is_installed", is_installed)
    keys = []
    notes = []
    for there in (True, False):
        if there:
            monkeypatch.setitem(sys.modules, "ecos", types.ModuleType("ecos"))
        else:
            monkeypatch.setitem(sys.modules, "ecos", None)  # what an absent package is to import
        fig = figure(series=series)
        found = gavel.cases(fig)
        keys.append(dict(zip([label for label, *_ in found], digests(found.values()), strict=True)))
        notes.append(fig._notes)
    assert notes == [[], ["ECOS is not installed; computed with the solver centre instead: LAS"]]
    assert keys[0]["LAS"] != keys[1]["LAS"] and keys[0]["gavel-las"] == keys[1]["gavel-las"]


def digests(cases):
    return sweep.digests(case.resolved() for case in cases)


def test_an_own_table_that_changes_is_another_case(tmp_path):
    speeds = tmp_path / "speeds.csv"
    head = "job_type,scale_factor,gpu_type,steps_per_second\n"
    found = []
    for rate in (1, 2):
        speeds.write_text(f"{head}A3C,1,v100,{rate}\n")
        found += digests(cases(throughputs=str(speeds))[:1])
    assert found[0] != found[1]


def test_a_figure_records_a_trace_of_each_seed_and_the_throughputs():
    fig = figure(seeds=[3, 5], rates=[0.6])
    gavel.jobs(fig, gavel.cases(fig))
    assert [(used.name, used.seed) for used in fig._used_data.values()] == [
        ("gavel-single", 3),
        ("gavel-single", 5),
        (TABLE, None),
    ]


def test_only_measured_jobs_are_kept_and_arrivals_outlast_them():
    result = sweep.outcome(cases()[0].resolved())
    assert result.jobs["job_id"].tolist() == [5, 6, 7, 8, 9]
    assert result.intervals.empty
    assert result.jobs["jct"].gt(0).all()


def test_measured_jobs_that_outlast_the_arrivals_have_no_end():
    fig = figure()
    short = {"gavel-las": {"horizon_h": 1e-3}}
    label, case = next(iter(gavel.cases(fig).items()))
    found = gavel.jobs(fig, {label: gavel.cases(figure(series=short))[label]})
    assert found["job_id"].tolist() == [5, 6, 7, 8, 9]
    late = found["jct_h"].isna()
    assert late.any() and (found["end_h"].isna() == late).all()
    whole = gavel.jobs(fig, {label: case})
    # those that ended in time ended as they do with more arrivals
    assert found.loc[~late, "end_h"].tolist() == whole.loc[~late, "end_h"].tolist()
    assert gavel.unfinished(found)["jobs"].tolist() == [late.sum()]
    assert gavel.finished(found).empty


def test_a_killed_sweep_goes_on_from_the_points_it_has(monkeypatch):
    fig = figure()
    found = gavel.cases(fig)
    done = gavel.jobs(fig, dict([next(iter(found.items()))]))
    counted = []
    real = sweep._computed
    monkeypatch.setattr(sweep, "_computed", lambda case: counted.append(case) or real(case))
    both = gavel.jobs(fig, found)
    assert len(counted) == len(found) - 1
    # the longest first
    rates = [case.options["rate"] for case in counted]
    assert rates == sorted(rates, reverse=True)
    pd.testing.assert_frame_equal(both[: len(done)], done)
    counted.clear()
    fig.inputs["workers"] = 2
    pd.testing.assert_frame_equal(gavel.jobs(fig, found), both)
    assert counted == []


@pytest.mark.slow
def test_same_answers_in_several_processes():
    fig = figure(workers=2)
    found = gavel.cases(fig)
    apart = gavel.jobs(fig, found)
    again = pd.concat([case.measure(case.resolved()).jobs for case in found.values()])
    assert apart["jct_h"].tolist() == (again["jct"] / 3600).tolist()


def test_cases_that_differ_are_told_apart_and_labels_are_not():
    case = cases()[0]
    same = cases(series={"Gavel": {"policy": "gavel-las"}})[0]
    rounds = {"min_realloc_interval_s": 1920}
    longer = replace(case, settings={**case.settings, "rounds": rounds})
    keys = digests([case, same, longer])
    assert keys[0] == keys[1] != keys[2]


def test_static_jobs_are_all_measured():
    both = {"gavel-las": {}, "las-agnostic": {}}
    fig = figure(trace="gavel-static", cluster="8xv100,8xp100,8xk80", jobs=[30], series=both)
    fig.inputs["options"] = {"throughputs": TABLE}
    jobs = gavel.jobs(fig, gavel.cases(fig))
    assert jobs.groupby("series")["job_id"].count().to_dict() == {
        "gavel-las": 10,
        "las-agnostic": 10,
    }


def test_published_points_hold_no_invented_ones():
    for figure in ("las_single", "las_multiple", "fifo_single", "ftf_multiple", "rounds_single"):
        assert curves.published(figure)["mean"].max() < 100


def test_unknown_published_figure():
    with pytest.raises(ParamError, match="no figure 'fig99'"):
        curves.published("fig99")


def test_published_curve_agrees_with_itself():
    known = curves.published("las_single")
    known["seed0"] = known["mean"]
    runs = known.assign(seed=0).set_index(["series", "x", "seed"])["mean"]
    table = curves.over_seeds(runs, known)
    points = curves.points(known, table).dropna(subset="ours")
    assert points["ours"].tolist() == points["published"].tolist()
    mean = curves.by_x(table, ["las-agnostic", "gavel-las", "absent"])
    assert curves.knee(mean["las-agnostic"]) == 4.8
    assert curves.knee(mean["gavel-las"]) == 5.6
    at = mean.loc[5.6]
    assert at["las-agnostic"] / at["gavel-las"] == pytest.approx(3.456, 1e-3)
    assert mean["absent"].isna().all()


def test_a_line_is_the_mean_of_its_seeds_and_keeps_the_order_of_the_series():
    index = [("b", 2.0, 0), ("b", 2.0, 1), ("a", 1.0, 0), ("b", 1.0, 0)]
    names = ["series", "x", "seed"]
    runs = pd.Series([1.0, 3.0, 5.0, 7.0], pd.MultiIndex.from_tuples(index, names=names))
    rho = pd.Series([0.5], pd.MultiIndex.from_tuples([("a", 1.0)], names=names[:2]))
    table = curves.over_seeds(runs, None, ftf_seed0=rho)
    assert table[["series", "x", "mean"]].to_numpy().tolist() == [
        ["b", 1.0, 7.0],
        ["b", 2.0, 2.0],
        ["a", 1.0, 5.0],
    ]
    wide = table.iloc[1]
    assert wide["seed0"] == 1 and wide["seeds"] == 2
    assert [wide["low"], wide["high"]] == pytest.approx([2 - 2**0.5, 2 + 2**0.5])
    assert table["ftf_seed0"].isna().tolist() == [True, True, False]


def test_points_hold_every_published_number_of_a_curve_and_count_at_most_eleven():
    known = curves.published("ftf_multiple")
    ours = known.assign(mean=2 * known["mean"])
    points = curves.points(known, ours)
    mean = points[points["series"] == "gavel-ftf"]
    assert len(mean) == 15 and mean["ours"].tolist() == (2 * mean["published"]).tolist()
    assert (~mean["uncounted"]).sum() == 11
    fair = points[points["series"] == "gavel-ftf, fairness"]
    assert fair["x"].iloc[[0, -1]].tolist() == [0.2, 2.8] and set(fair["unit"]) == {""}
    apart = curves.points(known, ours, compare=False)
    assert apart["ours"].isna().all() and len(apart) == len(points)


def test_jobs_of_the_reference_have_the_same_rate_seed_and_id():
    jobs = pd.DataFrame({"series": ["a", "alone", "a"], "x": [1.0, 1.0, 2.0], "seed": 0})
    jobs = jobs.assign(job_id=7, jct_h=[3.0, 2.0, 5.0])
    assert gavel.reference_jct_h(jobs, "alone").fillna(-1).tolist() == [2.0, 2.0, -1.0]


def test_quantiles_stand_beside_the_published_ones_and_a_job_without_end_is_the_longest():
    known = curves.distribution("ftf_multiple", "ftf")
    jobs = pd.DataFrame({"series": "gavel-ftf", "ftf": [*range(1, 20), None]})
    jobs = pd.concat([jobs, jobs.assign(series="ftf-agnostic")])
    points = curves.quantiles(known, jobs, "ftf", "fairness")
    one = points[points["series"] == "gavel-ftf, distribution"].set_index("x")["ours"]
    assert len(points) == 22 and one[0.05] == 1 and one[0.5] == 10 and one[0.95] == 19


def test_draws_are_other_streams_that_may_hold_a_stored_value():
    given = {"of": "fifo-agnostic", "rates": [6.0], "streams": 2}
    jobs = gavel.draws(figure(rules="paper", draws=given))
    draws = jobs.groupby(["x", "series"], sort=False)["jct_h"].mean().reset_index()
    assert (
        draws["series"].tolist() == [f"fifo-agnostic, stream {n}" for n in (0, 1)]
        and draws["jct_h"].nunique() == 2
    )
    low, high = sorted(draws["jct_h"])
    known = pd.DataFrame({"series": "fifo-agnostic", "x": [6.0], "seed0": [(low + high) / 2]})
    assert curves.is_within(draws, known, "fifo-agnostic")
    assert not curves.is_within(draws, known.assign(seed0=2 * high), "fifo-agnostic")


def test_cluster_sweep_pairs_policies_at_each_part():
    roles = {"agnostic": {"policy": "las-agnostic"}, "aware": {"policy": "gavel-las"}}
    fig = figure(
        clusters={0.5: "8xv100,8xk80"},
        jct={"trace": "gavel-single", **roles, "measured": [3, 5], "rates": {0.5: [1.0]}},
        makespan={"trace": "gavel-static", **roles, "jobs": 30},
    )
    found = gavel.v100_fraction_cases(fig)
    jobs = gavel.jobs(fig, found["makespan"])
    pairs = gavel.by_role(jobs, "end_h")
    assert list(pairs.index) == [("all", 0.5, 0)]
    assert list(pairs.columns) == ["agnostic", "aware"]
    assert {label for label, *_ in found["jct"]} == {"V100s: 0.5 agnostic", "V100s: 0.5 aware"}


@pytest.mark.parametrize(
    ("ends_h", "unfinished", "hours"),
    [
        ([1.0, 2.2, 9.0], 0, 9.0),
        # the round of the second longest job ends at 2.5
        ([1.0, 2.2, 9.0], 1, 2.5),
        ([1.0, 2.2, 2.3], 1, 2.3),
        ([1.0, 2.0, 9.0], 1, 2.0),
    ],
)
def test_the_last_round_is_that_in_which_enough_jobs_have_ended(ends_h, unfinished, hours):
    assert gavel.end_of_last_round(pd.Series(ends_h), unfinished, 0.5) == hours


def test_on_another_cluster_no_series_ends_at_its_last_rate():
    fig = figure()
    fig.inputs["cluster"] = "4xv100,4xp100,4xk80"
    assert ("las-agnostic", 3.0, 0) in gavel.cases(fig)


@pytest.mark.parametrize(
    ("variation", "own", "text"),
    [
        ({}, {"rates": [1.0], "seeds": [5]}, []),
        ({"seed": [5, 0]}, {"rates": [1.0]}, []),
        ({"rates": [[0.6, 3.0], [2.0]]}, {"rates": [1.0]}, ["its own rates"]),
        ({"rates": [[0.6, 3.0], [2.0]]}, {"rates": [0.6, 3.0], "seeds": [5]}, []),
        (
            {"seeds": [[0], [1]], "rates": [[0.6, 3.0], [2.0]]},
            {"seeds": [5], "rates": [1.0]},
            ["its own rates and seeds"],
        ),
    ],
)
def test_a_part_with_inputs_of_its_own_is_named_in_a_variation(variation, own, text):
    fig = figure()
    fig.variation = variation
    gavel.cases(fig, "panel (b)", **own)
    assert fig._notes == [f"panel (b) keeps {words}" for words in text]


@pytest.mark.parametrize(
    ("variation", "names"),
    [
        ({}, ""),
        ({"jobs": [[30, 60], [90]]}, "jobs"),
        ({"jobs": [[30, 60], [90]], "seeds": [[0, 1], [0]]}, "jobs and seeds"),
    ],
)
def test_a_series_with_inputs_of_its_own_is_named_in_a_variation(variation, names):
    fig = figure(
        trace="gavel-static",
        jobs=[30, 60],
        seeds=[0, 1],
        series={"optimum": {"policy": "gavel-las", "rates": [90], "seeds": [0]}, "gavel-las": {}},
    )
    fig.variation = variation
    gavel.cases(fig)
    assert fig._notes == ([f"series optimum keeps its own {names}"] if names else [])


def test_draws_at_rates_of_their_own_are_named_in_a_variation():
    fig = figure(rules="paper", draws={"of": "fifo-agnostic", "rates": [6.0], "streams": 2})
    fig.variation = {"rates": [[0.6, 3.0], [6.0]]}
    gavel.draws(fig)
    assert fig._notes == ["the range of draws keeps its own rates"]


def test_a_series_with_own_seeds_needs_them():
    by_role = {"isolated": {"seeds": [0]}, "gavel-las": {}}
    fig = figure(series=by_role)
    assert {seed for _, _, seed in gavel.cases(fig)} == {0}
    fig.inputs["seeds"] = [3]
    with pytest.raises(ParamError, match=r"^seeds: \[3\] lacks 0, .*'isolated'.*; add it"):
        gavel.cases(fig)


@pytest.mark.parametrize(
    ("ours", "published", "ticks"),
    [
        ([40, 50], [32.0, 64.0, 128.0, 256.0, 512.0], [40, 128, 512]),
        ([512, 32], [], [32, 512]),
        # the published numbers are not in order
        ([30], [512.0, 32.0, 1024.0], [30, 512]),
    ],
)
def test_ticks_of_a_log_axis_do_not_overlap(ours, published, ticks):
    assert curves.log_ticks(ours, published) == ticks


def test_the_nearest_rate_is_one_that_was_simulated():
    jobs = pd.DataFrame({"x": [1.0, 2.0, 2.0, 4.0]})
    assert [gavel.nearest_rate(jobs, rate) for rate in (0.2, 2.0, 2.9, 3.0, 9.0)] == [
        *(1.0, 2.0, 2.0, 2.0, 4.0)
    ]
