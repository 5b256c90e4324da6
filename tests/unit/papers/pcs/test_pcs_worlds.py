"""How a chosen front stands in another world: beaten, near the new front, area lost."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from repro.papers.pcs.worlds import candidates, changed, front_quality

OBJECTIVES = ["jct", "err"]
WORK = np.geomspace(1.0, 1e5, 200)


def stored() -> pd.DataFrame:
    """Return seven solutions, the last beaten."""
    values = {"jct": [6, 5, 4, 3, 2, 1, 6], "err": [1, 2, 3, 4, 5, 6, 7]}
    box = {"T": 2.0, "W": 0.5, "zeta_min": 0.3, "delta": 0.2}
    return pd.DataFrame({"solution": range(7), **box, **values})


def test_candidates_run_along_the_front_from_end_to_end() -> None:
    found = candidates(stored(), OBJECTIVES, WORK, 3, np.zeros((3, 4)))
    # the least JCT first, then the rivals, here the same
    assert list(found) == [5, 3, 0, 7, 8, 9]
    assert all(one == found[5] for one in found.values())
    assert (found[5]["zeta_min"], found[5]["delta"]) == (0.3, 0.2)


def test_worlds_change_sizes_load_or_jobs() -> None:
    trace = pd.DataFrame({"submit_time": np.arange(25.0)})
    worlds = changed(trace, 10, errors=[20], seeds=[1, 2], loads=[0.5], windows=2, least=0.6)
    assert list(worlds) == [
        ("as searched", 0, 0),
        ("size error", 20, 1),
        ("size error", 20, 2),
        ("load", 0.5, 0),
        ("later jobs", 1, 0),
    ]
    assert worlds["size error", 20, 1][1] == 0.2
    assert worlds["load", 0.5, 0][0]["submit_time"].tolist() == list(np.arange(10) / 0.5)
    assert worlds["later jobs", 1, 0][0]["submit_time"].iloc[0] == 10


def test_rivals_are_moved_within_the_box() -> None:
    found = candidates(stored(), OBJECTIVES, WORK, 2, np.array([[0, 0, 0.5, 0], [0, 0, 0, 9]]))
    assert found[7]["zeta_min"] == pytest.approx(0.8) and found[8]["delta"] == 0.9


def test_a_candidate_with_a_class_without_weight_is_left_out() -> None:
    steep = stored().assign(T=1.05, W=3.0)
    work = np.geomspace(1.0, 1e12, 400)
    assert candidates(steep, OBJECTIVES, work, 2, np.zeros((2, 4))) == {}


def test_a_front_that_is_all_there_is_loses_nothing() -> None:
    values = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])
    found = front_quality(values, np.ones(3, bool), 0.0)
    assert found == {"kept": 100, "near": 100, "lost": 0}


def test_a_beaten_choice_is_not_kept_and_an_equal_one_is() -> None:
    values = np.array([[1.0, 3.0], [1.0, 3.0], [1.0, 4.0], [3.0, 1.0]])
    assert front_quality(values, np.ones(4, bool), 0.0)["kept"] == 75


def test_near_asks_for_every_objective() -> None:
    values = np.array([[10.0, 10.0], [11.0, 11.0], [11.0, 11.2]])
    chosen = np.array([False, True, True])
    assert front_quality(values, chosen, 0.1 + 1e-9)["near"] == 50


def test_area_that_only_others_cover_is_lost() -> None:
    # in ranges: (0, 1), (1, 0) and (0.5, 0.5), up to (1.1, 1.1)
    values = np.array([[1.0, 3.0], [3.0, 1.0], [2.0, 2.0]])
    ours = 1.1 * 0.1 + 0.1 * 1.0
    every = ours + 0.5 * 0.5
    lost = front_quality(values, np.array([True, True, False]), 0.1)["lost"]
    assert lost == pytest.approx(100 * (1 - ours / every))


def test_an_objective_in_which_all_are_equal_counts_in_its_own_unit() -> None:
    values = np.array([[1.0, 0.0], [2.0, 0.0]])
    found = front_quality(values, np.array([False, True]), 0.1)
    assert (found["kept"], found["near"]) == (100, 0)
    assert found["lost"] == pytest.approx(100 * (1 - 0.1 / 1.1))


@given(npst.arrays(float, (6, 2), elements=st.floats(0.1, 9)), st.integers(1, 5))
def test_more_chosen_lose_no_more(values: np.ndarray, number: int) -> None:
    places = np.arange(len(values))
    few, more = (front_quality(values, places < last, 0.1) for last in (number, number + 1))
    assert -1e-9 <= more["lost"] <= few["lost"] + 1e-9 <= 100 + 1e-6
    assert 0 < few["kept"] <= 100
