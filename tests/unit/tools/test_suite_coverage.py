"""Table of the statements and branches that the tests run."""

import json

import pytest

from tools import suite_coverage


@pytest.fixture
def report(tmp_path):
    """Report of coverage.py on a package of two files, of which one is half run."""
    pytest.importorskip("coverage")
    import coverage

    package = tmp_path / "repro"
    (package / "engine").mkdir(parents=True)
    (package / "__init__.py").write_text("a = 1\n")
    half = """def sign(x):
    if x < 0:
        a = 1
        b = 2
        return -1
    return 1
"""
    (package / "engine" / "half.py").write_text(half)
    data = coverage.CoverageData(basename=str(tmp_path / "data"))
    data.add_arcs(
        {
            str(package / "__init__.py"): [(-1, 1), (1, -1)],
            str(package / "engine" / "half.py"): [(-1, 1), (1, -1), (-1, 2), (2, 6), (6, -1)],
        }
    )
    data.write()
    measured = coverage.Coverage(str(tmp_path / "data"), branch=True, config_file=False)
    measured.load()
    measured.json_report(outfile=str(tmp_path / "report.json"))
    return json.loads((tmp_path / "report.json").read_text())


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_row_counts_the_statements_and_branches_of_a_subpackage(report):
    rows = suite_coverage.table(report).splitlines()
    assert rows[2] == "| `repro` | 1 | 100.0% | 0 | 0 |  |"
    assert rows[3] == "| `repro/engine` | 6 | 50.0% | 3 | 2 | 50.0% |"
    assert rows[4] == "| **all** | 7 | 57.1% | 3 | 2 | 50.0% |"


def test_lines_that_no_test_runs_are_listed(report):
    assert suite_coverage.never_run(report) == ["repro/engine/half.py: 3-5"]


def test_a_pass_with_a_failing_command_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(suite_coverage, "BUILD", tmp_path)
    with pytest.raises(SystemExit, match="coverage combine ended with exit code"):
        suite_coverage.run([], 1)
