"""Boxes of diagrams: their places, and whether what they name is in the package."""

from __future__ import annotations

import pytest

from repro.papers.diagrams import diagram_boxes, exists

INPUTS = {
    "rows": [["a", None, "b"], ["c"]],
    "boxes": {
        "a": {"is": "outside"},
        "b": {"is": "two", "by": ["engine.simulate", "model.view.View"]},
        "c": {"is": "one that is gone", "by": ["engine.simulate", "model.view.NoView"]},
    },
}


def test_rows_are_spread_over_the_width_and_empty_places_stay_empty():
    table = diagram_boxes(INPUTS).set_index("box")
    assert table["row"].to_dict() == {"a": 0, "b": 0, "c": 1}
    assert table["place"].tolist() == pytest.approx([1 / 6, 5 / 6, 1 / 2])
    assert set(table["layer"]) == {""}


def test_one_name_that_is_gone_is_enough():
    table = diagram_boxes(INPUTS).set_index("box")
    assert table["found"].to_dict() == {"a": True, "b": True, "c": False}
    assert table.loc["b", "names"] == "engine.simulate model.view.View"


def test_named_rows_are_layers():
    table = diagram_boxes({**INPUTS, "rows": {"top": ["a"], "bottom": ["b", "c"]}})
    assert table["layer"].tolist() == ["top", "bottom", "bottom"]


@pytest.mark.parametrize("name", ["nothing", "engine.simulate.simulat", "engine..simulate", ""])
def test_names_that_do_not_exist(name):
    assert not exists(name)


@pytest.mark.parametrize("name", ["engine", "engine.simulate", "engine.simulate.simulate"])
def test_names_of_modules_classes_and_functions(name):
    assert exists(name)
