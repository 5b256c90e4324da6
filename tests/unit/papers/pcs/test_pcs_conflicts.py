"""Groups of jobs with different wishes: objectives, choices, and GPUs of each group."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from repro.base.errors import ParamError
from repro.papers.pcs.conflicts import choices, objectives, split_gpus


def test_each_group_is_measured_by_its_own_wish() -> None:
    jobs = pd.DataFrame(
        {
            "jct": [2.0, 4.0, 30.0],
            "predicted_jct": [1.0, 4.0, 20.0],
            "prefers": ["fast", "fast", "sure"],
        }
    )
    assert objectives(jobs) == [3.0, 50.0]
    assert objectives(jobs.assign(prefers="sure")) == [0.0, pytest.approx((100 + 0 + 50) / 3)]


def test_of_equals_the_better_for_the_others_is_chosen() -> None:
    values = np.array([[1.0, 9.0], [1.0, 7.0], [5.0, 2.0], [4.0, 2.0]])
    found = choices(values, np.array([False, False, True]))
    assert found == {"fast": 1, "sure": 3, "compromise": 1, "majority": 1}


@given(npst.arrays(float, (7, 2), elements=st.integers(0, 9)), st.booleans())
def test_compromise_never_costs_the_minority_more_than_the_majority_does(
    values: np.ndarray, sure: bool
) -> None:
    found = choices(values, np.array([sure]))
    loser = 0 if sure else 1
    assert values[found["compromise"], loser] <= values[found["majority"], loser] + 1e-9
    assert values[found["fast"], 0] == values[:, 0].min()
    assert values[found["sure"], 1] == values[:, 1].min()


def test_gpus_follow_work_and_no_group_is_left_without() -> None:
    jobs = pd.DataFrame({"service": [30.0, 10.0, 1e-6], "prefers": ["fast", "sure", "sure"]})
    assert split_gpus(jobs, 64) == {"fast": 48, "sure": 16}
    assert split_gpus(jobs.iloc[[0, 2]], 64) == {"fast": 63, "sure": 1}
    assert split_gpus(jobs.iloc[:1], 64) == {"fast": 64}
    assert split_gpus(jobs.iloc[:1], 1) == {"fast": 1}
    with pytest.raises(ParamError, match="1 GPU for two groups of users; give at least 2"):
        split_gpus(jobs, 1)
