"""Points: published numbers beside ours, and claims judged by the points of a series."""

from __future__ import annotations

import pandas as pd
import pytest

from repro.base.errors import ClaimError
from repro.figures.claims import Claim, absent_packages, judge, judge_all, points_of
from repro.figures.points import (
    COLUMNS,
    Point,
    point_table,
    read_points,
    thinned,
    within_distances,
)

FACTS = {"quantity": "average JCT", "unit": "h", "certainty": "artifact", "data": "public"}


def curve(*ours):
    return pd.DataFrame({"series": "LAS", "x": [1.0, 2.0], "published": [10.0, 20.0], "ours": ours})


def claim(**changes):
    fields = {"id": "las", "kind": "number", "what": "LAS", "source": "Fig 8", "certainty": "paper"}
    return Claim.model_validate({**fields, **changes})


def test_a_row_has_all_columns_and_a_signed_distance():
    points = read_points(curve(9.0, None), rules="gavel", **FACTS)
    assert [tuple(point.row()) for point in points] == [COLUMNS] * 2
    assert points[0].row()["distance"] == pytest.approx(-0.1)
    assert points[1].row()["ours"] is None and points[1].row()["distance"] is None
    again = read_points(pd.DataFrame([point.row() for point in points]))
    assert again == points


def test_points_that_stand_aside_are_shown_and_not_counted():
    frame = curve(10.0, 40.0).assign(aside=[None, True])
    first, second = read_points(frame, rules="gavel", **FACTS)
    assert "aside" not in first.row() and second.row()["aside"] is True
    rows = [first.row(), second.row()]
    assert read_points(pd.DataFrame(rows)) == [first, second]
    assert within_distances(rows) == {"judged": 1, "within": {"1 %": 1.0, "2 %": 1.0, "10 %": 1.0}}


def test_a_number_that_a_model_was_fitted_to_is_neither_counted_nor_judged():
    frame = curve(10.0, 40.0).assign(fitted=[None, True], fitted_on=["Fig 5", None])
    first, second = read_points(frame, rules="gavel", **FACTS)
    rows = [first.row(), second.row()]
    assert rows[0]["fitted_on"] == "Fig 5" and "fitted" not in rows[0]
    assert rows[1]["fitted"] is True and "fitted_on" not in rows[1]
    assert within_distances(rows)["judged"] == 1
    near = claim(series="LAS", accept={"rel": 0.05})
    assert judge_all([near], {}, [first, second])[0].outcome == "reproduced"


def test_inputs_that_nobody_knows_are_those_of_the_figure_or_of_the_claim():
    las = claim(published=2.0, accept={"rel": 0.1})
    fifo = claim(id="fifo", published=3.0, accept={"rel": 0.1}, unknown="sample")
    verdicts = judge_all([las, fifo], {"las": 2.0, "fifo": 3.0})
    points = points_of(verdicts, data="public", rules="gavel", unknown="workload")
    assert [point.unknown for point in points] == ["workload", "sample"]
    assert [point.row()["unknown"] for point in points] == ["workload", "sample"]


@pytest.mark.parametrize("length", [1, 2, 10, 11, 12, 19, 58, 1000])
def test_a_thinned_curve_keeps_its_ends(length):
    both = pd.DataFrame({"x": [*range(length), *range(3)]}).assign(
        series=["long"] * length + ["short"] * 3
    )
    kept = thinned(both, ["series"])
    long = kept.loc[kept["series"] == "long", "x"].tolist()
    assert len(long) == min(length, 11) and {0, length - 1} <= {*long} and long == sorted(long)
    assert (kept["series"] == "short").sum() == 3


def test_beside_points_derived_claims_are_no_further_numbers():
    gain = claim(published=2.0, accept={"rel": 0.1}, certainty="derived")
    (verdict,) = judge_all([gain], {"las": 2.1})
    facts = {"data": "public", "rules": "gavel"}
    given = read_points(curve(10.0, 20.0), rules="gavel", **FACTS)
    assert [point.published for point in points_of([verdict], **facts)] == [2.0]
    assert points_of([verdict], given, **facts) == []


def test_listed_bounds_of_a_series_are_as_many_as_its_points():
    points = read_points(curve(10.4, 20.9), rules="gavel", **FACTS)
    two = claim(series="LAS", accept={"low": [10.0, 20.0]})
    assert judge_all([two], {}, points)[0].outcome == "reproduced"
    three = claim(series="LAS", accept={"low": [10.0, 20.0, 30.0]})
    with pytest.raises(ClaimError, match="claim las: 3 bounds for 2 points of its series"):
        judge_all([three], {}, points)


def test_the_largest_distance_of_a_series_decides():
    near = claim(series="LAS", accept={"rel": 0.05})
    for ours, outcome in (((10.4, 20.9), "reproduced"), ((10.0, 21.1), "missed")):
        points = read_points(curve(*ours), rules="gavel", **FACTS)
        (verdict,) = judge_all([near], {}, points)
        assert verdict.outcome == outcome
        row = verdict.row()
        assert row["published"] in (10.0, 20.0) and row["ours"] in ours and row["series"] == "LAS"
        assert row["farthest"] == {"x": row["published"] / 10, "unit": "h"} and row["judged"] == 2
        assert points_of([verdict], data="public", rules="gavel") == []
    aside = read_points(curve(10.0, 40.0).assign(aside=[None, True]), rules="gavel", **FACTS)
    assert judge_all([near], {}, aside)[0].outcome == "reproduced"
    with pytest.raises(ClaimError, match=r"claim las: no point of series 'LAS' \(series: none\)"):
        judge_all([near], {})


@pytest.mark.parametrize(
    ("choice", "published", "ours"),
    [
        ({"at": {"le": 1}}, 10.0, 11.0),
        ({"at": {"gt": 1}}, 20.0, 26.0),
        ({"at": [1.0]}, 10.0, 11.0),
        ({"quantity": "p99 JCT"}, 50.0, 70.0),
        ({"series": ["LAS", "FIFO"]}, 50.0, 70.0),
    ],
)
def test_a_claim_chooses_the_points_it_judges(choice, published, ours):
    points = read_points(curve(11.0, 26.0), rules="gavel", **FACTS)
    facts = {**FACTS, "quantity": "p99 JCT"}
    tail = pd.DataFrame({"series": ["LAS", "FIFO"], "published": 50.0, "ours": [70.0, 60.0]})
    points += read_points(tail, rules="gavel", **facts)
    chosen = claim(**{"series": "LAS", "accept": {"rel": 0.05}, **choice})
    row = judge_all([chosen], {}, points)[0].row()
    assert (row["published"], row["ours"], row["verdict"]) == (published, ours, "missed")


def test_a_claim_without_points_in_a_smaller_run_is_not_comparable():
    points = read_points(curve(11.0, 26.0), rules="gavel", **FACTS)
    beyond = claim(series="LAS", at={"gt": 2}, accept={"rel": 0.05})
    (verdict,) = judge_all([beyond], {}, points, reason="not at this profile")
    assert verdict.row()["reason"] == "not at this profile" and verdict.point is None


def test_a_series_without_any_value_of_ours_is_not_comparable():
    points = read_points(curve(None, None), rules="gavel", **FACTS)
    (verdict,) = judge_all(
        [claim(series="LAS", accept={"rel": 0.05})], {}, points, reason="no tool"
    )
    assert (verdict.row()["verdict"], verdict.row()["reason"]) == ("not comparable", "no tool")


def test_a_series_without_any_value_of_ours_needs_a_reason():
    points = read_points(curve(float("nan"), float("nan")), rules="gavel", **FACTS)
    with pytest.raises(ClaimError, match="claim las: no point of series 'LAS' has a value of ours"):
        judge_all([claim(series="LAS", accept={"rel": 0.05})], {}, points)


def test_a_claim_without_its_package_is_not_comparable():
    points = read_points(curve(11.0, 26.0), rules="gavel", **FACTS)
    needy = claim(series="LAS", accept={"rel": 0.05}, package="no_such_solver")
    assert absent_packages([needy, claim(series="LAS", accept={"rel": 0.5}, package="numpy")]) == {
        "no_such_solver"
    }
    inner = claim(series="LAS", accept={"rel": 0.5}, package="no_such_solver.inner")
    assert absent_packages([inner]) == {"no_such_solver.inner"}
    (verdict,) = judge_all([needy], {}, points, missing_packages={"no_such_solver"})
    row = verdict.row()
    assert (row["verdict"], row["reason"]) == ("not comparable", "package not installed")
    (verdict,) = judge_all([needy], {}, points)
    assert verdict.outcome == "missed"


def test_a_point_that_never_came_out_is_the_farthest():
    points = read_points(curve(10.0, float("nan")), rules="gavel", **FACTS)
    (verdict,) = judge_all([claim(series="LAS", accept={"rel": 0.05})], {}, points)
    assert verdict.outcome == "missed" and verdict.row()["published"] == 20.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"published": [1.0, float("inf")]}, "point 1, published: is inf; a published number"),
        ({"series": " "}, "point 0, series: must not be blank"),
        ({"ours": "9"}, "point 0, ours: Input should be a valid number"),
        ({"colour": "red"}, "point 0, colour: Extra inputs"),
        ({"certainty": "sure"}, "point 0, certainty: Input should be 'paper'"),
    ],
)
def test_a_bad_point_is_named(change, message):
    with pytest.raises(ClaimError, match=message):
        read_points(curve(9.0, 9.0).assign(**FACTS, rules="gavel").assign(**change))


def test_published_numbers_of_claims_are_points_those_of_checks_and_examples_are_not():
    facts = {"published": [2.0, None, 4.0, 0.0], "accept": {"abs": 1}}
    verdicts = [
        judge(claim(**facts, certainty="plot ±10 %"), [2.2, 3.0, None, 1.0]),
        judge(claim(**facts, id="own", kind="check"), [2.0, 3.0, 4.0, 0.0]),
        judge(claim(**facts, id="sum", kind="example"), [2.0, 3.0, 4.0, 0.0]),
        judge(claim(id="one", published=5.0, accept={"rel": 0.1}, stand_in=True), 5.1),
    ]
    points = points_of(verdicts, data="author's", rules="tiresias")
    assert [(p.series, p.x, p.published, p.ours, p.certainty, p.data) for p in points] == [
        ("las", 0.0, 2.0, 2.2, "plot", "author's"),
        ("las", 2.0, 4.0, None, "plot", "author's"),
        ("one", None, 5.0, 5.1, "paper", "stand-in"),
    ]


def test_shares_count_what_was_judged():
    point = Point(series="a", published=100.0, ours=100.9, rules="paper", **FACTS)
    rows = [point.row(), point.model_copy(update={"ours": None}).row()]
    found = within_distances(rows)
    assert found["judged"] == 1 and found["within"] == {"1 %": 1.0, "2 %": 1.0, "10 %": 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"published": 1.0, "series": "LAS"}, "either published"),
        ({}, "either published"),
        ({"series": "LAS", "kind": "check"}, "kind check judges no series"),
        ({"published": 1.0, "kind": "guess"}, "Input should be 'number'"),
    ],
)
def test_a_claim_has_a_kind_and_published_values_or_a_series(change, message):
    with pytest.raises(ValueError, match=message):
        claim(**{"accept": {"rel": 0.1}, **change})


def test_a_row_without_a_note_has_the_note_of_the_figure():
    facts = {"quantity": "average JCT", "certainty": "paper", "data": "model", "rules": "paper"}
    rows = [{"series": series, "published": 2.0, "ours": 2.0, **facts} for series in ("a", "b")]
    frame = pd.DataFrame(rows).assign(fitted_on=["a prototype", None])
    first, second = read_points(frame, fitted_on="a row of a table", unknown="workload")
    assert (first.fitted_on, second.fitted_on) == ("a prototype", "a row of a table")
    assert first.unknown == second.unknown == "workload"


def test_a_point_has_the_origin_of_its_claim_or_of_the_figure():
    fields = {"published": 2.0, "accept": {"rel": 0.1}}
    claims = [claim(id="las", **fields), claim(id="text", origin="text", **fields)]
    verdicts = judge_all(claims, {"las": 2.0, "text": 2.0})
    points = points_of(verdicts, data="public", rules="gavel", origin="testbed")
    assert [point.origin for point in points] == ["testbed", "text"]


def test_a_table_of_points_has_the_columns_of_the_file():
    assert tuple(point_table([]).columns) == COLUMNS
    fitted = read_points(curve(9.0, 20.0).assign(fitted=[True, None]), rules="gavel", **FACTS)
    assert tuple(point_table(point.row() for point in fitted).columns) == (*COLUMNS, "fitted")
    row = {"note": "no column of the file", **fitted[1].row()}
    assert tuple(point_table([row]).columns) == COLUMNS
