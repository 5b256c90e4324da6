"""Accuracy of requirement estimators: Liquid's comparison, and learning job by job."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.base import compiled
from repro.base.errors import ParamError
from repro.figures import cache
from repro.figures.data import stream
from repro.papers.liquid.online import OnlineForest
from repro.papers.liquid.requirements import REGRESSORS, RequirementEstimator
from repro.papers.liquid.training_rows import FEATURES, synthetic

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Rows of the test set, as in the artifact.
_TEST_ROWS = 50


def compare(
    table: pd.DataFrame,
    label: str,
    rng: np.random.Generator,
    *,
    features: Sequence[str],
    sizes: Sequence[int],
    regressors: Sequence[str] = REGRESSORS,
    per_model: bool = False,
) -> pd.DataFrame:
    """RMSE (unit of the label) and R2 of each regressor by size of the training set (``rows``).

    The rows are shuffled once. The last 50 are the test set. A training set of n rows has the n
    rows before the test set. The network that a job trains (column ``model``) is a feature. With
    ``per_model`` each network has regressors of its own instead. R2 is 1 - mean squared error /
    variance of the test set, as in the artifact's ``compare.sh`` and ``rf.py``. These scripts lose
    some rows; this function uses all. Column ``spread`` is the standard deviation of the label in
    the test set.

    Raises
    ------
    ParamError
        If a size is below 2 or above the number of rows that are not in the test set.
    """
    _check_sizes(sizes, len(table))
    shuffled = table.iloc[rng.permutation(len(table))]
    pool = shuffled[:-_TEST_ROWS]
    test = shuffled[-_TEST_ROWS:]
    truth = test[label].to_numpy(float)
    scores = []
    for size in sizes:
        for name in regressors:
            seed = int(rng.integers(2**31))
            estimator = RequirementEstimator(name, [label], features, per_model, seed)
            estimate = estimator.fit(pool[-size:]).estimates(test)[label].to_numpy(float)
            mse = float(np.mean((estimate - truth) ** 2))
            scores.append((size, name, mse**0.5, 1 - mse / truth.var(), float(truth.std())))
    return pd.DataFrame(scores, columns=["rows", "series", "rmse", "r2", "spread"])


def _check_sizes(sizes: Sequence[int], rows: int) -> None:
    """Refuse a training set that does not fit in a table of this many rows."""
    most = rows - _TEST_ROWS
    if most < 2:
        raise ParamError(
            f"the table has {rows} rows; give {_TEST_ROWS + 2} or more, as {_TEST_ROWS} are the "
            f"test set"
        )
    for size in sizes:
        if not isinstance(size, int | np.integer) or not 2 <= size <= most:
            raise ParamError(
                f"sizes: {size!r} rows to train on; give whole numbers from 2 to {most}, as "
                f"{_TEST_ROWS} of the {rows} rows are the test set"
            )


def synthetic_comparison(fig: FigureRun) -> pd.DataFrame:
    """`compare` on generated rows for each of the figure's seeds; cached for all figures."""
    inputs = fig.inputs
    frames = []
    options = {"features": FEATURES, "sizes": inputs.sizes}
    code = compiled.sources(__name__).values()
    sources = cache.files_hash(code), cache.tables_hash()
    for seed in inputs.seeds:
        rng = stream("liquid", "profiles", seed)
        table = synthetic(rng, inputs.rows, inputs.models, gpu=inputs.gpu)
        digest = cache.key("liquid profiles", sources, seed, table, inputs.label, options)
        run = functools.partial(compare, table, inputs.label, rng, **options)
        cached = cache.remembered(digest, lambda run=run: {"rows": run()})  # type: ignore[misc]
        frames.append(cached["rows"].assign(seed=seed))
    rows: pd.DataFrame = pd.concat(frames, ignore_index=True)
    return rows


def prequential(
    table: pd.DataFrame,
    label: str,
    *,
    features: Sequence[str],
    first: int,
    every: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Absolute error of each row's estimate: a row is estimated first, then learned from.

    Rows from ``first`` on are estimated in order by three random forests. ``never`` is trained on
    the rows before ``first``. ``anew`` is retrained on all earlier rows after every ``every``-th
    row, as in Liquid's artifact. ``online`` is updated with every row. Columns: row, series, error
    (unit of the label).
    """
    truth = table[label].to_numpy(float)

    def trained(rows: int) -> RequirementEstimator:
        estimator = RequirementEstimator("random_forest", [label], features, False, seed)
        return estimator.fit(table[:rows])

    never = trained(first).estimates(table[first:])[label]
    blocks = range(first, len(table), every)
    anew = [trained(row).estimates(table[row : row + every])[label] for row in blocks]
    forest = OnlineForest([label], seed=seed)
    online = []
    records: list[Any] = table[list(features)].to_dict("records")
    for features_of_row, value in zip(records, truth, strict=True):
        online.append(forest.predict(features_of_row)[label])
        forest.learn(features_of_row, {label: float(value)})
    estimates = {"never": never.to_numpy(), "anew": np.concatenate(anew), "online": online[first:]}
    errors = pd.DataFrame(
        {name: np.abs(estimate - truth[first:]) for name, estimate in estimates.items()}
    )
    rows = errors.set_index(np.arange(first, len(table))).rename_axis("row").reset_index()
    return rows.melt("row", var_name="series", value_name="error")
