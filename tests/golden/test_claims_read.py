"""The list of claims that were read: whether each could fail, and whether it is about the paper."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd

from repro.figures import params

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = ("could_fail", "about_the_paper", "tolerance_fits")
COLUMNS = ("figure", "claim", *ANSWERS, "action", "reason")
ACTIONS = {"keep", "check", "reword", "tighten"}


def rows():
    """Rows of docs/claims_read.csv as texts."""
    path = ROOT / "docs" / "claims_read.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert tuple(table.columns) == COLUMNS
    return table


def kinds():
    """Kind of each claim by figure and id, without those of a user's own figures."""
    return {
        (entry.id, claim.id): claim.kind
        for entry in params.discover()
        if not entry.id.startswith("own/")
        for claim in entry.load().claims
    }


def test_every_claim_about_a_paper_was_read():
    table = rows()
    read = list(zip(table["figure"], table["claim"], strict=True))
    assert [claim for claim, count in Counter(read).items() if count > 1] == []
    known = kinds()
    assert set(read) - set(known) == set()
    assert {claim for claim, kind in known.items() if kind != "check"} - set(read) == set()


def test_answers_and_actions_are_words_of_the_list():
    table = rows()
    assert table[list(ANSWERS)].isin(["yes", "no"]).all(axis=None)
    assert set(table["action"]) <= ACTIONS
    assert (table["reason"] != "").all()


def test_the_action_follows_from_the_answers_and_was_taken():
    known = kinds()
    for row in rows().itertuples():
        is_check = known[row.figure, row.claim] == "check"
        assert is_check == (row.action == "check"), (row.figure, row.claim)
        if row.action in ("reword", "tighten"):
            assert row.tolerance_fits == "no" or row.about_the_paper == "no"
        # a claim that says nothing of the paper is a check; nobody can compare unpublished values
        is_open = row.reason.startswith("not comparable")
        if "no" in (row.could_fail, row.about_the_paper) and not is_open:
            assert is_check, (row.figure, row.claim)
        if row.action == "keep" and row.tolerance_fits == "no":
            assert row.reason.startswith("to do: "), (row.figure, row.claim)
