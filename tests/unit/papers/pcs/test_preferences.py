"""Preferences: what is refused, what a front is, what stops early, what resumes."""

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import ParamError, TraceError
from repro.figures import sweep
from repro.figures.sweep import Case
from repro.papers.pcs import preferences
from repro.papers.pcs.encodings import encoding
from repro.papers.pcs.fronts import Method, nondominated
from repro.papers.pcs.objectives import Objective, parse
from repro.papers.pcs.preferences import CONFIGURATION, Judged, Preferences, Searching
from repro.perf.speedup import SpeedUp
from repro.policies.pcs.pcs import class_thresholds
from repro.trace import synth

BOTH = [("jct", "avg"), ("pred_err", "avg")]
SMALL = Method("spea2", budget=24, population=8, offspring=8)


@pytest.fixture(scope="module")
def trace():
    return synth.make("pcs-workload", 3, jobs=200, load=1.4, num_gpus=16)


@pytest.fixture
def pcs(trace):
    found = Preferences(trace, "1x16", train=160, workers=1)
    found.set_preference(BOTH)
    return found


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ([], "no objective; give at least one"),
        ([("latency", "avg")], "no metric 'latency'; accepted: jct, pred_err, unfairness"),
        ([("jct", 101)], "the measure is 101; give avg or a percentile, 0 to 100"),
        ([("jct", -1)], "percentile, 0 to 100"),
        ([("jct", float("nan"))], "percentile, 0 to 100"),
        ([("jct", "median")], "give avg or a percentile"),
        ([("jct", "avg"), ("jct", "avg", 5.0)], "names avg_jct_s twice"),
        ([("jct", "avg", 0)], "the limit is 0; give a number above 0"),
        (["jct"], "an objective is 'jct'; give"),
        ([("jct", True)], "the measure is True; give avg or a percentile"),
        ([("jct", "avg", "20")], "the limit is '20'; give a number above 0"),
        ([("jct", "avg", True)], "the limit is True; give a number above 0"),
        ([(["jct"], "avg")], r"no metric \['jct'\]; accepted: jct"),
        (5, r"a preference is 5; give a list of \(metric, measure\)"),
    ],
)
def test_a_bad_preference_is_one_line(pcs, wishes, said):
    with pytest.raises(ParamError, match=said):
        pcs.set_preference(wishes)


def test_names_have_units():
    names = [
        one.name for one in parse([("unfairness", 50), ("jct", "avg"), Objective("jct", 99.9)])
    ]
    assert names == ["p50_unfairness_pct", "avg_jct_s", "p99.9_jct_s"]


@pytest.mark.parametrize("train", [1, 0, 201])
def test_one_job_is_no_training_set(trace, train):
    with pytest.raises(TraceError, match=f"train is {train}; give 2 to 200, as the trace has 200"):
        Preferences(trace, "1x16", train=train)


@pytest.mark.parametrize("train", [None, 1])
def test_a_trace_of_one_job_is_refused(trace, train):
    with pytest.raises(TraceError, match="has 1 job; a search needs at least 2"):
        Preferences(trace.head(1), "1x16", train=train)


def test_a_search_needs_a_preference(trace):
    with pytest.raises(ParamError, match="call set_preference first"):
        Preferences(trace, "1x16").pareto_front(SMALL)


@pytest.mark.parametrize(
    ("jobs", "options", "reason"),
    [
        ("gavel-single", {}, "the run distinguishes GPU types"),
        ("gavel-single", {"policy": "themis", "parameters": {"lease": (9, 99)}}, "GPU types"),
        ("muri-like", {"rules": "muri"}, "starts cost time"),
    ],
)
def test_unfairness_is_refused_with_the_reason(jobs, options, reason):
    options = {"policy": "pcs", "rules": "paper", "workers": 1, **options}
    uneven = Preferences(synth.make(jobs, 3, jobs=20), "1x8:v100,1x8:k80", **options)
    uneven.set_preference([("jct", "avg"), ("unfairness", "avg")])
    refused = f"{options['policy']}' have no unfairness here: .*{reason}; prefer jct, preemptions"
    with pytest.raises(ParamError, match=refused):
        uneven.search(SMALL)
    with pytest.raises(ParamError, match=refused):
        uneven.evaluate(pd.DataFrame(columns=list(uneven.parameters)))


def test_objectives_are_those_of_the_records(pcs, trace):
    pcs.set_preference([*BOTH, ("unfairness", 90), ("jct", 99)])
    policy = pcs.set_wfq_config({"thresholds": (500.0,), "weights": (0.9, 0.1)})
    assert pcs.policy is policy
    front = pd.DataFrame([{name: getattr(policy, name) for name in CONFIGURATION}])
    found = pcs.evaluate(front, trace).iloc[0]
    result = simulate(trace, "1x16", policy, rules="pcs")
    summary = result.summary()
    jobs = result.jobs
    assert found["avg_jct_s"] == pytest.approx(summary["avg_jct"])
    assert found["avg_pred_err_pct"] == pytest.approx(summary["avg_pred_err"])
    assert found["p99_jct_s"] == pytest.approx(np.percentile(jobs["jct"], 99))
    unfair = np.maximum(0, 100 * (jobs["jct"] / jobs["fair_jct"] - 1))
    assert found["p90_unfairness_pct"] == pytest.approx(np.percentile(unfair, 90))


def test_a_front_is_searched_on_some_jobs_and_tested_on_others(pcs):
    front = pcs.pareto_front(SMALL)
    values = front[["avg_jct_s", "avg_pred_err_pct"]].to_numpy()
    assert nondominated(values).all() and len(front) > 1
    assert (np.diff(values[:, 0]) > 0).all() and (np.diff(values[:, 1]) < 0).all()
    again = pcs.evaluate(front, pcs.train)
    pd.testing.assert_frame_equal(again, front)
    tested = pcs.evaluate(front)
    assert not np.allclose(tested["avg_jct_s"], front["avg_jct_s"])
    whole = Preferences(pcs.train, "1x16", workers=1)
    whole.set_preference(BOTH)
    with pytest.raises(TraceError, match="no jobs are left to test on"):
        whole.evaluate(front)


def test_limits_choose_and_those_that_nothing_meets_are_told(pcs):
    front = pcs.pareto_front(SMALL)
    limit = float(front["avg_jct_s"].median())
    pcs.set_preference([("jct", "avg", limit), ("pred_err", "avg")])
    assert (pcs.pareto_front(SMALL)["avg_jct_s"] <= limit).all()
    pcs.set_preference([("jct", "avg", 1.0), ("pred_err", "avg", 1.0)])
    with pytest.raises(ParamError, match=r"within all limits \(avg_jct_s 1, avg_pred_err_pct 1\)"):
        pcs.pareto_front(SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spea2", "random"])
def test_stopping_early_changes_no_front(pcs, monkeypatch, name):
    how = Method(name, budget=40, population=8, offspring=16)
    lazy = [pcs.search(how, seed=seed) for seed in range(2)]
    # generations depend on all values but those of the last one
    assert name == "spea2" or not pd.concat(lazy)["complete"].all()
    real = preferences.Judged
    monkeypatch.setattr(preferences, "Judged", lambda objectives, front: real(objectives))
    for seed, one in enumerate(lazy):
        whole = pcs.search(how, seed=seed)
        assert whole["complete"].all()
        pd.testing.assert_frame_equal(one[one["front"]], whole[whole["front"]])


def test_jobs_may_prefer_different_things(trace):
    ids = ["fast" if place % 2 else "sure" for place in range(len(trace))]
    mixed = Preferences(trace.assign(prefers=ids), "1x16", workers=1)
    mixed.set_preference([Objective("jct", among="fast"), Objective("pred_err", 90, among="sure")])
    front = mixed.pareto_front(SMALL)
    assert list(front)[:2] == ["avg_jct_fast_s", "p90_pred_err_sure_pct"]
    mixed.set_preference([Objective("jct", among="cheap")])
    with pytest.raises(ParamError, match="no job prefers 'cheap'"):
        mixed.pareto_front(SMALL)


def test_a_search_that_was_killed_goes_on_to_the_same_front(trace, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))

    def front(run=None):
        found = Preferences(trace, "1x16", workers=1, run=run)
        found.set_preference(BOTH)
        return found.pareto_front(SMALL)

    done = []

    def dies(cases):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(len(cases))
        return sweep.run([one.resolved() for one in cases], 1)

    with pytest.raises(KeyboardInterrupt):
        front(dies)
    computed = []
    known = sweep._computed
    monkeypatch.setattr(sweep, "_computed", lambda case: computed.append(case) or known(case))
    resumed = front()
    first = len(computed)
    assert 0 < first <= 24 - sum(done)
    pd.testing.assert_frame_equal(front(), resumed)
    assert len(computed) == first


def test_configurations_of_both_encodings(trace):
    work = trace["service"].to_numpy(float)
    rng = np.random.default_rng(1)
    for heuristics in (True, False):
        how = encoding(work, heuristics=heuristics, linear=False)
        assert len(how.low) == (4 if heuristics else 13)
        decoded = [
            how.decode(point) for point in rng.uniform(how.low, how.high, (200, len(how.low)))
        ]
        possible = [one for one in decoded if one]
        assert len(possible) > 50
        for one in possible:
            assert len(one["weights"]) == len(one["thresholds"]) + 1
            assert sum(one["weights"]) == pytest.approx(1)
            assert 0 <= one["zeta_min"] <= 1 and 0.01 <= one["delta"] <= 0.9
    how = encoding(work, heuristics=False, linear=True)
    assert len(how.low) == 11
    one = how.decode(np.array([2.9, 500, 90, 7, 7, 7, 0.3, 0.1, 0, 0, 0]))
    assert one["thresholds"] == (90.0,) and one["weights"] == pytest.approx((0.75, 0.25))
    # a class without weight is not possible
    assert how.decode(np.array([2.9, 500, 90, 7, 7, 7, 0.3, 0.0, 0, 0, 0])) is None


def test_thresholds_that_round_to_0_or_to_the_same_second_are_not_possible():
    for sizes, bounds in (([0.4, 2.0], [0.0]), ([1.1, 1.5, 1.6, 1.9], [1.0, 1.0])):
        work = np.array([*sizes, 5.0, 400.0])
        assert class_thresholds(np.array(sizes), 0.001).tolist() == bounds
        code = encoding(work, heuristics=True, linear=True)
        assert code.decode(np.array([0.001, 0.1])) is None
        assert code.decode(np.array([1.5, 0.1]))["thresholds"] == (5.0,)


def test_without_curves_the_search_has_two_numbers(trace):
    found = Preferences(trace, "1x16", workers=1)
    found.set_preference(BOTH)
    assert set(found.search(SMALL)["zeta_min"].dropna()) == {0.01}


def test_the_sizes_searched_are_those_that_run(trace):
    longer = trace.assign(duration=1000 * trace["duration"])
    fronts = []
    for jobs in (longer, longer.drop(columns="service")):
        found = Preferences(jobs, "1x16", workers=1)
        found.set_preference([("jct", "avg")])
        fronts.append(found.pareto_front(Method("random", budget=8, population=4)))
    assert fronts[0].equals(fronts[1])


def test_a_measure_without_predictions_makes_none(trace):
    case = Case(trace, "1x16", "pcs", "pcs").resolved()
    seen = []
    real = sweep.simulated

    def simulated(case, trace, **more):
        seen.append(more["predict"])
        return real(case, trace, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "simulated", simulated)
        Judged(parse([("jct", "avg")]))(case)
        Judged(parse(BOTH), ((1e9, 1e9),))(case)
    assert seen == [0, 0, 25, 200]


def test_the_front_of_a_list_of_configurations_is_that_of_all(pcs, trace):
    table = pcs.search(Method("random", budget=12, population=12))
    possible = table[np.isfinite(table["avg_jct_s"])]
    configurations = [
        dict(zip(CONFIGURATION, row, strict=True))
        for row in possible[list(CONFIGURATION)].itertuples(index=False)
    ]
    front = pcs.front_of(configurations)
    expected = possible.loc[possible["front"], ["avg_jct_s", "avg_pred_err_pct"]].to_numpy()
    assert np.array_equal(np.unique(front, axis=0), np.unique(expected, axis=0))


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({}, "no parameter of the search; give thresholds, weights, zeta_min, delta"),
        (pd.Series({"avg_jct_s": 3.0}), "'avg_jct_s'"),
        ({"threshold": (500.0,), "weights": (0.9, 0.1)}, "'threshold'; did you mean 'thresholds'"),
        (5, r"a configuration is an int; give a row of pareto_front\(\), such as"),
        (None, "a configuration is None; give a row"),
        (pd.DataFrame(), "a configuration is a DataFrame; give a row"),
    ],
)
def test_a_configuration_that_chooses_nothing_is_refused(pcs, configuration, message):
    with pytest.raises(ParamError, match=message):
        pcs.set_wfq_config(configuration)
    assert pcs.policy is None


def test_an_evaluation_needs_a_preference(trace):
    front = pd.DataFrame(
        [{"thresholds": (500.0,), "weights": (0.9, 0.1), "zeta_min": 0.01, "delta": 0.5}]
    )
    untold = Preferences(trace, "1x16", train=160, workers=1)
    with pytest.raises(ParamError, match="call set_preference first"):
        untold.evaluate(front)
    with pytest.raises(ParamError, match="call set_preference first"):
        untold.front_of(front.to_dict("records"))


def test_an_evaluation_needs_all_parameters(pcs):
    front = pd.DataFrame([{"thresholds": (500.0,), "weights": (0.9, 0.1)}])
    with pytest.raises(ParamError, match="the front has no column zeta_min, delta"):
        pcs.evaluate(front)
    with pytest.raises(ParamError, match=r"the front is a Series; give .* front.iloc\[\[0\]\]"):
        pcs.evaluate(front.iloc[0])


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("tabu", "no search 'tabu'; accepted: spea2"),
        (5, "a search method is 5; give a Method or its name: spea2"),
    ],
)
def test_a_method_is_a_method_or_its_name(pcs, method, says):
    with pytest.raises(ParamError, match=says):
        pcs.pareto_front(method)


def test_a_front_without_rows_has_no_values(pcs):
    tested = pcs.evaluate(pd.DataFrame(columns=list(CONFIGURATION)))
    assert tested.shape == (0, 6)
    assert list(tested)[-2:] == ["avg_jct_s", "avg_pred_err_pct"]


def test_the_first_jobs_are_those_that_arrive_first(trace):
    forward = Preferences(trace, "1x16", train=160)
    backward = Preferences(trace[::-1], "1x16", train=160)
    assert sorted(backward.train["job_id"]) == sorted(forward.train["job_id"])
    assert backward.test["submit_time"].min() >= backward.train["submit_time"].max()
    pd.testing.assert_frame_equal(forward.train, trace.head(160))


@pytest.mark.parametrize("train", [20.0, "20", True])
def test_a_number_of_jobs_is_whole(trace, train):
    with pytest.raises(ParamError, match="give a whole number of jobs"):
        Preferences(trace, "1x16", train=train)


def test_a_search_in_a_sweep_takes_the_performance_model_and_no_other_setting(trace):
    search = Searching(parse([("jct", "avg")]), Method("random", 4, 4))
    jobs = trace.head(40).drop(columns="service").assign(model="chatbot", num_gpus=4)

    def table(**settings):
        return search(Case(jobs, "1x16", "pcs", "pcs", settings=settings))["table"]

    assert not table().equals(table(perf=SpeedUp({"chatbot": (1.0, 1.1, 1.2, 1.2)})))
    with pytest.raises(ParamError, match="a search has no setting 'overhead'"):
        table(overhead=100)
