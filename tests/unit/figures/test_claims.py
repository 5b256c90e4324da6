"""Verdicts follow from the claim and the value of the run, and from nothing else."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from repro.base.errors import ClaimError
from repro.figures import params
from repro.figures.claims import MISSED, REPRODUCED, Claim, figure_verdict, judge, judge_all
from repro.figures.tolerance import Accept, Relation, excess, flat, is_number, show


def claim(**changes):
    fields = {
        "id": "gain",
        "kind": "number",
        "what": "average gain",
        "published": 5.5,
        "accept": {"low": 4.2, "high": 5.8},
        "source": "section 5.2.1",
        "certainty": "paper",
    }
    fields.update(changes)
    return Claim.model_validate({k: v for k, v in fields.items() if v is not None})


@pytest.mark.parametrize(
    ("accept", "relation", "value", "outcome"),
    [
        ({"low": 4.2, "high": 5.8}, None, 5.0, "reproduced"),
        ({"low": 4.2, "high": 5.8}, None, 4.2, "reproduced"),
        ({"low": 4.2, "high": 5.8}, None, 5.8, "reproduced"),
        ({"low": 4.2, "high": 5.8}, None, 5.9, "missed"),
        ({"low": 4.2}, None, 100, "reproduced"),
        ({"high": 5.8}, None, 6, "missed"),
        ({"low": 4.2, "high": 5.8}, {"gt": 1}, 2.0, "partial"),
        ({"low": 4.2, "high": 5.8}, {"gt": 1}, 1.0, "missed"),
        ({"rel": 0.1}, None, 5.5 * 1.1, "reproduced"),
        ({"rel": 0.1}, None, 6.06, "missed"),
        ({"abs": 0.5}, None, 5.0, "reproduced"),
        ({"abs": 0.5}, None, 4.9, "missed"),
        ({"exact": True}, None, 5.5, "reproduced"),
        ({"exact": True}, None, 5.5001, "missed"),
        ({"exact": True}, None, True, "missed"),
        (None, {"gt": 1}, 1.01, "reproduced"),
        (None, {"gt": 1}, 1, "missed"),
        (None, {"ge": 1}, 1, "reproduced"),
        (None, {"lt": 1}, 1, "missed"),
        (None, {"le": 1}, 1, "reproduced"),
        (None, {"gt": 1}, [1.1, 2], "reproduced"),
        (None, {"gt": 1}, [1.1, 0.5], "missed"),
        ({"rel": 0.1}, {"gt": 6}, 5.5, "missed"),
        ({"rel": 0.1}, None, None, "not comparable"),
        ({"rel": 0.1}, None, math.inf, "missed"),
    ],
)
def test_verdict(accept, relation, value, outcome):
    assert judge(claim(accept=accept, relation=relation), value).outcome == outcome


def test_lists_are_compared_element_by_element_and_unknown_elements_passed_over():
    three = claim(published=[1.0, None, 3.0], accept={"rel": 0.05})
    assert judge(three, [1.0, 99.0, 3.1]).outcome == "reproduced"
    assert judge(three, np.array([1.0, 2.0, 3.4])).outcome == "missed"
    assert judge(three, pd.Series([1.0, 2.0, math.nan])).outcome == "missed"
    assert judge(three, [None, None, None]).outcome == "not comparable"
    with pytest.raises(ClaimError, match="claim gain: 3 published values but 2"):
        judge(three, [1.0, 2.0])
    with pytest.raises(ClaimError, match="a single value"):
        judge(three, 1.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "NaN"),
        (np.float32("nan"), "NaN"),
        ([None, math.nan], "NaN"),
        (pd.Series([math.nan, math.nan]), "NaN"),
        ([], "an empty list"),
        (pd.Series([], dtype=float), "an empty list"),
    ],
)
def test_a_value_that_could_not_be_computed_is_an_error(value, shown):
    with pytest.raises(ClaimError, match=f"claim gain: its value in the notebook is {shown}; "):
        judge(claim(published=[1.0, 2.0], accept={"rel": 0.1}), value)


@pytest.mark.parametrize(
    ("published", "value"), [(2300, "2300"), ([1.0, None, 3.0], [1.0, "2", 3.0])]
)
def test_a_text_is_no_value_of_a_published_number(published, value):
    with pytest.raises(ClaimError, match="claim gain: its value in the notebook is the text '2"):
        judge(claim(published=published, accept={"rel": 0.1}), value)


def test_each_published_value_may_have_its_own_band():
    bands = claim(published=[1, 2], accept={"low": [0.9, 1.5], "high": [1.1, 2.5]})
    assert judge(bands, [1, 2.4]).outcome == "reproduced"
    assert judge(bands, [1.2, 2.4]).outcome == "missed"


def test_a_text_claim_is_judged_by_a_bool():
    order = claim(published="YARN-CS > Best-effort > TL", accept={"exact": True})
    assert judge(order, True).outcome == "reproduced"
    assert judge(order, np.True_).outcome == "reproduced"
    assert judge(order, False).outcome == "missed"
    assert judge(order, 1).outcome == "missed"
    ends = claim(published=True, accept={"exact": True})
    assert judge(ends, True).outcome == "reproduced"
    assert judge(ends, False).outcome == "missed"


def test_a_recorded_deviation_explains_and_never_changes_the_verdict():
    plain = claim()
    excused = claim(deviation="the trace is another one")
    for value in (5.0, 1.0, None):
        assert judge(plain, value).outcome == judge(excused, value).outcome
    assert judge(excused, 1.0).row()["deviation"] == "the trace is another one"
    assert "deviation" not in judge(plain, 1.0).row()


@given(st.floats(0.1, 1e6), st.floats(0, 0.5), st.floats(-2, 2))
def test_relative_tolerance_is_symmetric_about_the_published_value(published, rel, step):
    one = claim(published=published, accept={"rel": rel})
    inside = abs(step) < 1
    outcome = judge(one, published * (1 + step * rel)).outcome
    if abs(abs(step) - 1) > 1e-3 and rel > 1e-3:
        assert (outcome == "reproduced") is inside


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": " "}, "must not be blank"),
        ({"certainty": "sure"}, "must be paper, plot"),
        ({"certainty": "plot"}, "must be paper, plot"),
        ({"accept": {"low": 1, "rel": 0.1}}, "exactly one"),
        ({"accept": {}}, "exactly one"),
        ({"accept": {"exact": False}}, "exact"),
        ({"accept": {"rel": -0.1}}, "0 or more"),
        ({"relation": {"gt": 1, "lt": 2}}, "exactly one"),
        ({"accept": {"tol": 1}}, "Extra inputs"),
        ({"accept": {"low": "4"}}, "valid number"),
        ({"published": {"a": 1}}, "must be a number"),
        ({"published": "> 1", "accept": {"rel": 0.1}}, "published number instead of '> 1'"),
        ({"published": [1.0, "a"], "accept": {"abs": 0.1}}, "published number instead of 'a'"),
        ({"published": [1.0, "a"], "accept": {"low": 0.1}}, "published number instead of 'a'"),
        ({"published": True, "accept": {"rel": 0.1}}, "published number instead of True"),
        ({"published": True, "accept": None, "relation": {"gt": 0}}, "needs accept: exact"),
        ({"published": []}, "has no value"),
        ({"published": [[], []]}, "has no value"),
        ({"published": [None, None]}, "has no value"),
        ({"published": math.nan}, "nan is no number to compare with"),
        ({"published": [1, -math.inf]}, "-inf is no number to compare with"),
        ({"published": 10**400}, "is no number to compare with"),
        ({"published": " "}, "must not be blank"),
        ({"published": [[1, [2]]]}, "mixes lists and single values"),
        ({"published": [[[[1]]]]}, "more than 3 levels"),
        ({"accept": {"rel": math.inf}}, "inf is no number to compare with"),
        ({"accept": {"rel": math.nan}}, "nan is no number to compare with"),
        ({"accept": {"rel": 1}}, "is 1, which is 100 %; must be 0 or more and below 1"),
        ({"accept": {"rel": True}}, "valid number"),
        ({"accept": {"abs": math.inf}}, "inf is no number to compare with"),
        ({"accept": {"abs": -1}}, "0 or more"),
        ({"accept": {"low": -math.inf, "high": math.inf}}, "inf is no number to compare with"),
        ({"accept": {"high": 1e301}}, "at most ±1e\\+300"),
        ({"accept": {"low": 5, "high": 1}}, "low 5 is above high 1"),
        ({"accept": {"low": [1, 2]}}, "2 bounds for 1 published"),
        ({"accept": {"low": []}}, "0 bounds for 1 published"),
        ({"published": [1, 2, 3], "accept": {"low": [0, 1], "high": 4}}, "2 bounds for 3"),
        ({"published": [1, 2], "accept": {"low": [0, 1], "high": [4]}}, "lists of one length"),
        ({"published": [1, 2], "accept": {"low": [0, 1], "high": [4, 0]}}, "low 1 is above high 0"),
        ({"published": [1, 2], "accept": {"low": [0, math.nan]}}, "nan is no number"),
        ({"relation": {"gt": math.nan}}, "nan is no number to compare with"),
        ({"relation": {"lt": math.inf}}, "inf is no number to compare with"),
        ({"relation": {"gt": True}}, "valid number"),
        ({"deviation": " "}, "must not be blank"),
    ],
)
def test_malformed_claims_are_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        claim(**change)


@pytest.mark.parametrize("missing", ["source", "certainty"])
def test_a_claim_needs_source_and_certainty(missing):
    with pytest.raises(ValidationError, match=missing):
        claim(**{missing: None})


def test_a_claim_that_nothing_could_fail_is_refused():
    with pytest.raises(ValidationError, match="needs accept or relation"):
        claim(accept=None)


def wrong_values(one):
    """Return values of the published shape, one of which at least must miss the claim."""
    published = list(flat(one.published))
    if any(is_number(item) for item in published) or one.accept is None or not one.accept.exact:
        # Zero, too: a claim about a size that nothing at all fulfils says nothing.
        wrong = [0.0] if sized(one) else [-1.5e308, 0.0, 1.5e308]
    else:
        wrong = [True, False, "something else"]
    return [[item] * len(published) if isinstance(one.published, list) else item for item in wrong]


def sized(one):
    return one.accept is not None and one.accept.rel is not None and any(flat(one.published))


def can_fail(one):
    if one.relation is not None:
        bound = Claim.model_validate(
            {**claim().model_dump(), "published": "x", "accept": None, "relation": one.relation}
        )
        assert any(judge(bound, value).outcome == MISSED for value in (-1.5e308, 0.0, 1.5e308))
    if one.accept is not None:
        outcomes = [judge(one, value).outcome for value in wrong_values(one)]
        return any(outcome != REPRODUCED for outcome in outcomes)
    return True


numbers = st.one_of(
    st.floats(-10, 10), st.floats(), st.integers(-5, 5), st.booleans(), st.just(1.0), st.just(10.0)
)
leaves = st.one_of(numbers, numbers, st.none(), st.sampled_from(["> 1", "x", ""]))
bounds = st.one_of(st.none(), numbers, numbers, st.lists(numbers, max_size=3))


@given(
    published=st.one_of(
        leaves, st.lists(leaves, max_size=3), st.lists(st.lists(leaves, max_size=2))
    ),
    accept=st.one_of(
        st.none(),
        st.fixed_dictionaries({"rel": numbers}),
        st.fixed_dictionaries({"abs": numbers}),
        st.fixed_dictionaries({}, optional={"low": bounds, "high": bounds}),
        st.just({"exact": True}),
    ),
    relation=st.one_of(
        st.none(), st.dictionaries(st.sampled_from(["gt", "ge", "lt", "le"]), numbers, max_size=1)
    ),
)
def test_some_value_fails_every_claim_that_loads(published, accept, relation):
    fields = {**claim().model_dump(), "published": published, "accept": accept}
    try:
        one = Claim.model_validate({**fields, "relation": relation})
    except ValidationError:
        return
    assert can_fail(one)


def test_some_value_fails_every_claim_of_the_project():
    claims = [one for entry in params.discover() for one in entry.load().claims]
    assert len(claims) > 300
    # a claim about a series judges each of its points as one with that number would be
    bare = {"series": None, "published": [1.0]}
    judged = [one if one.series is None else one.model_copy(update=bare) for one in claims]
    assert [one.id for one in judged if not can_fail(one)] == []


@pytest.mark.parametrize("certainty", ["plot ±0.15", "plot ±10 %", "artifact run", "derived"])
def test_certainties(certainty):
    assert claim(certainty=certainty).certainty == certainty


def test_values_and_claims_must_match():
    with pytest.raises(ClaimError, match="no value for claim gain; value for unknown claim gian"):
        judge_all([claim()], {"gian": 5})
    with pytest.raises(ClaimError, match=r"claim gain: a value is a dict"):
        judge_all([claim()], {"gain": {}})
    assert [v.outcome for v in judge_all([claim()], {"gain": np.float64(5)})] == ["reproduced"]


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([], None),
        ([("number", "reproduced"), ("number", "missed"), ("order", "partial")], "missed"),
        ([("number", "reproduced"), ("check", "reproduced")], "reproduced"),
        ([("check", "reproduced"), ("example", "reproduced")], "own checks only"),
        ([("check", "missed"), ("number", "reproduced")], "missed"),
    ],
)
def test_own_checks_count_only_where_they_fail(rows, verdict):
    certainty = {"example": "derived", "check": "derived"}
    found = figure_verdict(
        {"kind": kind, "verdict": outcome, "certainty": certainty.get(kind, "paper")}
        for kind, outcome in rows
    )
    assert found == verdict


def test_bounds_may_be_one_number():
    accept = Accept(low=5.0, high=5.0)
    assert accept.text() == "5 … 5"


@pytest.mark.parametrize(
    ("accept", "distances"),
    [
        (Accept(low=4.0, high=6.0), [-1.0, 2.0, 1.0]),
        (Accept(low=4.0), [-1.0, -4.0, 1.0]),
        (Accept(high=6.0), [-1.0, 2.0, -3.0]),
        (Accept(low=[5.0, 9.0, 3.0]), [0.0, 1.0, 0.0]),
        (Accept(abs=0.5), [1.0, 4.0, 1.0]),
        (Accept(rel=0.5), [0.25, 1.0, 0.25]),
        (None, [4.0, 1.0, 6.0]),
    ],
)
def test_distances_from_a_tolerance(accept, distances):
    relation = Relation(gt=9.0)
    assert excess(accept, relation, [4.0, 4.0, 4.0], [5.0, 8.0, 3.0]) == distances


@pytest.mark.parametrize("name", ["lt", "le"])
def test_distances_from_an_upper_bound(name):
    assert excess(None, Relation(**{name: 9.0}), [4.0, 4.0], [5.0, 11.0]) == [-4.0, 2.0]


def test_texts():
    assert Accept(low=4.2, high=5.8).text() == "4.2 … 5.8"
    assert Accept(low=4.2).text() == "≥ 4.2"
    assert Accept(high=5.8).text() == "≤ 5.8"
    assert Accept(rel=0.05).text() == "±5 %"
    assert Relation(gt=1).text() == "> 1"
    assert claim(relation={"gt": 1}).tolerance() == "4.2 … 5.8; > 1"
    assert [show(x) for x in (True, False, None, [1, 2.5])] == ["yes", "no", "–", "1, 2.5"]
    assert [show(x) for x in (1.5e-5, 1.5e-6, 123456789.0)] == [
        "0.000015",
        "1.500e-06",
        "123500000",
    ]
    assert [show(x) for x in (0.0, 1e-12, 123456.7, 5.50, 1e300, 7, math.inf)] == [
        "0",
        "1.000e-12",
        "123500",
        "5.5",
        "1.000e+300",
        "7",
        "inf",
    ]


@pytest.mark.parametrize("entry", params.discover(), ids=lambda entry: entry.id)
def test_the_text_of_a_claim_stands_alone(entry):
    for claim in entry.load().claims:
        words = claim.what.split()
        assert len(words) <= 12, claim.what
        assert not re.match(r"(?i)(the same|those|likewise|the others?)\b", claim.what), claim.what
        assert " the same" not in claim.what or claim.kind == "check", claim.what


@pytest.mark.parametrize("entry", params.discover(), ids=lambda entry: entry.id)
def test_no_number_is_a_distance_to_zero(entry):
    zeros = {
        claim.id
        for claim in entry.load().claims
        if claim.kind == "number"
        and claim.series is None
        and not any(item for item in flat(claim.published))
    }
    # the paper itself says that jobs of this size have no error
    assert zeros <= ({"small_exact"} if entry.id == "pcs/fig11a_size_and_error" else set())
