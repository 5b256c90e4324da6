"""The tables of accuracy say what the committed results say, and a case comes out again."""

from __future__ import annotations

import importlib
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def accuracy():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        patch.syspath_prepend(ROOT / "tests" / "golden")
        yield importlib.import_module("accuracy")


@pytest.fixture(scope="module")
def cases(accuracy):
    return importlib.import_module("accuracy_cases")


@pytest.fixture(scope="module")
def results(accuracy):
    return accuracy.stored()


@pytest.mark.parametrize("paper", ["tiresias", "muri", "gavel", "pcs"])
def test_tables_are_those_of_the_committed_results(accuracy, results, paper):
    page = accuracy.PAGES[paper]
    found = accuracy.table(results[results["paper"] == paper])
    assert accuracy.marks.read(page, f"accuracy-{paper}") == found
    assert accuracy.marks.read(page, f"originals-{paper}") == accuracy.originals(paper)


def test_every_case_has_a_result(accuracy, cases, results):
    held = set(results[accuracy.KEY].astype(str).itertuples(index=False, name=None))
    wanted = [tuple(str(getattr(case, name)) for name in accuracy.KEY) for case in cases.read()]
    assert len(wanted) == len(set(wanted)) == len(results)
    assert set(wanted) == held


def test_policies_that_need_no_solver_are_equal_in_every_job(accuracy, results):
    without_solver = ["isolated", "gavel-fifo", "fifo-agnostic", "allox"]
    without_solver += ["srtf", "srsf", "tiresias-l", "antman"]
    simple = results[
        results["policy"].isin(without_solver) & (results["compared_with"] == "reference")
    ]
    assert len(simple) > 320
    assert accuracy.nearness(simple).exact == len(simple)


@pytest.mark.parametrize("policy", ["yarn-cs", "srsf", "tiresias-l", "tiresias-g"])
def test_a_case_comes_out_again(accuracy, cases, results, policy):
    case = next(one for one in cases.read() if (one.paper, one.policy) == ("tiresias", policy))
    row = accuracy.measured(case)
    same = (results[accuracy.KEY].astype(str) == [str(row[name]) for name in accuracy.KEY]).all(
        axis=1
    )
    [held] = results[same].to_dict("records")
    assert float(row["avg_jct"]) == held["avg_jct"]
    assert [float(row[name]) for name in accuracy.GAPS] == [held[name] for name in accuracy.GAPS]


def test_equal_priorities_are_decided_as_in_the_simulator(mirror, cases, monkeypatch):
    """All jobs at once: which of equal jobs is served hangs on the last bit of the deficits."""
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    chosen = [
        case
        for case in cases.read()
        if case.policy == "isolated"
        and case.workload == "gavel-static jobs=40"
        and case.compared_with == "reference"
        and case.cluster == "8:8:8"
    ]
    assert [cases.run(case).job_gap for case in chosen] == [0.0] * len(chosen)


def frame(**columns):
    return pd.DataFrame({"policy": "p", "settings": "", "compared_with": "solver", **columns})


def test_cases_are_counted_by_job_first_and_by_average_after(accuracy):
    gaps = {
        "avg_gap": [0.0, 0.0, 0.0005, -0.009, 0.02, None],
        "makespan_gap": [0.0, 0.0, 0.0, -0.03, 0.0, 0.0],
        "job_gap": [0.0, 0.4, 0.4, 0.4, 0.4, None],
    }
    found = frame(**gaps)
    assert accuracy.nearness(found) == accuracy.Counts(exact=2, tenth=2, percent=1, worse=1)
    row = accuracy.table(found).splitlines()[-1]
    assert row == "| p | the same with its solver | 6 | 2 | 2 | 1 | 1 | +2.0 % | −3.0 % |"


def test_differences_as_words(accuracy):
    assert [accuracy.signed(gap) for gap in (0.0, -1e-7, 0.00123, -0.0567, float("nan"))] == [
        "0",
        "0",
        "+0.12 %",
        "−5.7 %",
        "–",
    ]


def test_old_results_of_cases_that_were_not_run_stay(accuracy, cases):
    first, second, third = cases.read()[:3]
    rows = [{name: str(getattr(case, name)) for name in accuracy.KEY} for case in (first, second)]
    kept = accuracy.merged(
        [first, second, third], [rows[1] | {"jobs": 2}], [row | {"jobs": 1} for row in rows]
    )
    assert kept["jobs"].tolist() == [1, 2]


def test_equal_printed_digits_are_no_difference(cases):
    jobs = pd.DataFrame({"jct": [10.0, 10.009], "end_time": [10.0, 30.0]})
    assert cases.against_print(jobs, ("10.00", "")).avg_gap == 0.0
    assert cases.against_print(jobs, ("10.10", "")).avg_gap == pytest.approx(10.0045 / 10.1 - 1)


def test_an_unknown_paper_is_refused_in_one_line(accuracy, capsys):
    assert accuracy.main(["alibaba"]) == 2
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("accuracy: 'alibaba': give papers (tiresias, muri, gavel, pcs)")
