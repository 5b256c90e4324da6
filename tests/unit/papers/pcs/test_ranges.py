"""Ranges of any policy's parameters: what they accept, what a point of the box means."""

from __future__ import annotations

import numpy as np
import pytest

from repro import make, simulate
from repro.base.errors import InputWarning, ParamError
from repro.model.policy import policies
from repro.papers.pcs.fronts import Method, nondominated
from repro.papers.pcs.preferences import Preferences
from repro.papers.pcs.ranges import Range, ranges_encoding, ranges_of
from repro.trace import synth

TIRESIAS = {"promote_knob": (0.5, 4), "thresholds": "1000:1e6:log:1-3"}
SMALL = Method("random", budget=12, population=6)


@pytest.fixture(scope="module")
def trace():
    jobs = synth.make("philly-like", 3, jobs=80, load=2.0, num_gpus=16)
    return jobs.assign(num_gpus=np.minimum(jobs["num_gpus"], 16))


def searched(trace, policy="tiresias-l", parameters=TIRESIAS, **more):
    found = Preferences(trace, "2x8", policy=policy, parameters=parameters, workers=1, **more)
    found.set_preference([("jct", "avg"), ("preemptions", "avg")])
    return found


def test_a_front_of_tiresias_holds_what_simulations_of_its_rows_give(trace):
    tiresias = searched(trace, train=60)
    table = tiresias.search(SMALL)
    assert table["complete"].all() and len(table) == 12
    assert table["thresholds"].map(len).between(1, 3).all()
    assert table["promote_knob"].between(0.5, 4).all()
    front = tiresias.pareto_front(SMALL)
    assert nondominated(front[["avg_jct_s", "avg_preemptions"]].to_numpy()).all()
    for _, row in front.iterrows():
        policy = tiresias.set_wfq_config(row)
        settings = {name: row[name] for name in TIRESIAS}
        assert policy == make("tiresias-l", **settings)
        jobs = simulate(trace.head(60), "2x8", policy).jobs
        assert row["avg_jct_s"] == jobs["jct"].mean()
        assert row["avg_preemptions"] == jobs["preemptions"].mean()
    tested = tiresias.evaluate(front)
    assert len(tested) == len(front) and not tested.equals(front)


def test_parameters_that_are_not_searched_keep_their_values(trace):
    given = make("tiresias-l", thresholds=(7000.0,), history_ties=True)
    tiresias = searched(trace, given, {"promote_knob": (1, 2)})
    policy = tiresias.set_wfq_config({"promote_knob": 1.5})
    assert policy == make("tiresias-l", thresholds=(7000.0,), history_ties=True, promote_knob=1.5)


def test_rules_fill_what_is_not_searched(trace):
    tiresias = searched(trace, parameters={"promote_knob": (1, 2)}, rules="tiresias")
    assert tiresias.set_wfq_config({"promote_knob": 1.5}) == make(
        "tiresias-l", "tiresias", promote_knob=1.5
    )


def test_a_list_in_ascending_order_has_as_many_numbers_as_its_gene_says():
    code = ranges_encoding(policies["tiresias-l"], ranges_of(policies["tiresias-l"], TIRESIAS))
    assert code.low.tolist() == pytest.approx([0.5, 1.0, *[np.log(1000)] * 3])
    assert code.high.tolist() == pytest.approx([4.0, 4.0, *[np.log(1e6)] * 3])
    logs = np.log([9e5, 2000.0, 5000.0])
    configuration = code.decode(np.array([2.0, 2.99, *logs]))
    assert configuration["promote_knob"] == 2.0
    assert configuration["thresholds"] == pytest.approx((2000.0, 9e5))
    # three equal thresholds are in no ascending order
    assert code.decode(code.high) is None


def test_whole_numbers_stay_whole_and_all_are_reached():
    cls = policies["muri-s"]
    code = ranges_encoding(cls, ranges_of(cls, {"max_group": (2, 4)}))
    points = np.linspace(code.low[0], code.high[0], 60)
    values = [code.decode(np.array([point]))["max_group"] for point in points]
    assert set(values) == {2, 3, 4} and all(isinstance(value, int) for value in values)
    assert min(values.count(2), values.count(4)) >= 15


def test_a_point_that_the_policy_refuses_is_no_configuration():
    cls = policies["tiresias-l"]
    code = ranges_encoding(cls, ranges_of(cls, {"thresholds": [(100, 900), (500, 1000)]}))
    assert code.decode(np.array([200.0, 600.0])) == {"thresholds": (200.0, 600.0)}
    assert code.decode(np.array([800.0, 600.0])) is None


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        (None, r"give the parameters to search and their ranges, such as .*promote_knob"),
        ({}, "no parameter to search"),
        (["promote_knob"], r"to search are \['promote_knob'\]; give the range of each by its name"),
        ({"knob": (1, 2)}, "has no parameter 'knob'"),
        ({"promote_knob": (0, 2)}, "promote_knob is 0; give a number above 0"),
        ({"promote_knob": (2, 1)}, "promote_knob: a range is 2 to 1; give two finite numbers"),
        ({"promote_knob": (1, float("inf"))}, "a range is 1 to inf"),
        ({"promote_knob": 3}, r"a range is 3; give \(low, high\)"),
        ({"promote_knob": "1-3"}, "a range is '1-3'; give LOW:HIGH"),
        ({"promote_knob": "1:3:2:4"}, "a range is '1:3:2:4'; give LOW:HIGH"),
        ({"thresholds": "1:3:0-2"}, "a list has 0 to 2 numbers; give 1 to 50"),
        ({"thresholds": "0:3:log"}, "begins at 0; give a number above 0"),
        ({"promote_knob": "1:3:1-2"}, r"promote_knob is \(1,\); give a number above 0"),
    ],
)
def test_bad_ranges_are_one_line(trace, parameters, says):
    with pytest.raises(ParamError, match=says) as caught:
        Preferences(trace, "2x8", policy="tiresias-l", parameters=parameters)
    assert "\n" not in str(caught.value)


def test_unfairness_is_refused_before_the_search(trace):
    tiresias = searched(trace)
    tiresias.set_preference([("jct", "avg"), ("unfairness", "avg")])
    with pytest.raises(ParamError, match=r"no unfairness here: policy .* no compiled division"):
        tiresias.search(SMALL)


def test_any_policy_is_searched_for_predictability(trace):
    tiresias = searched(trace)
    tiresias.set_preference([("jct", "avg"), ("pred_err", "avg")])
    table = tiresias.search(SMALL)
    assert np.isfinite(table["avg_pred_err_pct"]).all()


def test_a_policy_that_predicts_has_all_metrics():
    trace = synth.make("pcs-workload", 3, jobs=40, load=1.4, num_gpus=16)
    elastic = Preferences(
        trace,
        "1x16",
        policy="themis",
        parameters={"lease": (100, 2000)},
        rules="pcs",
        workers=1,
    )
    elastic.set_preference([("jct", "avg"), ("pred_err", "avg"), ("unfairness", 90)])
    table = elastic.search(Method("random", budget=4, population=4))
    values = table[["avg_jct_s", "avg_pred_err_pct", "p90_unfairness_pct"]].to_numpy()
    assert np.isfinite(values).all()


def test_a_single_parameter_of_pcs_can_be_searched_alone():
    trace = synth.make("pcs-workload", 3, jobs=40, load=1.4, num_gpus=16)
    base = make("pcs", "pcs", thresholds=(500.0,), weights=(0.8, 0.2))
    pcs = Preferences(trace, "1x16", policy=base, parameters={"zeta_min": (0, 1)}, workers=1)
    assert pcs.rules == "pcs"
    pcs.set_preference([("jct", "avg")])
    front = pcs.pareto_front(Method("random", budget=4, population=4))
    assert pcs.set_wfq_config(front.iloc[0]).thresholds == (500.0,)
    with pytest.raises(ParamError, match="without heuristics"):
        pcs.search(SMALL, heuristics=False)


def test_configurations_of_which_none_is_accepted_are_one_line(trace):
    tiresias = searched(trace, parameters={"thresholds": [(900, 1000), (100, 200)]})
    with pytest.raises(ParamError, match="'tiresias-l' accepts none of the 12 configurations"):
        tiresias.pareto_front(SMALL)


def test_an_alias_is_named(trace):
    with pytest.warns(InputWarning, match="dominant-resource-fairness: runs drf"):
        Preferences(
            trace,
            "2x8",
            policy="dominant-resource-fairness",
            parameters={"cpus_per_gpu": (1, 4)},
        )


def test_a_range_of_equal_ends_is_one_value():
    assert Range.of((3, 3)).value(7.0) == 3.0
    code = ranges_encoding(policies["muri-s"], {"max_group": Range(3.0, 3.0)})
    assert code.decode(code.low) == {"max_group": 3}


def test_an_empty_list_of_ranges_is_refused():
    with pytest.raises(ParamError, match=r"^thresholds: no range; give one for each number"):
        ranges_of(policies["tiresias-l"], {"thresholds": []})
