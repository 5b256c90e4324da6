"""Liquid's comparison of regressors and learning job by job."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.estimate.training_rows import FEATURES, synthetic
from repro.experiments.liquid import estimation, published


@pytest.fixture(scope="module")
def rows():
    return synthetic(np.random.default_rng(3), 130)


def test_the_test_rows_are_the_same_for_all_sizes(rows):
    how = {"features": FEATURES, "regressors": ["linear_regression", "decision_tree"]}
    found = [
        estimation.compare(rows, "gpu_mem_mb", np.random.default_rng(1), sizes=(40, 80), **how)
        for _ in range(2)
    ]
    pd.testing.assert_frame_equal(*found)
    table = found[0]
    assert table["series"].tolist() == ["linear_regression", "decision_tree"] * 2
    # what gives the published spread away: one test set, usual definitions
    spread = table["rmse"] / np.sqrt(1 - table["r2"])
    assert spread.to_numpy() == pytest.approx(table["spread"].to_numpy())
    assert table["spread"].max() == table["spread"].min()


def test_published_bars_stand_beside_ours():
    bars = published.bars("10b")
    found = pd.DataFrame({"rows": [100, 100, 7], "series": "gbdt", "r2": [0.4, 0.6, 0.1]})
    table = estimation.beside(found, bars, "r2")
    assert table["ours"].tolist() == [0.5, 0.1]
    assert table["published"].tolist()[0] == 0.447 and np.isnan(table["published"].iloc[1])
    points = estimation.points(table, "R2", "", ("gbdt", 100))
    assert points[["x", "published"]].to_numpy().tolist() == [[100.0, 0.447]]
    assert points["ours"].isna().all()
