"""Diagrams: boxes and arrows where they should be, no text over another, stable bytes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from repro.figures import params
from repro.papers.diagrams import diagram_boxes
from repro.plot.diagram import diagram_chart
from repro.plot.style import render

ROOT = Path(__file__).resolve().parents[3]
LONG = "policies.tiresias.tiresias_l.TiresiasL.some_long_name"
INPUTS = {
    "rows": {"above": ["user", "queue"], "below": [None, "engine"]},
    "boxes": {
        "user": {"is": "who submits"},
        "queue": {"is": "jobs", "by": "core.jobs.JobTable"},
        "engine": {"is": "clock", "by": ["sim.engine.Engine", LONG]},
    },
    "arrows": [["user", "queue", "submits"], ["queue", "engine", "", 0.2]],
}
DRAWN = {
    entry.id: spec.inputs
    for entry, spec in params.loaded(params.discover(ROOT))[0].items()
    if spec.kind == "diagram" and "boxes" in spec.inputs
}


def draw(inputs=INPUTS):
    return diagram_chart(diagram_boxes(inputs), inputs["arrows"])


def test_boxes_arrows_and_words_are_drawn():
    axes = draw().axes[0]
    kinds = [type(patch) for patch in axes.patches]
    assert kinds.count(FancyBboxPatch) == 3 and kinds.count(FancyArrowPatch) == 2
    texts = [text.get_text() for text in axes.texts]
    assert {"above", "below", "who submits", "jobs", "core.jobs.JobTable", "submits"} <= set(texts)


def test_what_is_outside_is_dashed():
    boxes = [patch for patch in draw().axes[0].patches if isinstance(patch, FancyBboxPatch)]
    assert [box.get_linestyle() == "-" for box in boxes] == [False, True, True]


def test_long_names_are_broken_at_dots():
    texts = [text.get_text() for text in draw().axes[0].texts]
    assert "sim.engine.Engine\npolicies.tiresias.tiresias_l.TiresiasL\n.some_long_name" in texts


def test_the_same_diagram_is_the_same_bytes():
    for kind in ("png", "svg"):
        assert render(draw(), kind) == render(draw(), kind)


@pytest.mark.parametrize("name", DRAWN)
def test_no_text_of_a_committed_diagram_lies_on_another_or_leaves_its_box(name):
    figure = draw(DRAWN[name])
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [one.get_window_extent() for one in axes.patches if isinstance(one, FancyBboxPatch)]
    texts = [(text.get_text(), text.get_window_extent()) for text in axes.texts]
    for (one, here), (other, there) in itertools.combinations(texts, 2):
        assert not here.shrunk(0.9, 0.8).overlaps(there.shrunk(0.9, 0.8)), (one, other)
    for text, extent in texts:
        assert figure.bbox.x0 <= extent.x0 and extent.x1 <= figure.bbox.x1, text
        for box in boxes:
            inside = box.x0 <= extent.x0 and extent.x1 <= box.x1
            assert inside or not extent.shrunk(0.98, 0.98).overlaps(box), text
