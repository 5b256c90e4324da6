"""Estimators on rows held out: folds, estimates, and what a feature is worth."""

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.papers.measured.estimates import (
    feature_losses,
    held_out,
    model_folds,
    random_folds,
)

LINEAR = {"features": ["size", "noise"], "regressor": "linear_regression"}


def rows(count: int = 40) -> pd.DataFrame:
    """Rows whose label is a multiple of one of two features."""
    rng = np.random.default_rng(5)
    size = rng.uniform(1, 9, count)
    return pd.DataFrame(
        {"size": size, "noise": rng.normal(size=count), "mb": 3 * size, "model": list("ab") * 20}
    )


def test_random_folds_hold_every_row_once() -> None:
    folds = random_folds(23, 4, np.random.default_rng(0))
    assert np.sort(np.concatenate(folds)).tolist() == list(range(23))
    assert sorted(map(len, folds)) == [5, 6, 6, 6]


@pytest.mark.parametrize("count", [1, 24])
def test_too_few_or_too_many_folds_are_refused(count: int) -> None:
    with pytest.raises(ParamError, match="give 2 to 23 folds"):
        random_folds(23, count, np.random.default_rng(0))


def test_a_model_is_in_one_fold() -> None:
    models = ["a", "b", "c", "a", "c", "d"]
    folds = model_folds(models, 2, np.random.default_rng(3))
    assert np.sort(np.concatenate(folds)).tolist() == list(range(6))
    inside = [{models[row] for row in fold} for fold in folds]
    assert not inside[0] & inside[1]


def test_estimates_come_from_the_other_folds() -> None:
    table = rows()
    folds = [np.arange(20), np.arange(20, 40)]
    wrong = table.assign(mb=table["mb"].where(table.index >= 20, 0.0))
    # the second fold learns from labels of 0 alone but for the feature without effect
    first, second = np.split(
        held_out(wrong.assign(mb=wrong["mb"] + 1e-6 * wrong["size"]), "mb", folds, **LINEAR), 2
    )
    assert first == pytest.approx(table["mb"][:20], rel=1e-3)
    assert np.abs(second).max() < 1e-3


def test_a_feature_without_effect_costs_nothing() -> None:
    table = rows()
    folds = random_folds(len(table), 4, np.random.default_rng(1))
    losses = feature_losses(table, "mb", folds, np.random.default_rng(2), **LINEAR)
    # a permuted feature is off by a difference of two rows, whose square is twice the variance
    assert losses["size"].mean() == pytest.approx(2, rel=0.3)
    assert losses["noise"].to_numpy() == pytest.approx(0, abs=1e-9)
    assert len(losses) == len(table)
