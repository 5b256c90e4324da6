"""Graphs of jobs: weights on edges, the matching thick, stable bytes."""

from __future__ import annotations

import pandas as pd

from repro.plot.graph import matching_graph
from repro.plot.style import render

EDGES = pd.DataFrame(
    {
        "one": ["A", "A", "B"],
        "other": ["B", "C", "C"],
        "gamma": [1.0, 0.75, 0.5],
        "plan": [True, False, False],
    }
)


def draw():
    return matching_graph(EDGES, ends=("one", "other"), weight="gamma", chosen="plan", title="t")


def test_every_node_and_weight_is_written():
    texts = sorted(text.get_text() for text in draw().axes[0].texts)
    assert texts == ["0.5", "0.75", "1", "A", "B", "C"]


def test_only_the_chosen_edge_is_thick_and_solid():
    others, chosen = (
        one for one in draw().axes[0].collections if type(one).__name__ == "LineCollection"
    )
    assert (len(others.get_segments()), len(chosen.get_segments())) == (2, 1)
    assert chosen.get_linewidth()[0] > 2 * others.get_linewidth()[0]
    assert chosen.get_linestyle()[0][1] is None and others.get_linestyle()[0][1] is not None


def test_notes_stand_under_the_names():
    chart = matching_graph(
        EDGES, ends=("one", "other"), weight="gamma", chosen="plan", notes=dict.fromkeys("ABC", "x")
    )
    assert "A\nx" in [text.get_text() for text in chart.axes[0].texts]


def test_the_same_graph_is_the_same_bytes():
    for kind in ("png", "svg"):
        assert render(draw(), kind) == render(draw(), kind)
