"""A result that is damaged is no result: it is run again, and nothing else suffers."""

import json

import pytest

from repro.figures.saved import read_error, read_result, remove_unfinished


@pytest.mark.slow
def test_a_damaged_result_is_run_again_and_the_others_go_on(project):
    project.add("tiresias/fig01_one")
    project.add("tiresias/fig02_two")
    project.cli("run", "--all", "-j", "2")
    file = project.folder("tiresias/fig01_one") / "result.json"
    whole = file.read_bytes()
    file.write_text(json.dumps({**json.loads(whole), "claims": 3}))
    other = project.cli("run", "tiresias/fig02")
    assert "1 of 1 figures are current" in other.stdout and other.stderr == ""
    assert "1 figure damaged" in project.cli("check", code=1).stdout
    again = project.cli("run", "--all")
    assert "1 of 2 figures are current" in again.stdout
    assert "fig01_one: 2 of 2 claims reproduced" in again.stdout
    assert json.loads(file.read_bytes())["claims"] == json.loads(whole)["claims"]
    project.cli("check")


def test_absent_files_are_told_from_damaged_ones(tmp_path):
    assert read_result(tmp_path) == read_error(tmp_path) == ({}, "")
    (tmp_path / "result.json").mkdir()
    found, wrong = read_result(tmp_path)
    assert not found and wrong.startswith("result.json: cannot be read (it is a folder)")
    (tmp_path / "error.json").write_text('{"error": "x", "more": 1}')
    assert read_error(tmp_path) == ({"error": "x", "more": 1}, "")


@pytest.mark.parametrize(
    ("name", "is_unfinished"),
    [
        (".fig-08.svg-0123456789abcdef", True),
        (".fig-08.svg.swp", False),
        (".fig-08.svg-0123456789abcde", False),
        (".fig-08.svg-0123456789abcdef~", False),
        ("fig-08.svg-0123456789abcdef", False),
    ],
)
def test_only_unfinished_files_of_the_writer_are_removed(tmp_path, name, is_unfinished):
    (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    assert (tmp_path / name).exists() != is_unfinished
