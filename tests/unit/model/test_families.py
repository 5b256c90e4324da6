"""A word that several policies share answers with them, one a line, each with its paper."""

from __future__ import annotations

import pickle

import pytest

from repro.base.errors import PolicyError
from repro.cli import main
from repro.model.policy import make, policies


def listed(word):
    """Return the lines of the answer to a word, and the names that they begin with."""
    with pytest.raises(PolicyError) as caught:
        make(word)
    head, *lines = str(caught.value).splitlines()
    assert head == f'no policy "{word}"; policies of that family:'
    return lines, [line.split()[0] for line in lines]


@pytest.mark.parametrize(
    ("word", "some"),
    [
        ("fifo", ["best-effort", "fifo-agnostic", "fifo-elastic", "gavel-fifo", "yarn-cs"]),
        ("fcfs", ["best-effort", "fifo-elastic", "yarn-cs"]),
        ("las", ["gavel-las", "las-2d", "las-agnostic", "muri-l", "tiresias-l"]),
        ("ftf", ["ftf-agnostic", "gavel-ftf", "themis"]),
        ("finish-time-fairness", ["ftf-agnostic", "gavel-ftf", "themis"]),
        ("max-min-fairness", ["gavel-las", "gavel-water-filling", "max-min"]),
        ("fairness", ["gavel-las", "max-min"]),
        ("gittins", ["gittins-2d", "tiresias-g"]),
        ("sjf", ["gavel-sjf", "srtf"]),
        ("makespan", ["gavel-makespan", "gavel-makespan-ss", "makespan-agnostic"]),
        ("min-cost-slo", ["gavel-min-cost-slo"]),
        ("tiresias", ["tiresias-g", "tiresias-l"]),
        ("muri", ["muri-l", "muri-s"]),
        ("FIFO", ["yarn-cs"]),
        ("SRTF", ["srtf"]),
        ("max_min", ["max-min"]),
    ],
)
def test_a_family_word_lists_its_policies(word, some):
    lines, names = listed(word)
    assert set(some) <= set(names) and names == sorted(names)
    assert all("'" in line or "PCS, 2024" in line for line in lines)


def test_a_line_is_name_paper_and_summary():
    lines, names = listed("fifo")
    (line,) = (line for line in lines if line.split()[0] == "gavel-fifo")
    name, paper, summary = (part.strip() for part in line.strip().split("  ") if part)
    assert (name, paper) == ("gavel-fifo", "Gavel, OSDI'20")
    assert summary == policies["gavel-fifo"].__doc__.splitlines()[0]
    assert "muri-l" not in names


@pytest.mark.parametrize("word", ["l", "s", "2", "", "-", "fifo-x", "elastic fifo", "quantum"])
def test_what_is_no_word_of_a_family_gets_near_names(word):
    with pytest.raises(PolicyError, match="unknown policy") as caught:
        make(word)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["gandiva", "max-min", "srtf", "liquid"])
def test_a_registered_policy_is_itself(name):
    assert make(name).name == name


def test_a_name_in_capitals_is_listed():
    for name in policies:
        names = listed(name.upper())[1]
        assert name in names


def test_the_answer_survives_a_process():
    with pytest.raises(PolicyError) as caught:
        make("fifo")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_command_line_prints_one_a_line(capsys):
    words = ["simulate", "--trace", "tiresias-60", "--cluster", "8x8"]
    assert main([*words, "--policy", "fifo"]) == 2
    out, err = capsys.readouterr()
    head, *lines = err.splitlines()
    assert out == "" and head == 'repro: no policy "fifo"; policies of that family:'
    assert [line.split()[0] for line in lines] == listed("fifo")[1]
    assert all(line.startswith("  ") for line in lines)
    assert any("Gavel, OSDI'20" in line for line in lines)
