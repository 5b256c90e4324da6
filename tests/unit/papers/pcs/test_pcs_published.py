"""Published points, shipped configurations and search results of PCS."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import make
from repro.base.errors import ParamError
from repro.papers.pcs import artifact


def test_series_have_our_names_and_places_are_text() -> None:
    toy = artifact.published("1a")
    assert set(toy["series"]) == {"srsf-elastic", "themis", "fifo-elastic"}
    assert set(toy["x"]) == {"1", "2", "3", "4"}
    assert set(artifact.published("1b")["x"]) == {""}


def test_policies_by_series() -> None:
    assert artifact.policy("themis", "", lease=1.0) == make("themis", "pcs", lease=1.0)
    shipped = artifact.policy("pcs-pred", "6214e9")
    assert (shipped.thresholds, shipped.weights) == ((595211.0,), (0.95, 0.05))
    with pytest.raises(
        ParamError, match=r"no configuration pcs-pred for workload '7f04ca'.*ee9e8c"
    ):
        artifact.policy("pcs-pred", "7f04ca")


def test_a_solution_cuts_classes_in_its_own_run_or_where_it_is_told() -> None:
    row = {"T": 0.5, "W": 1.0, "zeta_min": 0.3, "delta": 0.1}
    assert artifact.solution(row) == make("pcs", "pcs", c2=0.5, decay=1.0, zeta_min=0.3, delta=0.1)
    fixed = artifact.solution(row, pd.DataFrame({"service": [1.0, 2.0, 100.0, 110.0]}))
    assert fixed.thresholds == (2.0,) and fixed.weights == pytest.approx((0.731, 0.269))


def test_a_solution_that_gives_a_class_no_weight_is_not_possible() -> None:
    rows = pd.DataFrame({"T": [0.5, 0.001], "W": [1.0, 3.0], "zeta_min": 0.3, "delta": 0.1})
    jobs = pd.DataFrame({"service": [4.0**power for power in range(20)]})
    assert artifact.possible(rows, jobs).index.tolist() == [0]


def test_eleven_points_of_a_stored_front_count() -> None:
    jobs = {"ee9e8c": pd.DataFrame({"service": [1.0, 2.0, 50.0]})}
    table = artifact.front("ee9e8c").assign(trace="ee9e8c")
    objectives = [("average JCT", "avg_jct_s", "avg_jct_s", "s")]
    curve, largest = artifact.front_points(table, jobs, objectives)
    assert (len(curve), (~curve["uncounted"]).sum()) == (70, 11)
    assert largest["ours"].tolist() == [pytest.approx(3 * 2505 / 53**2)]
    jobs["ee9e8c"].attrs["synthetic"] = True
    curve, largest = artifact.front_points(table, jobs, objectives)
    assert curve["ours"].isna().all() and largest["ours"].isna().all()


def test_the_front_of_a_trace_has_70_solutions_in_order() -> None:
    front = artifact.front("ee9e8c")
    assert front["solution"].tolist() == list(range(70))
    assert "trace" not in front


def test_our_values_stand_beside_the_published_ones() -> None:
    ours = pd.DataFrame(
        {
            "series": ["afs", "srsf-elastic", "max-min", "afs"],
            "quantity": ["avg_jct_ratio"] * 3 + ["other"],
            "x": ["6214e9"] * 4,
            "ours": [1.0, 1.2, 3.0, 4.0],
        }
    )
    table = artifact.with_published(ours, "7a", {"avg_jct_ratio": "x"})
    assert table["published"].fillna(0).tolist() == [1.0, 1.102, 0.0]
    points = artifact.points(table, table["series"] == "afs")
    assert points["series"].tolist() == ["afs", "srsf-elastic"]
    assert points["ours"].fillna(0).tolist() == [1.0, 0.0]
    assert set(points["unit"]) == {"x"} and set(points["certainty"]) == {"artifact"}
