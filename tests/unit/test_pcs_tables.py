"""What is known of PCS's figures: configurations, fronts and published points."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from repro.files.tables import ModelTable

TRACES = ["0e4a51", "6214e9", "6c71a0", "b436b2", "ee9e8c"]


def table(name, *columns):
    return ModelTable(f"pcs_{name}.csv", columns).frame


@pytest.fixture
def beside(mirror):
    def _beside(name):
        path = mirror.parent / name
        if not path.is_file():
            pytest.skip(f"no {name} beside the mirror of the public traces")
        return path

    return _beside


#: Configurations of result files in the history of the public code; the others are shipped.
FROM_HISTORY = {"gavel-five-jct", "gavel-five-bal", "gavel-five-pred", "0e4a51-pred-plotted"}


def numbers(cell):
    return [float(part) for part in str(cell).split()]


def test_configurations_are_whole():
    held = table("configurations", "name", "thresholds", "weights", "zeta_min", "delta")
    assert len(held) == 24 + len(FROM_HISTORY)
    assert set(held["name"]) >= FROM_HISTORY
    assert held["name"].is_unique
    for row in held.itertuples():
        thresholds = numbers(row.thresholds)
        weights = numbers(row.weights)
        assert thresholds == sorted(thresholds)
        assert len(weights) == len(thresholds) + 1
        assert sum(weights) == pytest.approx(1, abs=1e-12)
        assert min(weights) > 0
        assert 0 <= row.zeta_min <= 1
        assert row.delta > 0


def test_configurations_are_those_of_the_artifact(beside):
    theirs = json.loads(beside("pcs_configs.json").read_text())
    rows = table("configurations", "name")
    for row in rows[~rows["name"].isin(FROM_HISTORY)].itertuples():
        held = theirs[row.name.replace("-", "_")]
        assert numbers(row.thresholds) == held["thresholds"]
        assert numbers(row.weights) == held["weights"]
        assert (row.zeta_min, row.delta) == (held["clip"], held["delta"])


def test_fronts_are_those_of_the_artifact(beside):
    names = ["trace", "solution", "T", "W", "zeta_min", "delta", "avg_jct_s", "avg_pred_err_pct"]
    held = table("fronts", *names)
    assert held.groupby("trace")["solution"].size().to_dict() == dict.fromkeys(TRACES, 70)
    theirs = pd.read_csv(beside("pcs_fronts.csv")).rename(columns={"clip": "zeta_min"})
    pd.testing.assert_frame_equal(held, theirs[names])


def test_published_points():
    held = table("published", "figure", "series", "quantity", "x", "value")
    assert not held.duplicated(["figure", "series", "quantity", "x"]).any()
    figures = "1a 1b 3 4 5a 5b 6a 6b 7a 7b 8 8a 8b 9a 9b 9c 10a 10b"
    assert " ".join(held["figure"].unique()) == figures
    assert held.groupby(["figure", "series", "quantity"]).size().max() == 101

    def values(figure, series, quantity):
        rows = held.query("figure == @figure and series == @series and quantity == @quantity")
        return dict(zip(rows["x"], rows["value"], strict=True))

    assert list(values("7a", "Tiresias", "avg_jct_ratio").values()) == [
        1.064,
        1.316,
        1.102,
        1.073,
        1.428,
        1.557,
    ]
    assert values("7b", "AFS", "p99_pred_err_pct")["6214e9"] == 924.858
    assert values("10a", "PCS", "avg_pred_err_pct")["40"] == 19.64
    errors = values("4", "PCS-pred", "pred_err_pct")
    shares = [float(share) for share in errors]
    assert shares == sorted(shares)
    assert list(errors.values()) == sorted(errors.values())
    assert max(errors.values()) == pytest.approx(159.74, abs=0.005)
    # the artifact's data of Figures 5b and 8a are 5 points too high
    (bar,) = values("5b", "AFS", "avg_pred_err_pct_plus_5").values()
    (point,) = values("6b", "AFS", "avg_pred_err_pct").values()
    assert bar - point == pytest.approx(5, abs=1e-4)
    unfair = values("6a", "AFS", "unfairness_pct")
    assert sum(value == 0 for value in unfair.values()) / 101 == pytest.approx(0.614, abs=5e-4)
