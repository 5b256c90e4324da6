"""Every policy on a trace of every paper: it runs to the end, or is refused before the run."""

from __future__ import annotations

import csv
from pathlib import Path

import crossing_cases as cases
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "crossing.csv"
#: refused for what the jobs lack or ask for, not for where they come from
REFUSED_DRESSED = {"allox"}


def names():
    """Registered policies of the package."""
    return sorted({policy for policy, *_ in cases.all_combinations()})


def check(outcome):
    """Check one combination: a whole run, or a refusal of one line before the first event."""
    where = (outcome.policy, outcome.trace, outcome.cluster, outcome.dress)
    if outcome.runs:
        # nobody takes a V100 for a K80 in silence
        assert outcome.cluster == "equal" or outcome.has_speeds != outcome.types_are_equal, where
        return
    assert outcome.line and "\n" not in outcome.line, where
    assert ", time " not in outcome.line, where
    # the same refusal when the run ends at the first submission: nothing was simulated
    first = cases.crossing(
        *where, stop_time=float(cases.jobs_of(*where[1::2])["submit_time"].min())
    )
    assert first.line == outcome.line, where


@pytest.mark.parametrize("policy", names())
def test_a_policy_on_a_trace_of_each_paper_and_mixed_gpus(policy):
    for trace in cases.TRACES:
        outcome = cases.crossing(policy, trace, "mixed", "dressed")
        check(outcome)
        assert outcome.runs or policy in REFUSED_DRESSED, outcome.line


@pytest.mark.nightly
@pytest.mark.parametrize("cluster", cases.CLUSTERS)
@pytest.mark.parametrize("dressing", cases.DRESSES)
@pytest.mark.parametrize("policy", names())
def test_all_combinations(policy, cluster, dressing):
    for trace in cases.TRACES:
        check(cases.crossing(policy, trace, cluster, dressing))


def test_the_page_has_every_combination():
    with PAGE.open() as file:
        rows = list(csv.DictReader(file))
    listed = {(row["policy"], row["trace"], row["cluster"], row["dress"]) for row in rows}
    assert listed == set(cases.all_combinations())


@pytest.mark.parametrize("policy", ["srtf", "muri-s", "pcs", "liquid", "gavel-las"])
def test_the_page_is_true(policy):
    with PAGE.open() as file:
        rows = [row for row in csv.DictReader(file) if row["policy"] == policy]
    for row in rows:
        if row["cluster"] == "mixed" and row["dress"] == "plain":
            outcome = cases.crossing(policy, row["trace"], "mixed", "plain")
            check(outcome)
            assert outcome.runs == (row["runs"] == "True"), row
            assert outcome.line == row["line"], row
