"""Page of each paper: form, pictures, policies, and the commands under "Run it"."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from repro.cli import app
from repro.figures import params
from repro.model.policy import policies
from repro.model.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = (
    "What it asks",
    "Model and algorithm",
    "In repro",
    "What the evaluation shows",
    "Where artifact and paper differ",
    "What came out",
    "Run it",
)
PAPERS = ("tiresias", "muri", "liquid")
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "tiresias.md").exists(), reason="not run from a checkout"
)


def page(paper: str) -> str:
    """Text of a page."""
    return (ROOT / "docs" / f"{paper}.md").read_text(encoding="utf-8")


def section(paper: str, heading: str) -> str:
    """Text of a section of a page."""
    return page(paper).split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("paper", (*PAPERS, "gavel", "pcs"))
def test_a_page_has_the_common_headings_in_order(paper):
    assert tuple(re.findall(r"^## (.+)$", page(paper), re.M)) == HEADINGS


@pytest.mark.parametrize("paper", PAPERS)
def test_two_to_four_pictures_of_the_paper_have_a_text_and_a_caption(paper):
    pictures = re.findall(
        r"^!\[(.+?)\]\((\S+)\)\n\n\*(.+?)\*$", section(paper, HEADINGS[3]), re.M | re.S
    )
    assert 2 <= len(pictures) <= 4
    assert len(pictures) == page(paper).count("](../figures/") - page(paper).count("index.html)")
    for text, path, caption in pictures:
        folder = (ROOT / "docs" / path).resolve().parent
        assert folder.parent == ROOT / "figures" / paper
        assert len(text) > 20
        assert "published" in caption or "authors' values" in caption


@pytest.mark.parametrize("paper", PAPERS)
def test_named_policies_and_rules_exist(paper):
    rows = re.findall(r"^\|(.+)\|$", section(paper, "In repro"), re.M)
    column = 0 if paper == "liquid" else 1
    cells = [row.split("|")[column] for row in rows if "notebooks/" not in row]
    names = [name for cell in cells for name in re.findall(r"`([a-z][\w-]*)`", cell)]
    assert len(names) > 5
    assert set(names) <= set(policies)
    for rules in re.findall(r"--rules (\w+)", page(paper)):
        assert rules in RULES


def commands(paper: str) -> list[list[str]]:
    """Arguments of the commands of a page's last section."""
    (text,) = re.findall(r"^```bash\n(.*?)^```$", section(paper, "Run it"), re.M | re.S)
    lines = [shlex.split(line) for line in text.splitlines()]
    assert all(words[0] == "repro" for words in lines)
    return [words[1:] for words in lines]


@pytest.mark.parametrize("paper", PAPERS)
def test_run_it_has_three_commands_and_names_one_figure_each(paper):
    assert len(commands(paper)) == 3
    for words in commands(paper):
        if words[0] == "run":
            (figure,) = words[1:]
            assert params.resolve(figure, params.discover(ROOT)).paper == paper


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_the_simulation_of_run_it_finishes_all_jobs(paper, capsys):
    (words,) = [words for words in commands(paper) if words[0] == "simulate"]
    assert app.main(words) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["n_finished"] == shown["n_jobs"] != "0"
