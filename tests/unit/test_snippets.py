"""Blocks of all pages: Python runs in a test or says why not, and commands exist.

`docs/printed.py` runs a page from top to bottom. `test_printed_pages.py` has the pages that show
output.
"""

from __future__ import annotations

import importlib
import itertools
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from repro.cli.app import app
from repro.cli.lines import join_pairs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="not run from a checkout")
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("formats/*.md")]
}
#: Pages that this module runs.
RUN = ("docs/sixth_paper.md", "docs/rules-pcs-deviations.md", "docs/testbeds-liquid.md")
#: Pages that need more than a scratch folder, with the test that runs them.
ELSEWHERE = {
    "docs/adding-policy.md": "test_adding.py",
    "docs/adding-decisions.md": "test_adding.py",
    "docs/adding-placement.md": "test_adding.py",
    "docs/adding-format.md": "test_adding.py",
    "docs/adding-figure.md": "test_adding.py",
    "README.md": "test_printed_pages.py",
    "docs/start.md": "test_printed_pages.py",
    "docs/your_trace.md": "test_printed_pages.py",
    "docs/your_policy.md": "test_printed_pages.py",
    "docs/your_figure.md": "test_printed_pages.py",
    "docs/commands.md": "test_printed_pages.py",
}
#: Blocks of Python that no test runs, by page and reason: language `py` below a comment.
NOT_RUN = {
    ("docs/clusters.md", "needs Slurm"),
    ("docs/clusters.md", "needs Kubernetes"),
    ("docs/liquid.md", "a minute of regressions"),
    ("docs/pcs-fronts.md", "a search of minutes"),
    ("docs/rules-gavel-deviations.md", "minutes of simulation"),
    ("docs/rules-muri-accuracy.md", "needs a public trace"),
    ("docs/rules-tiresias-deviations.md", "minutes on the public log"),
    ("docs/testbeds-muri.md", "needs a public trace"),
    ("docs/workshop.md", "a notebook of minutes"),
}
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"^<!-- not run: (.+?) -->\n```py\n", re.MULTILINE)


@pytest.fixture(scope="module")
def printed():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield importlib.import_module("printed")


def has_language(text: str, language: str) -> bool:
    return any(found == language for found, _ in _BLOCK.findall(text))


def test_every_block_of_python_has_a_test():
    pages = {name for name, text in TEXTS.items() if has_language(text, "python")}
    assert pages == {*RUN, *(name for name in ELSEWHERE if name in pages)}
    for name, test in ELSEWHERE.items():
        if name in TEXTS:
            assert Path(name).stem in (Path(__file__).with_name(test)).read_text()


def test_blocks_that_no_test_runs_say_why():
    found = {(name, reason) for name, text in TEXTS.items() for reason in _NOT_RUN.findall(text)}
    assert found == NOT_RUN
    for name, text in TEXTS.items():
        blocks = [body for language, body in _BLOCK.findall(text) if language == "py"]
        assert len(blocks) == len(_NOT_RUN.findall(text)), name
        for body in blocks:
            compile(body, name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(printed, name, tmp_path):
    shown = [block.text for block in printed.blocks(TEXTS[name]) if block.is_printed]
    ran = printed.run_page(Path(name).stem, tmp_path)
    assert [*map(printed.without_times, ran)] == [*map(printed.without_times, shown)]


def commands(text: str) -> list[list[str]]:
    """Words of each `repro` command in the blocks of a page, also below a prompt."""
    found = []
    for language, body in _BLOCK.findall(text):
        if language not in ("", "sh", "bash", "console"):
            continue
        for line in body.replace("\\\n", " ").splitlines():
            command = re.fullmatch(r"\s*(?:\$ |run: )?(?:\.venv/bin/)?repro( .*)?", line)
            if command and not command[1].startswith(" ..."):
                words = re.split(r" (?:2?>|\||&&|;) ", command[1] or "")[0]
                found.append(shlex.split(words, comments=True))
    return found


def parse(words: list[str]) -> None:
    """Read a command line as `repro` reads it."""
    command = typer.main.get_command(app)
    words = join_pairs([word for word in words if word != "--debug"])
    parent = None
    # options of `repro` itself, such as --version
    words = list(itertools.dropwhile(lambda word: word.startswith("--"), words))
    while words and hasattr(command, "list_commands"):
        parent = command.make_context("repro", [], parent=parent, resilient_parsing=True)
        name = words[0]
        _, command, words = command.resolve_command(parent, words)
        assert command is not None, f"No such command: {name}"
    if not hasattr(command, "list_commands"):
        command.make_context("repro", words, parent=parent)


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if commands(text)])
def test_the_commands_of_a_page_exist_with_their_options(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in commands(TEXTS[name]):
        parse(words)


def test_a_command_that_does_not_exist_is_noticed():
    for words in (["simulate", "--trce", "x"], ["no-such"], ["trace", "no-such", "x"]):
        with pytest.raises(Exception, match=r"[Nn]o such"):
            parse(words)
    text = "```sh\n$ repro list --paper pcs | head  # x\nrepro run \\\n  --all\nls repro\n```\n"
    assert commands(text) == [["list", "--paper", "pcs"], ["run", "--all"]]
