"""Fractions of speed that pairs keep, and errors of guesses."""

import numpy as np
import pandas as pd
import pytest

from repro.papers.measured import pairs
from repro.perf.throughput import ThroughputTable

MODELS = "abcd"


def table(kept):
    """Each job alone at 10 steps/s; ``kept`` is the fraction of every job in every pair."""
    both = {
        (first, second, 1): {"h100": (10 * kept, 10 * kept)}
        for number, first in enumerate(MODELS)
        for second in MODELS[number:]
    }
    return ThroughputTable.of({model: {"h100": 10.0} for model in MODELS}, "h100", both)


def test_the_fastest_run_alone_counts():
    isolated = pd.DataFrame({"job": ["a", "b", "a"], "iters_per_s": [1.0, 5.0, 2.0]})
    assert pairs.fastest_alone(isolated).to_dict() == {"a": 2.0, "b": 5.0}


def test_a_model_that_cannot_run_alone_has_no_pairs():
    rows = {("a", 1): {"v100": 2.0}, ("b", 1): {"v100": 0.0}}
    throughputs = ThroughputTable(
        rows, "v100", {("a", "b", 1): {"v100": (0.0, 0.0)}, ("a", "a", 1): {"v100": (1.0, 1.5)}}
    )
    kept = pairs.kept_fractions(throughputs, "v100")
    assert kept.to_numpy().tolist() == [["a", "a", 0.5, 0.75, 1.25]]


def test_equal_pairs_are_guessed_by_a_mean_and_by_any_reference():
    errors = pairs.guess_errors(table(0.6), "h100", [0.5], 2, seed=0).set_index("method")["error"]
    assert errors["mean"] == pytest.approx(0.0)
    assert errors["nearest reference"] == pytest.approx(0.0)
    assert 0 <= errors["completion"] < 0.6


def test_only_some_pairs_are_scored():
    throughputs = table(0.6)
    both = dict(throughputs.pairs) | {("a", "b", 1): {"h100": (10.0, 10.0)}}
    other = ThroughputTable(throughputs.rows, "h100", both)
    means = [
        pairs.guess_errors(other, "h100", [0.0], 1, seed=0, pairs=scored).set_index("method")[
            "error"
        ]["mean"]
        for scored in (None, [("b", "a")], [("c", "d")])
    ]
    # Only the pair of the first model with itself is known: 0.6.
    assert means == pytest.approx([2 * 0.4 / 12, 0.4, 0.0])


def test_the_same_seed_gives_the_same_errors():
    first, again = (pairs.guess_errors(table(0.7), "h100", [0.3], 2, seed=5) for _ in range(2))
    assert np.array_equal(first["error"], again["error"])
