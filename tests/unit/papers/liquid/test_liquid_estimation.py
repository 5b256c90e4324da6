"""Liquid's comparison of regressors and learning job by job."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.papers.liquid import estimation
from repro.papers.liquid.training_rows import FEATURES, synthetic


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
    assert len(set(table["spread"])) == 1


def test_every_estimate_is_made_before_its_row_is_learned_from(rows):
    known = rows[:36].reset_index(drop=True)
    how = {"features": FEATURES, "first": 30, "every": 3}
    found = estimation.prequential(known, "gpu_mem_mb", **how)
    assert found.groupby("series")["row"].agg(list).to_dict() == {
        name: list(range(30, 36)) for name in ("anew", "never", "online")
    }
    # the last row decides no estimate, not even its own
    changed = known.copy()
    changed.loc[35, "gpu_mem_mb"] *= 50
    again = estimation.prequential(changed, "gpu_mem_mb", **how)
    earlier = found["row"] < 35
    pd.testing.assert_frame_equal(found[earlier], again[earlier])
    off = (again["error"] - found["error"])[~earlier]
    added = changed.loc[35, "gpu_mem_mb"] - known.loc[35, "gpu_mem_mb"]
    assert (off.abs() <= added + 1e-6).all() and (off > 0).all()
    wide = found.pivot_table(index="row", columns="series", values="error")
    assert wide.loc[:32, "anew"].tolist() == wide.loc[:32, "never"].tolist()
