"""Pairs of jobs that share a GPU: fractions of speed that they keep, and guesses of these."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from repro.base.typing import Flags, Floats
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.estimator import PairEstimator, complete, retained_fractions

#: Ways to guess pairs: Gavel's estimator, its completion alone, and the mean of known fractions.
METHODS = ("nearest reference", "completion", "mean")
#: Two models, in the order of their names.
Pair = tuple[str, str]


def fastest_alone(isolated: pd.DataFrame) -> pd.Series:
    """Rate of each job alone (iterations/s): the fastest of its runs.

    The runs of a job alone differ by up to 1.5 times. The fastest is the least disturbed one, and
    makes the fractions that a pair keeps rather too small than too large.

    Parameters
    ----------
    isolated : DataFrame
        Rows of ``traces/measured/isolated.csv``.

    Examples
    --------
    >>> fastest_alone(pd.DataFrame({"job": ["a", "a"], "iters_per_s": [2.0, 3.0]})).to_dict()
    {'a': 3.0}
    """
    rates: pd.Series = isolated.groupby("job")["iters_per_s"].max()
    return rates


def measured_pairs(colocated: pd.DataFrame, alone: pd.Series) -> pd.DataFrame:
    """Fractions of its speed alone that each job of a measured pair keeps.

    Parameters
    ----------
    colocated : DataFrame
        Rows of ``traces/measured/colocated.csv``.
    alone : Series
        Rate of each job alone (iterations/s).

    Returns
    -------
    DataFrame
        ``mode``, and the columns of `kept_fractions`.

    Examples
    --------
    >>> row = {"mode": "mps", "job_a": "a", "job_b": "b", "rate_a": 3.0, "rate_b": 1.0}
    >>> measured_pairs(pd.DataFrame([row]), pd.Series({"a": 4.0, "b": 2.0})).values.tolist()
    [['mps', 'a', 'b', 0.75, 0.5, 1.25]]
    """
    pairs = colocated[["mode"]].assign(model_a=colocated["job_a"], model_b=colocated["job_b"])
    pairs["kept_a"] = colocated["rate_a"] / colocated["job_a"].map(alone)
    pairs["kept_b"] = colocated["rate_b"] / colocated["job_b"].map(alone)
    pairs["total"] = pairs["kept_a"] + pairs["kept_b"]
    return pairs


def kept_fractions(table: ThroughputTable, gpu_type: str) -> pd.DataFrame:
    """Fractions of its speed that each job of a pair keeps on a GPU type.

    Parameters
    ----------
    table : ThroughputTable
        Throughputs alone and in pairs.
    gpu_type : str
        GPU type of the table.

    Returns
    -------
    DataFrame
        A row per pair of jobs on one GPU: ``model_a``, ``model_b``, ``kept_a``, ``kept_b`` and
        ``total``, their sum; 0 if the pair does not fit. A job that cannot run there alone has no
        pairs.

    Examples
    --------
    >>> pair = {("a", "b", 1): {"v100": (6.0, 3.0)}}
    >>> table = ThroughputTable.of({"a": {"v100": 10}, "b": {"v100": 4}}, "v100", pair)
    >>> kept_fractions(table, "v100").values.tolist()
    [['a', 'b', 0.6, 0.75, 1.35]]
    """
    alone = {
        model: row.get(gpu_type, 0.0) for (model, gpus), row in table.rows.items() if gpus == 1
    }
    rows = []
    for (first, second, gpus), row in table.pairs.items():
        if gpus == 1 and gpu_type in row and alone[first] > 0 and alone[second] > 0:
            kept_first = row[gpu_type][0] / alone[first]
            kept_second = row[gpu_type][1] / alone[second]
            rows.append((first, second, kept_first, kept_second, kept_first + kept_second))
    return pd.DataFrame(rows, columns=["model_a", "model_b", "kept_a", "kept_b", "total"])


def guess_errors(
    table: ThroughputTable,
    gpu_type: str,
    fractions: Sequence[float],
    references: int,
    seed: int,
    pairs: Collection[Pair] | None = None,
) -> pd.DataFrame:
    """Mean absolute error of guessed fractions, by method and fraction of pairs that is measured.

    *Nearest reference* is Gavel's estimator: all pairs of the reference models are known, and a
    part of the others. The other methods know a random part of all pairs. A method is scored on the
    pairs of different models that it does not know beforehand.

    Parameters
    ----------
    table : ThroughputTable
        True throughputs.
    gpu_type : str
        GPU type of the table.
    fractions : sequence of float
        Probabilities with which a pair is measured.
    references : int
        Number of reference models of the estimator.
    seed : int
        Seed of the measured pairs and of the reference models.
    pairs : collection of (str, str), optional
        Pairs that are scored; None: all.

    Returns
    -------
    DataFrame
        Columns ``fraction``, ``method`` and ``error``, a difference of fractions of speed (0 to 1).
    """
    models = [model for model, gpus in table.rows if gpus == 1]
    true = retained_fractions(table, models, [gpu_type])[:, 0]
    scored = _scored(models, pairs)
    rows = []
    for fraction in fractions:
        estimator = PairEstimator(
            table, [gpu_type], fraction=fraction, references=references, seed=seed
        )
        nearest = _by_nearest(estimator, table, models, gpu_type)
        is_reference = np.isin(models, estimator.references)
        known_before = np.logical_and.outer(is_reference, is_reference)
        known = _measured(len(models), fraction, seed)
        guesses = {
            "nearest reference": (nearest, known_before),
            "completion": (np.clip(complete(true, known, seed=seed), 0.0, 1.0), known),
            "mean": (np.full_like(true, true[known].mean()), known),
        }
        for method in METHODS:
            guess, before = guesses[method]
            errors = np.abs(guess - true)[scored & ~before]
            rows.append({"fraction": fraction, "method": method, "error": errors.mean()})
    return pd.DataFrame(rows)


def _scored(models: Sequence[str], pairs: Collection[Pair] | None) -> Flags:
    """Mask of the scored entries [model, partner]: pairs of two different models in ``pairs``."""
    scored = ~np.eye(len(models), dtype=bool)
    if pairs is not None:
        names = {tuple(sorted(pair)) for pair in pairs}
        listed = [[tuple(sorted((row, column))) in names for column in models] for row in models]
        scored &= np.array(listed)
    return scored


def _measured(size: int, fraction: float, seed: int) -> Flags:
    """Random symmetric matrix: which pairs are measured; at least the first with itself is."""
    upper = np.triu(np.random.default_rng(seed).random((size, size)) < fraction)
    upper[0, 0] = True
    return upper | upper.T


def _by_nearest(
    estimator: PairEstimator, table: ThroughputTable, models: Sequence[str], gpu_type: str
) -> Floats:
    """Fractions that Gavel's estimator guesses, (models, models)."""
    matches = [estimator.match(model, model) for model in models]
    alone = np.array([table.rows[model, 1][gpu_type] for model in models])
    speeds = [[estimator.pair_speeds(row, column)[0, 0] for column in matches] for row in matches]
    fractions: Floats = np.array(speeds) / alone[:, None]
    return fractions
