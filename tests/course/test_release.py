"""The student's folder."""

from __future__ import annotations

import json
import sys

import pytest
from sheets import by_command, page, tiny, write

from repro.base.errors import ParamError
from repro.cli import main
from repro_course.release import release


@by_command
def test_the_folder_of_a_student(tmp_path, capsys):
    pytest.importorskip("nbgrader", reason="repro-course brings nbgrader")
    write(tmp_path / "source/1_tiny.ipynb", tiny())
    write(tmp_path / "source/README.md", "# Begin here\n")
    words = ["course", "release", str(tmp_path / "out"), "--source", str(tmp_path / "source")]
    assert main(words) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"1_tiny.ipynb", "README.md"}
    cells = json.loads((tmp_path / "out/1_tiny.ipynb").read_text())["cells"]
    assert "raise NotImplementedError()" in cells[0]["source"]
    assert "return seconds" not in cells[0]["source"] and "HIDDEN" not in cells[1]["source"]
    assert cells[1]["metadata"]["editable"] is False
    capsys.readouterr()
    assert main(words) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_page_without_points_is_handed_out_without_outputs(tmp_path):
    pytest.importorskip("nbgrader", reason="repro-course brings nbgrader")
    write(tmp_path / "source/1_tiny.ipynb", tiny())
    write(tmp_path / "source/2_page.ipynb", page())
    made = release(tmp_path / "out", tmp_path / "source")
    assert [path.name for path in made] == ["1_tiny.ipynb", "2_page.ipynb"]
    (example,) = json.loads(made[1].read_text())["cells"]
    assert example["source"] == "1 + 1"
    assert example["outputs"] == [] and example["execution_count"] is None


def test_without_nbgrader_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    write(tmp_path / "source/1_tiny.ipynb", tiny())
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    with pytest.raises(ParamError, match="nbgrader is not installed"):
        release(tmp_path / "out", tmp_path / "source")
    assert not (tmp_path / "out").exists()
