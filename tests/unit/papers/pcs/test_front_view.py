"""The view of one configuration on a front: its classes, its mark, its bars."""

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.papers.pcs.front_view import check_chosen, classes, front_view
from repro.policies.pcs.pcs import Pcs

WORK = np.array([1.0, 2.0, 3600.0, 7200.0, 36000.0])


def test_classes_are_those_of_the_policy():
    table = classes(Pcs((3600.0, 7200.0), (0.5, 0.3, 0.2)), WORK)
    assert table["class"].tolist() == ["to 1 h", "to 2 h", "above 2 h"]
    assert table["jobs"].tolist() == [60, 20, 20]
    assert table["weight"].tolist() == pytest.approx([50, 30, 20])
    assert table["work"].sum() == pytest.approx(100)
    cut = classes(Pcs(c2=0.5, decay=1.0), WORK)
    assert cut["jobs"].sum() == pytest.approx(100) and len(cut) > 1
    assert classes(Pcs(), WORK)["class"].tolist() == ["all jobs"]


def test_the_view_marks_the_choice_and_draws_how_far_others_move():
    front = pd.DataFrame({"avg_jct_s": [3600.0, 7200.0], "avg_pred_err_pct": [5.0, 0.0]})
    worlds = pd.DataFrame(
        {
            "world": ["a", "b", "a"],
            "solution": [0, 0, 1],
            "avg_jct_s": [1800.0, 5400.0, 7200.0],
            "avg_pred_err_pct": [4.0, 8.0, 0.0],
        }
    )
    jobs = pd.DataFrame({"jct_s": [3600.0, 60.0], "pred_err_pct": [0.0, 9.0], "series": "pcs"})
    plot = front_view(front, 1, jobs, classes(Pcs(), WORK), worlds)
    top = plot.axes[0]
    # an error of 0 stands where the axis begins
    (mark,) = [line for line in top.lines if line.get_markersize() == 9]
    assert mark.get_xydata().tolist() == [[0.001, 2.0]]
    across, up = (one.get_segments() for one in top.collections)
    assert np.array(across[0]).tolist() == [[4.0, 1.0], [8.0, 1.0]]
    assert np.array(up[0]).tolist() == [[5.0, 0.5], [5.0, 1.5]]


def test_the_choice_is_a_position_on_the_front():
    front = pd.DataFrame({"avg_jct_s": [1.0, 2.0, 3.0]})
    check_chosen(0, front)
    check_chosen(2, front)
    with pytest.raises(ParamError) as caught:
        check_chosen(3, front)
    assert str(caught.value) == (
        "chosen is 3, but 3 configurations of the front are shown; give chosen as 0 to 2, or a "
        "smaller every"
    )
    with pytest.raises(ParamError, match=r"chosen is -1, but"):
        check_chosen(-1, front)
