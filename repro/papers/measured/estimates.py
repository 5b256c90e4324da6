"""Estimates of requirements on rows that the estimator was not trained on."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.papers.liquid.requirements import RequirementEstimator


def random_folds(num_rows: int, num_folds: int, rng: np.random.Generator) -> list[Ints]:
    """Rows of each fold, sampled without replacement; sizes differ by at most one.

    Examples
    --------
    >>> sorted(len(rows) for rows in random_folds(7, 3, np.random.default_rng(0)))
    [2, 2, 3]
    """
    if not 2 <= num_folds <= num_rows:
        raise ParamError(f"{num_folds} folds of {num_rows} rows; give 2 to {num_rows} folds")
    return np.array_split(rng.permutation(num_rows), num_folds)


def model_folds(models: Sequence[str], num_folds: int, rng: np.random.Generator) -> list[Ints]:
    """Rows of each fold; all rows of a model are in one fold.

    Parameters
    ----------
    models : sequence of str
        Model of each row, (rows,).
    num_folds : int
        Number of folds, at most one per model.
    rng : Generator
        Random generator, which deals the models to the folds.

    Examples
    --------
    >>> folds = model_folds(["a", "b", "a", "b"], 2, np.random.default_rng(0))
    >>> sorted(rows.tolist() for rows in folds)
    [[0, 2], [1, 3]]
    """
    names = np.asarray(models)
    distinct = np.unique(names)
    dealt = random_folds(len(distinct), num_folds, rng)
    return [np.flatnonzero(np.isin(names, distinct[numbers])) for numbers in dealt]


def held_out(
    table: pd.DataFrame,
    label: str,
    folds: Sequence[Ints],
    *,
    features: Sequence[str],
    regressor: str,
    seed: int = 0,
) -> Floats:
    """Estimate of each row's label by a regressor trained on the other folds, (rows,).

    Parameters
    ----------
    table : DataFrame
        A row per training run, with features and label.
    label : str
        Column that is estimated.
    folds : sequence of array of int
        Rows of each fold; every row is in one of them.
    features : sequence of str
        Columns that the regressor reads.
    regressor : str
        One of `repro.papers.liquid.requirements.REGRESSORS`.
    seed : int
        Seed of the regressor.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.0, 2, 3, 4], "mb": [2.0, 4, 6, 8]})
    >>> folds = [np.array([0, 1]), np.array([2, 3])]
    >>> options = {"features": ["size"], "regressor": "linear_regression"}
    >>> held_out(table, "mb", folds, **options).round(6).tolist()
    [2.0, 4.0, 6.0, 8.0]
    """
    estimates = np.full(len(table), np.nan)
    for rows in folds:
        estimator = _trained(table, label, rows, features, regressor, seed)
        estimates[rows] = estimator.estimates(table.iloc[rows])[label]
    return estimates


def feature_losses(
    table: pd.DataFrame,
    label: str,
    folds: Sequence[Ints],
    rng: np.random.Generator,
    *,
    features: Sequence[str],
    regressor: str,
    repeats: int = 3,
) -> pd.DataFrame:
    """Contribution of each row to the loss of R2 when a feature is permuted, (rows, features).

    A feature is permuted among the rows of the fold that is held out. The mean of a column is the
    loss of R2 by its feature. A bootstrap of this mean samples the rows.

    Parameters
    ----------
    table, label, folds, features, regressor
        As of `held_out`.
    rng : Generator
        Random generator of the permutations.
    repeats : int
        Permutations of each feature.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.0, 2, 3, 4], "day": 1.0, "mb": [2.0, 4, 6, 8]})
    >>> folds = [np.array([0, 1]), np.array([2, 3])]
    >>> options = {"features": ["size", "day"], "regressor": "linear_regression"}
    >>> losses = feature_losses(table, "mb", folds, np.random.default_rng(1), **options)
    >>> (losses.mean() > 0.01).to_dict()
    {'size': True, 'day': False}
    """
    truth = table[label].to_numpy(float)
    rises = np.zeros((len(table), len(features)))
    for rows in folds:
        estimator = _trained(table, label, rows, features, regressor, 0)
        tested = table.iloc[rows]
        plain = (estimator.estimates(tested)[label].to_numpy(float) - truth[rows]) ** 2
        for number, feature in enumerate(features):
            for _ in range(repeats):
                shuffled = tested[feature].to_numpy()[rng.permutation(len(rows))]
                permuted = estimator.estimates(tested.assign(**{feature: shuffled}))[label]
                rise = (permuted.to_numpy(float) - truth[rows]) ** 2 - plain
                rises[rows, number] += rise / repeats
    return pd.DataFrame(rises / truth.var(), table.index, list(features))


def _trained(
    table: pd.DataFrame,
    label: str,
    left_out: Ints,
    features: Sequence[str],
    regressor: str,
    seed: int,
) -> RequirementEstimator:
    """Regressor trained on all rows but some."""
    kept = np.setdiff1d(np.arange(len(table)), left_out)
    estimator = RequirementEstimator(regressor, [label], features, per_model=False, seed=seed)
    return estimator.fit(table.iloc[kept])
