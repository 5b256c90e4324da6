"""How well regressors estimate what jobs need: Liquid's comparison, and learning job by job."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.figures import cache
from repro.figures.data import stream
from repro.papers.liquid.online import OnlineForest
from repro.papers.liquid.requirements import REGRESSORS, RequirementEstimator
from repro.papers.liquid.training_rows import FEATURES, synthetic

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Rows kept for the test, as in the artifact.
_TEST = 50


def compare(
    table: pd.DataFrame,
    label: str,
    rng: np.random.Generator,
    *,
    features: Sequence[str],
    sizes: Sequence[int],
    regressors: Sequence[str] = REGRESSORS,
    per_type: bool = False,
) -> pd.DataFrame:
    """Return RMSE (unit of the label) and R2 of regressors by ``rows`` of their training set.

    The rows are shuffled once, the last 50 are kept for the test and the training sets are
    the last of the others; the model is a feature, or has regressors of its own (``per_type``).
    R2 = 1 - mean squared error / variance of the test (the artifact's ``compare.sh`` and ``rf.py``,
    without the rows that these lose).
    """
    shuffled = table.iloc[rng.permutation(len(table))]
    pool = shuffled[:-_TEST]
    held = shuffled[-_TEST:]
    truth = held[label].to_numpy(float)
    found = []
    for size in sizes:
        for name in regressors:
            seed = int(rng.integers(2**31))
            estimator = RequirementEstimator(name, [label], features, per_type, seed)
            guess = estimator.fit(pool[-size:]).estimates(held)[label].to_numpy(float)
            mse = float(np.mean((guess - truth) ** 2))
            found.append((size, name, mse**0.5, 1 - mse / truth.var(), float(truth.std())))
    return pd.DataFrame(found, columns=["rows", "series", "rmse", "r2", "spread"])


def synthetic_comparison(fig: FigureRun) -> pd.DataFrame:
    """Return `compare` on synthetic rows for each of the figure's seeds, in all figures alike."""
    inputs = fig.inputs
    parts = []
    how = {"features": FEATURES, "sizes": inputs.sizes}
    sources = cache.files_hash([Path(__file__)]), cache.tables_hash()
    for seed in inputs.seeds:
        rng = stream("liquid", "profiles", seed)
        table = synthetic(rng, inputs.rows, inputs.models, gpu=inputs.gpu)
        digest = cache.key("liquid profiles", sources, seed, table, inputs.label, how)
        run = functools.partial(compare, table, inputs.label, rng, **how)
        found = cache.remembered(digest, lambda run=run: {"rows": run()})  # type: ignore[misc]
        parts.append(found["rows"].assign(seed=seed))
    rows: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return rows


def beside(found: pd.DataFrame, bars: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return mean and standard deviation over the seeds with the published bar, NaN where none."""
    parts = found.groupby(["rows", "series"], sort=False)[quantity].agg(["mean", "std"])
    table = parts.reset_index().rename(columns={"mean": "ours"})
    known = bars.assign(rows=bars["group"].astype(int))[["rows", "series", "published"]]
    return table.merge(known, how="left", on=["rows", "series"])


def prequential(
    table: pd.DataFrame,
    label: str,
    *,
    features: Sequence[str],
    first: int,
    every: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the error of each row's estimate made before the row is learned from.

    Rows come in their order; from row ``first`` on each is estimated by a random forest trained on
    the rows before ``first`` (series ``never``), by one trained anew on all rows so far after every
    ``every``-th (``anew``, as in Liquid's artifact), and by a forest updated with every row
    (``online``). Columns: row, series, error (absolute, in the unit of the label).
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
    for given, known in zip(records, truth, strict=True):
        online.append(forest.predict(given)[label])
        forest.learn(given, {label: float(known)})
    guesses = {"never": never.to_numpy(), "anew": np.concatenate(anew), "online": online[first:]}
    errors = pd.DataFrame({name: np.abs(one - truth[first:]) for name, one in guesses.items()})
    rows = errors.set_index(np.arange(first, len(table))).rename_axis("row").reset_index()
    return rows.melt("row", var_name="series", value_name="error")
