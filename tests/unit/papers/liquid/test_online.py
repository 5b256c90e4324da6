"""The forest that learns job by job."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from repro.papers.liquid.online import OnlineForest


def rows(count):
    rng = np.random.default_rng(5)
    for batch in rng.integers(1, 33, count):
        kind = ("small", "large")[int(rng.integers(2))]
        yield {"model": kind, "batch": int(batch)}, {"mem": 100.0 + 900 * (kind == "large")}


def test_it_learns_from_one_row_at_a_time_and_repeats():
    def errors():
        forest = OnlineForest(["mem"], seed=3)
        found = []
        for features, labels in rows(300):
            found.append(abs(forest.predict(features)["mem"] - labels["mem"]))
            forest.learn(features, labels)
        return found

    first = errors()
    assert first == errors()
    assert np.mean(first[-50:]) < 0.5 * np.mean(first[1:51])


def test_river_is_imported_only_where_it_is_used():
    code = "import sys; import repro.papers.liquid.online; print('river' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
