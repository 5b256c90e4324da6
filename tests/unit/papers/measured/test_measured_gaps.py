"""Idle gaps between two jobs: parts of measured ones and the model, by hand."""

import numpy as np
import pandas as pd
import pytest

from repro.papers.measured.gaps import GapModel, gap_parts

TIMES = ["job", "spawn_at", "train_start_at", "train_end_at", "gone_at"]


def runs(*jobs, scenario):
    return pd.DataFrame(jobs, columns=TIMES).assign(model="neumf", scenario=scenario)


def test_parts_of_a_polled_gap_add_up():
    polled = runs((0, 0.0, 8.0, 14.0, 14.8), (1, 20.0, 31.0, 37.0, 37.8), scenario="poll5")
    parts = gap_parts(polled).loc[("neumf", "poll5")]
    assert parts["save"] == pytest.approx(0.8)
    assert parts["wait"] == pytest.approx(5.2)
    assert parts["launch"] == pytest.approx(11)
    assert parts[["save", "wait", "launch"]].sum() == pytest.approx(parts["total"])


def test_of_a_launch_ahead_counts_what_is_left():
    ahead = runs((0, 0.0, 8.0, 14.0, 14.8), (1, 8.2, 19.0, 25.0, 25.8), scenario="ahead")
    parts = gap_parts(ahead).loc[("neumf", "ahead")]
    assert parts["wait"] == 0
    assert parts["ahead_of_end_s"] == pytest.approx(5.8)
    assert parts["launch"] == pytest.approx(5 - 0.8)


def test_gaps_of_the_model_add_up():
    model = GapModel(np.array([9.0, 11.0]), save_s=1.0, event_s=0.5, poll_s=2.5)
    assert model.polled == pytest.approx([12.5, 14.5])
    assert model.by_event == pytest.approx([10.5, 12.5])
    assert model.ahead(4.0) == pytest.approx([5.0, 7.0])


def test_a_hidden_launch_leaves_save_and_report():
    model = GapModel(np.array([9.0, 11.0]), save_s=1.0, event_s=0.5, poll_s=2.5)
    assert model.ahead(30.0) == pytest.approx([1.5, 1.5])
    # the longer launch is not yet hidden
    assert model.ahead(8.0) == pytest.approx([1.5, 3.0])
