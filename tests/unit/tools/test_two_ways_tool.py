"""Differences of two ways are measured, counted and written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs import marks
from repro import simulate
from repro.testing import small_trace
from tools.two_ways import __main__ as command
from tools.two_ways import catalogue, measure, report
from tools.two_ways.pair import Pair, between, frames, generator, one_by_one, records, relative

ROOT = Path(__file__).resolve().parents[3]
FRAME = pd.DataFrame({"job_id": ["a", "b"], "end": [1.0, 2.0]})


def pair_of(differences, bound=0.5, aside="", long=3):
    """Pair whose cases have these differences in turn."""
    rest = iter(differences)
    compare = one_by_one(lambda rng: next(rest))
    return Pair("made up", "one", "other", bound, "s", compare, 1, long, aside)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (FRAME, 0.0),
        (FRAME.assign(end=[1.0, np.nextafter(2.0, 3.0)]), np.spacing(2.0)),
        (FRAME.assign(end=[1.0, float("nan")]), np.inf),
        (FRAME.assign(job_id=["a", "c"]), np.inf),
        (FRAME.rename(columns={"end": "start"}), np.inf),
        (FRAME.head(1), np.inf),
    ],
)
def test_a_difference_of_frames(other, difference):
    assert frames(FRAME, other) == difference


def test_a_difference_of_numbers():
    assert between([1.0, np.inf], [1.0, np.inf]) == 0
    assert between([1.0], [np.inf]) == np.inf
    assert relative([0.0, 4.0], [0.0, 5.0]) == pytest.approx(0.2)
    assert relative(np.nan, np.nan) == 0
    assert relative([1.0, 2.0], [1.0]) == np.inf


def test_a_difference_of_runs_counts_intervals_and_not_their_order():
    run = simulate(small_trace(), "1x4", "srtf")
    reversed_rows = run.intervals.iloc[::-1].reset_index(drop=True)
    other = type(run)(run.jobs, reversed_rows, run.meta)
    assert records(run, other) == 0
    later = run.intervals.assign(end=run.intervals["end"] + 0.25)
    assert records(run, type(run)(run.jobs, later, run.meta)) == 0.25


def test_a_case_is_the_same_whatever_else_runs():
    assert generator("a", 1, 2).random() == generator("a", 1, 2).random()
    assert len({generator(*key).random() for key in (("a", 1, 2), ("b", 1, 2), ("a", 2, 2))}) == 3


def test_a_difference_beyond_the_bound_is_counted_and_said(tmp_path):
    pair = pair_of([0.0, 0.25, 0.75])
    lines = []
    path = tmp_path / "rows.csv"
    kept = measure.run(path, [pair], seed=7, cases=None, budget_s=9.0, say=lines.append)
    assert not kept
    assert "made up, case 2: 0.75 s, accepted: at most 0.5 s" in lines[0]
    assert "python -m tools.two_ways case 'made up' 2 --seed 7" in lines[0]


def test_a_case_needs_a_reason_to_be_set_aside():
    assert not pair_of([]).accepts(None)
    assert pair_of([], aside="a tie").accepts(None)
    assert not pair_of([]).accepts(float("nan"))


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    pair = pair_of([0.0, 0.25, None, 0.5, 9.0], aside="a tie", long=5)
    monkeypatch.setattr(catalogue, "PAIRS", (pair,))
    path = tmp_path / "rows.csv"
    options = {"budget_s": 9.0, "say": lambda line: None}
    assert measure.run(path, [pair], seed=7, cases=3, **options)
    first = measure.read(path)["made up"]
    assert (first.cases, first.aside, first.equal, first.largest) == (3, 1, 1, 0.25)
    assert measure.run(path, [pair], seed=7, cases=4, **options)
    assert measure.read(path)["made up"].largest == 0.5
    # another seed begins again
    assert not measure.run(path, [pair], seed=8, cases=1, **options)
    again = measure.read(path)["made up"]
    assert (again.cases, again.largest, again.beyond) == (1, 9.0, 1)
    assert "| made up | one | other | 1 | 0 | 9.0e+00 s | 0.5 s |" in report.section(
        {"made up": again}
    )


def test_an_error_counts_as_beyond_the_bound_and_the_run_goes_on(tmp_path, monkeypatch):
    def compare(rng):
        if rng.random() < 0.5:
            raise ValueError("no such GPU")
        return 0.0

    pair = Pair("made up", "one", "other", 0.0, "s", one_by_one(compare), 1, 20)
    monkeypatch.setattr(catalogue, "PAIRS", (pair,))
    lines = []
    path = tmp_path / "rows.csv"
    assert not measure.run(path, [pair], seed=1, cases=None, budget_s=9.0, say=lines.append)
    row = measure.read(path)["made up"]
    assert row.cases == 20 and 0 < row.beyond < 20 and row.equal == 20 - row.beyond
    said = [line for line in lines if "ValueError: no such GPU" in line]
    assert len(said) == row.beyond


def test_names_are_unique_and_every_pair_has_cases():
    assert len(catalogue.BY_NAME) == len(catalogue.PAIRS)
    assert all(0 < pair.quick <= pair.long for pair in catalogue.PAIRS)


def test_one_case_is_repeated(capsys):
    assert command.main(["case", "first-fit", "3"]) == 0
    assert capsys.readouterr().out == "first-fit, case 3: 0 gangs\n"
    with pytest.raises(SystemExit, match="2"):
        command.main(["case", "first-fi", "3"])


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="not run from a checkout")
def test_the_page_has_the_table_of_the_file():
    rows = measure.read(command.RESULTS)
    assert marks.read(command.PAGE, report.MARK) == report.section(rows)
    for name, row in rows.items():
        assert row.beyond == 0, name
        assert row.largest <= catalogue.BY_NAME[name].bound, name
        assert row.aside <= row.cases / 2, name
