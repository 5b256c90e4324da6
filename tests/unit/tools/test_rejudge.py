"""Rejudging stored results: reasons of claims that are not comparable stay."""

import json

import pytest

from repro.base import paths
from repro.figures import params
from repro.figures.data import STAND_IN
from repro.figures.saved import RESULT
from tools import rejudge


def stored_with_reason():
    """First committed figure that has a claim with a reason, and its result."""
    for entry in params.discover():
        path = paths.figures_dir() / entry.id / RESULT
        result = json.loads(path.read_text(encoding="utf-8"))
        if any(row.get("reason") for row in result["claims"]):
            return entry, result
    return pytest.skip("no claim with a reason")


def reasons(result):
    return {row["id"]: row["reason"] for row in result["claims"] if row.get("reason")}


def test_claims_keep_their_stored_reasons():
    entry, result = stored_with_reason()
    for row in result["claims"]:
        if row.get("reason"):
            row["reason"] = "data not available here"
    assert reasons(rejudge.rejudged(entry.load(), result)) == reasons(result)


def test_a_stand_in_for_a_public_file_is_the_reason_of_a_run_on_it():
    entry, _ = stored_with_reason()
    spec = entry.load()
    result = {"profile": "paper", "stand_in": "text", "data": []}
    assert rejudge._reason(spec, result) == "data not public"
    result["data"] = [{"name": "philly", "kind": STAND_IN}]
    assert rejudge._reason(spec, result) == "data not available here"
