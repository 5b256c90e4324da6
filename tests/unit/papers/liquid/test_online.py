"""The forest that learns job by job."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from repro.base.errors import ParamError
from repro.papers.liquid.online import OnlineForest


def rows(count):
    rng = np.random.default_rng(5)
    for batch in rng.integers(1, 33, count):
        kind = ("small", "large")[int(rng.integers(2))]
        yield {"model": kind, "batch": int(batch)}, {"mem": 100.0 + 900 * (kind == "large")}


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"mem": math.nan, "util": 1.0}, "label 'mem' is nan; give a finite number"),
        ({"mem": 1.0, "util": "3"}, "label 'util' is '3'; give a finite number"),
        ({"mem": 1.0}, "label 'util' is missing; give a finite number"),
    ],
)
def test_a_label_that_is_no_number_is_refused_and_not_learned(labels, message):
    forest = OnlineForest(["mem", "util"], seed=3)
    forest.learn({"batch": 4}, {"mem": 10.0, "util": 20.0})
    before = forest.predict({"batch": 4})
    with pytest.raises(ParamError, match=message):
        forest.learn({"batch": 4}, labels)
    assert forest.predict({"batch": 4}) == before
