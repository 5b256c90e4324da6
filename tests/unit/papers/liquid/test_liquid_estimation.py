"""Liquid's comparison of regressors and learning job by job."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.figures import cache
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


@pytest.mark.parametrize("size", [0, -5, 1, 81, 1000, 40.0])
def test_a_training_set_has_rows_of_the_pool(rows, size):
    rng = np.random.default_rng(1)
    with pytest.raises(ParamError, match=f"{size} rows to train on; .* from 2 to 80") as caught:
        estimation.compare(rows, "gpu_mem_mb", rng, features=FEATURES, sizes=[40, size])
    assert "\n" not in str(caught.value)


def test_a_table_without_rows_to_train_on_is_refused(rows):
    rng = np.random.default_rng(1)
    with pytest.raises(ParamError, match="51 rows; give 52 or more, as 50 are the test set"):
        estimation.compare(rows[:51], "gpu_mem_mb", rng, features=FEATURES, sizes=[2])


def test_cached_scores_depend_on_all_code_that_computes_them(monkeypatch):
    hashed = set()
    files_hash = cache.files_hash

    def noted(files):
        hashed.update(path.name for path in files)
        return files_hash(files)

    monkeypatch.setattr(cache, "files_hash", noted)
    monkeypatch.setattr(cache, "remembered", lambda digest, compute: {"rows": pd.DataFrame()})
    inputs = {"rows": 60, "models": None, "gpu": "k80", "label": "gpu_mem_mb", "sizes": [10]}
    fig = SimpleNamespace(inputs=SimpleNamespace(seeds=[0], **inputs))
    estimation.synthetic_comparison(fig)
    assert {"estimation.py", "requirements.py", "training_rows.py"} <= hashed
