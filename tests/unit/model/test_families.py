"""A name that people try runs one policy and says so, or lists the policies of its family."""

from __future__ import annotations

import dataclasses
import json
import pickle
import warnings

import pytest

from repro import simulate, simulate_many
from repro.base.errors import InputWarning, PolicyError
from repro.cli import main
from repro.figures.sweep import Case, digests
from repro.model.families import ALIASES
from repro.model.policy import Order, make, policies, register
from repro.testing import small_trace


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
        ("FIFO", ["best-effort", "fifo-agnostic", "fifo-elastic", "gavel-fifo", "yarn-cs"]),
        ("FCFS", ["best-effort", "fifo-elastic", "yarn-cs"]),
        ("las", ["gavel-las", "las-2d", "las-agnostic", "muri-l", "tiresias-l"]),
        ("ftf", ["ftf-agnostic", "gavel-ftf", "themis"]),
        ("finish-time-fairness", ["ftf-agnostic", "gavel-ftf", "themis"]),
        ("max-min-fairness", ["gavel-las", "gavel-water-filling", "max-min"]),
        ("fairness", ["gavel-las", "max-min"]),
        ("gittins", ["gittins-2d", "tiresias-g"]),
        ("SJF", ["gavel-sjf", "sjf", "srtf"]),
        ("makespan", ["gavel-makespan", "gavel-makespan-ss", "makespan-agnostic"]),
        ("min-cost-slo", ["gavel-min-cost-slo"]),
        ("tiresias", ["tiresias-g", "tiresias-l"]),
        ("muri", ["muri-l", "muri-s"]),
        ("SRTF", ["srtf"]),
        ("max_min", ["max-min"]),
    ],
)
def test_a_family_word_lists_its_policies(word, some):
    lines, names = listed(word)
    assert set(some) <= set(names) and names == sorted(names)
    assert all("'" in line or "PCS, 2024" in line for line in lines)


def test_a_line_is_name_paper_and_summary():
    lines, names = listed("FIFO")
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
        make("las")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_command_line_prints_one_a_line(capsys):
    words = ["simulate", "--trace", "tiresias-60", "--cluster", "8x8"]
    assert main([*words, "--policy", "FIFO"]) == 2
    out, err = capsys.readouterr()
    head, *lines = err.splitlines()
    assert out == "" and head == 'repro: no policy "FIFO"; policies of that family:'
    assert [line.split()[0] for line in lines] == listed("FIFO")[1]
    assert all(line.startswith("  ") for line in lines)
    assert any("Gavel, OSDI'20" in line for line in lines)


FIFO_NOTE = "fifo: runs yarn-cs (Non-preemptive FIFO; a job that does not fit blocks"


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_a_registered_policy_and_no_policy_of_its_own(alias):
    assert alias not in policies and ALIASES[alias] in policies
    policy = make(alias)
    assert (policy.name, policy.alias) == (ALIASES[alias], alias)
    assert policy == make(ALIASES[alias]) and make(ALIASES[alias]).alias == ""


def test_a_result_says_in_one_line_which_policy_an_alias_ran():
    with pytest.warns(InputWarning, match="fifo: runs yarn-cs") as said:
        result = simulate(small_trace(), "1x4", "fifo")
    (note,) = result.summary()["notes"]
    assert note.startswith(FIFO_NOTE) and str(said[0].message) == note
    assert note.endswith(
        "; others of the family: best-effort, fifo-agnostic, fifo-elastic, gavel-fifo, "
        "gavel-fifo-ss"
    )
    assert result.summary()["policy"] == "yarn-cs"
    same = simulate(small_trace(), "1x4", "yarn-cs")
    assert same.summary()["notes"] == [] and result.jobs.equals(same.jobs)


def test_the_line_is_there_for_a_policy_made_before_and_survives_a_process():
    policy = pickle.loads(pickle.dumps(make("srpt", history_ties=True)))
    with pytest.warns(InputWarning, match="srpt: runs srtf"):
        simulate(small_trace(), "1x4", policy)
    # a change in Python is a policy of its own
    assert dataclasses.replace(policy, refill=True).alias == ""


def test_runs_of_many_have_the_line_in_batches_and_one_by_one():
    with pytest.warns(InputWarning, match="2 of 3 runs have notes"):
        runs = simulate_many(small_trace(), "1x4", ["fifo", "srpt", "srtf"])
    first, second, third = runs["notes"]
    assert first.startswith(FIFO_NOTE) and second.startswith("srpt: runs srtf") and third == ""


def test_a_cached_run_of_an_alias_is_not_that_of_its_policy():
    cases = [Case(small_trace(), "1x4", name).resolved() for name in ("fifo", "fcfs", "yarn-cs")]
    assert len(set(digests(cases))) == 3


def test_the_command_line_runs_an_alias_and_says_so(capsys):
    words = ["simulate", "--trace", "tiresias-60", "--cluster", "8x8", "--json"]
    assert main([*words, "--policy", "fifo"]) == 0
    out, err = capsys.readouterr()
    assert any(line.startswith(f"repro: {FIFO_NOTE}") for line in err.splitlines())
    assert json.loads(out)["policy"] == "yarn-cs"
    assert any(note.startswith(FIFO_NOTE) for note in json.loads(out)["notes"])
    assert main(["policies", "srpt"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("srtf  ") and err.startswith("repro: srpt: runs srtf (")


def test_a_policy_of_that_name_comes_first():
    @register("fifo")
    class Mine(Order):
        def key(self, view, job):
            return -view.submit(job)

    try:
        assert type(make("fifo")) is Mine and make("fifo").alias == ""
        with warnings.catch_warnings():
            warnings.simplefilter("error", InputWarning)
            simulate(small_trace(), "1x4", "fifo")
    finally:
        del policies._items["fifo"]
