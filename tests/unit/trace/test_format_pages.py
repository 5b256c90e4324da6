"""Pages of docs/formats: their commands give the jobs and lines that they show."""

from __future__ import annotations

import inspect
import io
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from repro.cli import main
from repro.trace.formats import FORMATS, required_columns
from repro.trace.load import load

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "formats"
#: Formats of this package, without those of other packages and of other tests.
OWN = [name for name in FORMATS if FORMATS[name].__module__.startswith("repro.trace.formats.")]
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A command of a page, and the texts that it must give by name (a file, stdout or stderr)."""

    words: list[str]
    expected: dict[str, str]


def read_page(name: str) -> tuple[dict[str, str], list[Example]]:
    """Input files of a page by name, and its examples."""
    files: dict[str, str] = {}
    examples: list[Example] = []
    for language, title, body in _BLOCK.findall((FOLDER / f"{name}.md").read_text()):
        file_name = title.strip()
        if language == "bash" and body.startswith("repro "):
            examples.append(Example(shlex.split(body)[1:], {}))
        elif file_name in ("stdout", "stderr") or (examples and file_name in examples[-1].words):
            examples[-1].expected[file_name] = body
        elif file_name:
            files[file_name] = body
    return files, examples


def table(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


@pytest.mark.parametrize("name", [*OWN, "clusters"])
def test_the_examples_of_a_page(name, tmp_path, monkeypatch, capsys):
    files, examples = read_page(name)
    assert examples and all(example.expected for example in examples)
    monkeypatch.chdir(tmp_path)
    for file_name, text in files.items():
        Path(file_name).write_text(text)
    for words, expected in examples:
        assert main(words) == 0
        shown = capsys.readouterr()
        for file_name, text in expected.items():
            if file_name == "stdout":
                assert shown.out == text
            elif file_name == "stderr":
                assert shown.err == text
            else:
                written = table(Path(file_name).read_text())
                pd.testing.assert_frame_equal(
                    written, table(text), check_dtype=False, check_exact=False, rtol=1e-12
                )


@pytest.mark.parametrize("name", OWN)
def test_a_page_has_five_rows_and_all_names(name):
    text = (FOLDER / f"{name}.md").read_text()
    _, examples = read_page(name)
    assert any("stderr" in example.expected for example in examples)
    assert text.startswith(f"# {name}: ")
    for column in required_columns(name):
        assert re.search(rf"\b{column}\b", text), column
    for option in list(inspect.signature(FORMATS[name]).parameters)[1:]:
        assert f"`{option}=" in text, option
    assert ("Options: none." in text) == (len(inspect.signature(FORMATS[name]).parameters) == 1)


@pytest.mark.parametrize("name", OWN)
def test_python_gives_the_same_jobs_as_the_command(name, tmp_path, monkeypatch):
    """The first example of a page, by `repro.load` with the options of the command."""
    files, examples = read_page(name)
    monkeypatch.chdir(tmp_path)
    for file_name, text in files.items():
        Path(file_name).write_text(text)
    words, expected = examples[0]
    options = {}
    for option, value in pairwise(words):
        if option == "--set":
            key, _, value = value.partition("=")
            options[key] = value
        elif option in ("--map", "--unit"):
            options[option.removeprefix("--")] = value
    frame = load(words[2], name, **options)
    columns = table(expected["jobs.csv"]).columns
    again = table(frame[list(columns)].to_csv(index=False))
    pd.testing.assert_frame_equal(
        again, table(expected["jobs.csv"]), check_dtype=False, check_exact=False, rtol=1e-12
    )


def test_the_index_has_every_page_and_no_other():
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"README"}
    assert pages == {*OWN, "clusters"}
    linked = re.findall(r"\]\(([\w-]+)\.md\)", (FOLDER / "README.md").read_text())
    assert set(linked) == pages
    for path in FOLDER.glob("*.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (FOLDER / target).exists(), (path.name, target)
