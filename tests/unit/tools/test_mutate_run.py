"""Runs of mutants on a small project: tests that find them, limits, and runs that go on."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.mutate import __main__ as command_line
from tools.mutate import report, run, suite, trial
from tools.mutate.blocks import IMPORT
from tools.mutate.operators import Mutant, mutants
from tools.mutate.run import Options
from tools.mutate.suite import Test as Case
from tools.mutate.suite import choose

# one process makes the mutants, for all tests
pytestmark = pytest.mark.xdist_group("mutate")

ROOT = Path(__file__).resolve().parents[3]
MODULE = "repro.engine.small"
PATH = "repro/engine/small.py"

SOURCE = '''\
"""A module."""

from functools import cache

SIZE = 4


def countdown(start):
    """Steps to zero."""
    steps = 0
    while start > 0:
        start -= 1
        steps += 1
    return steps


@cache
def table():
    """A list that is kept."""
    return [SIZE, SIZE + 1]


def unseen(a):
    """No test calls it."""
    return a * 2
'''

TESTS = '''\
"""Tests of the module."""

import os

import pytest

from repro.engine.small import SIZE, countdown, table


@pytest.fixture(scope="module")
def steps():
    return countdown(3)


def test_type(steps):
    assert isinstance(steps, int)


def test_value(steps):
    assert steps == 3


def test_size():
    assert SIZE == 4


def test_length():
    assert len(table()) == 2


def test_table():
    assert table()[0] == SIZE


def test_compiled():
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"
    assert countdown(0) == 1


@pytest.mark.nightly
def test_nightly():
    assert False
'''


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    root = tmp_path_factory.mktemp("checkout")
    files = {
        "repro/__init__.py": "",
        "repro/engine/__init__.py": "",
        PATH: SOURCE,
        "tests/unit/engine/test_small.py": TESTS,
        "tools/__init__.py": "",
        ".gitignore": "build/\nignored.txt\n",
        "ignored.txt": "",
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["nightly: x", "slow: x"]\n',
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copytree(ROOT / "tools" / "mutate", root / "tools" / "mutate")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


@pytest.fixture(scope="module")
def outcome(checkout):
    """Lines of results of all mutants of the small project, and what the run printed."""
    printed = []
    count = run.run(Options(checkout, processes=2), printed.append)
    lines = run.read_lines(Options(checkout).results_file)
    assert count == len({line["id"] for line in lines}) == len(lines)
    return {(line["function"], line["new"]): line for line in lines}, printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "new", "status", "tests"),
    [
        ("countdown", "steps = 1", "killed", ["test_value"]),
        # an endless loop, in the fixture
        ("countdown", "start += 1", "timeout", ["test_type", "test_value"]),
        ("countdown", "while start >= 0:", "killed", ["test_value"]),
        ("", "SIZE = 5", "killed", ["test_size"]),
        ("table", "return None", "killed", ["test_length", "test_table"]),
        # tests look at the length and the first entry
        ("table", "return [SIZE, SIZE - 1]", "survived", None),
        ("unseen", "return a / 2", "survived", None),
    ],
)
def test_mutants_are_found_by_the_tests_that_look(outcome, function, new, status, tests):
    line = outcome[0][function, new]
    assert line["status"] == status
    if tests:
        assert line["test"].rpartition("::")[2] in tests
    else:
        assert line["test"] is None


@pytest.mark.slow
def test_tests_that_share_a_fixture_or_a_kept_result_all_count(outcome):
    lines, _ = outcome
    # test_type and test_value
    assert lines["countdown", "steps = 1"]["tests"] == 2
    # test_length and test_table
    line = lines["table", "return [SIZE, SIZE - 1]"]
    assert line["tests"] == 2
    assert line["reached"]
    # no test reaches it, so all tests of the module ran
    line = lines["unseen", "return a / 2"]
    assert not line["reached"]
    assert line["tests"] == 4
    # all tests of the file that imports it
    assert lines["", "SIZE = 5"]["tests"] == 5


@pytest.mark.slow
def test_failing_and_nightly_tests_judge_nothing(outcome):
    _, printed = outcome
    (line,) = [line for line in printed if "judge mutants" in line]
    # test_compiled fails; test_nightly does not even run
    assert line == "5 tests judge mutants, 1 are skipped, fail or take too long"


@pytest.mark.slow
def test_the_checkout_stays_as_it_is_and_a_second_run_has_nothing_to_do(checkout, outcome):
    assert (checkout / PATH).read_text() == SOURCE
    assert not list(checkout.glob("repro/**/__pycache__"))
    printed = []
    assert run.run(Options(checkout), printed.append) == 0
    count = len(run.read_lines(Options(checkout).results_file))
    assert count >= len(outcome[0])
    assert printed == [f"{count} mutants, {count} with a result"]


@pytest.mark.slow
def test_a_line_that_was_cut_off_is_run_again(checkout, outcome):
    file = checkout / "build" / "cut.jsonl"
    text = Options(checkout).results_file.read_text()
    file.write_text(text[:-40])
    printed = []
    assert run.run(Options(checkout, processes=1, results=file), printed.append) == 1
    # lines: the count, the tests, the mutant; the map is complete
    assert len(printed) == 3
    before = json.loads(text.splitlines()[-1])
    lines = run.read_lines(file)
    assert len(lines) == len(text.splitlines())
    after = lines[-1]
    volatile = ("cpu_s", "wall_s")
    assert {k: v for k, v in after.items() if k not in volatile} == {
        k: v for k, v in before.items() if k not in volatile
    }


@pytest.mark.nightly
def test_a_test_that_fails_without_the_mutant_finds_nothing(checkout, tmp_path):
    root = tmp_path / "checkout"
    shutil.copytree(checkout, root, ignore=shutil.ignore_patterns("build"))
    # fails in all runs but the first, which is that of the map
    flaky = """
import pathlib
from repro.engine.small import unseen

def test_flaky():
    note = pathlib.Path(__file__).with_name("note")
    assert unseen(1) and not note.exists()
    note.touch()
"""
    (root / "tests/unit/engine/test_flaky.py").write_text(flaky)
    printed = []
    options = Options(root, only=(PATH,), processes=1)
    run.run(options, printed.append)
    lines = {line["new"]: line for line in run.read_lines(options.results_file)}
    assert lines["return a / 2"]["status"] == "survived"
    left_out = [line for line in printed if line.startswith("left out, as it fails without")]
    assert len(left_out) == 1
    assert "test_flaky" in left_out[0]


@pytest.mark.slow
def test_one_mutant_can_be_tried_with_any_tests(checkout, capfd):
    (mutant,) = [
        mutant for mutant in mutants(SOURCE, PATH) if mutant.diff(SOURCE)[1] == "return a / 2"
    ]
    words = ["-q", "tests/unit/engine/test_small.py", "-k", "test_size"]
    assert trial.run(checkout, mutant.id, words) == 0
    assert trial.run(checkout, "0123456789", []) == 2
    printed = capfd.readouterr()
    assert f"{PATH}:25 unseen\n- return a * 2\n+ return a / 2" in printed.out
    assert "1 passed" in printed.out
    assert printed.err == "no mutant 0123456789 in this state of the source\n"


def test_samples_are_nested_and_shards_are_disjoint(checkout):
    def names(**options):
        return [mutant.id for mutant, _ in run.sample(Options(checkout, **options))]

    every = names()
    assert names(sample=5) == every[:5]
    assert names(seed=1) != every
    assert sorted(names(seed=1)) == sorted(every)
    shards = [names(sample=7, shard=(number, 3)) for number in (1, 2, 3)]
    assert sorted(name for shard in shards for name in shard) == sorted(every[:7])
    assert names(only=("repro/policies/*",)) == []


def mutant_at(block):
    return Mutant(PATH, "f", "constant", 1, 0, 1, "2", block)


def test_the_namesake_of_a_module_comes_first_then_the_fastest_test():
    other = Case("tests/unit/policies/test_other.py::a", 0.1, {MODULE: 0b10})
    slow = Case("tests/unit/policies/test_other.py::b", 0.3, {MODULE: 0b11})
    own = Case("tests/unit/engine/test_small.py::c", 1.0, {MODULE: 0b10})
    elsewhere = Case("tests/unit/engine/test_small.py::d", 0.1, {"repro.engine.other": 0b10})
    tests = [slow, elsewhere, own, other]
    choice = choose(tests, mutant_at(1), budget_s=10.0)
    assert choice == suite.Choice(((own, other, slow),), left_out=0, is_reached=True)
    choice = choose(tests, mutant_at(1), budget_s=1.15)
    assert choice == suite.Choice(((own, other),), left_out=1, is_reached=True)
    choice = choose(tests, mutant_at(1), 10.0, excluded={own.name})
    assert choice.stages == ((other, slow),)
    assert choose(tests, mutant_at(0), 10.0).stages == ((slow,),)


@pytest.mark.parametrize("block", [IMPORT, 7])
def test_a_mutant_that_no_test_reaches_is_judged_by_the_tests_of_its_module(block):
    one = Case("tests/unit/engine/test_a.py::a", 0.2, {MODULE: 0b10})
    importing = Case("tests/unit/engine/test_a.py::b", 0.1, {}, frozenset({MODULE}))
    expected = (one, importing) if block == IMPORT else (one,)
    choice = choose([importing, one], mutant_at(block), 10.0)
    assert choice == suite.Choice((expected,), 0, is_reached=False)
    assert choose([], mutant_at(block), 10.0) == suite.Choice((), 0, is_reached=False)


def test_tests_of_many_files_run_in_two_stages():
    tests = [
        Case(f"tests/unit/policies/test_{number}.py::a", 0.1 * number, {MODULE: 1})
        for number in range(1, 6)
    ]
    first, later = choose(tests, mutant_at(0), 10.0).stages
    assert first == tuple(tests[:3])
    assert later == tuple(tests[3:])


def test_a_survivor_runs_again_after_a_change_of_the_tests(checkout):
    keys = suite.Keys(checkout)
    lines = [
        {"id": "a", "source": "s", "status": "survived", "suite": keys.suite},
        {"id": "b", "source": "s", "status": "survived", "suite": "before"},
        {"id": "c", "source": "s", "status": "killed", "suite": "before"},
    ]
    assert set(run.known_results(lines, keys)) == {("a", "s"), ("c", "s")}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run", "--shard", "4/3"], "4/3: the first number is 1 to the second"),
        (["run", "--shard", "x"], "x: write it like 3/8"),
        (["run", "--sample", "0"], "0 is below 1"),
        ([], "the following arguments are required"),
    ],
)
def test_wrong_words_are_one_line(words, line, capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(words)
    assert ended.value.code == 2
    assert line in capsys.readouterr().err


def test_options_behind_an_id_are_those_of_pytest(monkeypatch):
    called = []
    monkeypatch.setattr(trial, "run", lambda root, name, words: called.append((name, words)) or 0)
    assert command_line.main(["try", "0123456789", "-q", "tests", "-m", "nightly"]) == 0
    assert called == [("0123456789", ["-q", "tests", "-m", "nightly"])]


def test_the_counts_of_a_sample(capsys):
    assert command_line.main(["list", "--only", "repro/placement/*.py", "--sample", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["9", "in", "all"]
    assert sum(int(line.split()[0]) for line in lines[:-1]) == 9


# the page --------------------------------------------------------------------------------------


def row(name, status, path=PATH, line=1):
    return {
        "id": name,
        "path": path,
        "line": line,
        "status": status,
        "old": "a | b",
        "new": "a & b",
        "cpu_s": 2.0,
        "date": "2026-01-01",
        "commit": "abc",
    }


def test_the_page_has_scores_and_survivors():
    rows = [row("a", "killed"), row("b", "timeout"), row("c", "survived"), row("d", "survived")]
    known = {"c": ("equivalent", "same sum"), "a": ("untested", "found since")}
    text = report.section(rows, known)
    assert "4 mutants of 1 files, run on 2026-01-01 at `abc`" in text
    assert "2.0 s of CPU time" in text
    # 2 of 3: one of the two survivors is equivalent
    assert "| `repro/engine` | 4 | 1 | 1 | 2 | 1 | 66.7 % | 21 … 94 % |" in text
    assert "| **all** | 4 | 1 | 1 | 2 | 1 | 66.7 % | 21 … 94 % |" in text
    assert "| engine/small.py:1 (c) | `` a \\| b `` | `` a \\& b ``".replace("\\&", "&") in text
    assert "equivalent: same sum" in text
    assert "not looked at" in text
    assert "found since" not in text


def test_wilson():
    # the interval of 81 of 263 in the table of Newcombe (1998): 0.2553 to 0.3662
    low, high = report.wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_results_of_another_source_do_not_count(checkout):
    first, second = mutants(SOURCE, PATH)[:2]
    lines = [
        {"id": first.id, "source": suite.short_hash(SOURCE), "status": "killed"},
        {"id": second.id, "source": "another", "status": "killed"},
    ]
    assert [line["id"] for line in report.current(checkout, lines)] == [first.id]


def test_reasons_have_a_kind_and_a_text(tmp_path):
    file = tmp_path / "mutants.csv"
    assert report.reasons(file) == {}
    file.write_text("id,kind,reason\na,equivalent,same\n")
    assert report.reasons(file) == {"a": ("equivalent", "same")}
    file.write_text("id,kind,reason\na,other,same\n")
    with pytest.raises(ValueError, match="a needs a kind"):
        report.reasons(file)
    assert report.reasons(ROOT / report.REASONS)
