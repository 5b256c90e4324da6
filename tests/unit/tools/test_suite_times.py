"""Time of the tests by folder."""

import pytest

from tools import suite_times

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.unit.solve.test_linear" name="test_a" time="2.5"/>
<testcase classname="tests.unit.test_api" name="test_b[x]" time="4.0"/>
<testcase classname="repro.model.jobs" name="repro.model.jobs.State" time="0.5"/>
<testcase classname="tests.other.test_c" name="test_c" time="1.0"/>
</testsuite></testsuites>"""


@pytest.fixture
def folders(tmp_path):
    path = tmp_path / "suite.xml"
    path.write_text(JUNIT)
    return suite_times.by_folder(path)


def test_times_are_summed_by_folder(folders):
    rows = suite_times.table(folders).splitlines()
    assert "| docstrings | 1 | 0 | 30 | `repro.model.jobs.State` (0) |" in rows
    assert "| `tests/unit` | 2 | 6 | 1,220 | `test_b` (4) |" in rows
    assert rows[-1].startswith("| **all** | 4 | 8 | ")


def test_a_folder_without_a_budget_or_over_it_is_named(folders):
    assert suite_times.over_budget(folders) == ["tests/other: no budget in tools/suite_times.py"]
    folders["tests/unit"].seconds = 1221.0
    assert "tests/unit: 1221 s, budget 1220 s" in suite_times.over_budget(folders)


def test_budgets_sum_to_the_time_that_ci_has():
    assert sum(suite_times.BUDGET_S.values()) == 2 * 30 * 60
