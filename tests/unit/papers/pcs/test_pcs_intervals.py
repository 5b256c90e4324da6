"""Coverage and width of bounds around predictions, counted by hand."""

import numpy as np
import pandas as pd
import pytest

from repro.papers.pcs import intervals


@pytest.fixture
def jobs():
    """Return ten jobs of two classes: one is on time, the other off by 1 to 5 times."""
    ratio = [1.0, 1, 1, 2, 1, 3, 1, 9, 1, 2]
    frame = pd.DataFrame({"jct": ratio, "predicted_jct": 1.0, "job_class": [0, 1] * 5})
    none = [np.nan] * 5
    return frame.assign(
        predicted_jct_low=[*none, *[1.0] * 5], predicted_jct_high=[*none, *[2.5] * 5]
    )


def test_classes_are_told_from_their_own(jobs):
    """At level 0.3 the extremes of the known ones bound a class as soon as there are two."""
    assert intervals.classes(jobs.drop(columns="job_class")).tolist() == [0] * 10
    found = {(row["known"], row["class"]): row for row in intervals.by_class(jobs, 0.3)}
    assert found["by class", "class 1"]["coverage"] == 100
    assert found["by class", "class 1"]["mean_width"] == 0
    # known: 1 and 2; to come: 3, 9 and 2
    assert found["by class", "class 2"]["coverage"] == pytest.approx(100 / 3)
    assert found["by class", "class 2"]["mean_width"] == pytest.approx(100)
    # one class: five are known, 1 1 1 2 1, and the second of each end bounds
    one = intervals.second_half(jobs, np.zeros(10, int), 0.3)
    assert (one["coverage"], one["mean_width"]) == (40, 0)


def test_ways_of_choosing_who_tells(jobs):
    first = np.arange(10) < 5
    ways = intervals.by_calibration(jobs, 0.3, [first, first])
    assert ways["random halves"] == ways["first half"]
    assert ways["first half"]["none"] == 0
    # half have bounds, 1 to 2.5: of these the jobs with ratios 3 and 9 are outside
    assert ways["online"]["none"] == 50
    assert ways["online"]["coverage"] == pytest.approx(60)
    assert ways["online"]["mean_width"] == pytest.approx(150)
