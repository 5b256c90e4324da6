"""Rows by which others are divided, on tables of a few rows."""

import pandas as pd
import pytest

from repro.papers.reference import reference_rows


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "trace": ["2", "1", "1", "3"],
            "policy": ["fifo", "srtf", "fifo", "srtf"],
            "jct": [8.0, 3.0, 6.0, 5.0],
        },
        index=[7, 5, 3, 1],
    )


def test_each_row_gets_the_reference_of_its_own_keys(table):
    reference = reference_rows(table, table["policy"] == "fifo", by=["trace"])
    assert reference.index.tolist() == [7, 5, 3, 1]
    assert reference["jct"].tolist()[:3] == [8.0, 6.0, 6.0]
    assert reference["jct"].isna().tolist() == [False, False, False, True]


def test_two_references_for_a_row_are_an_error(table):
    with pytest.raises(pd.errors.MergeError, match="not a many-to-one merge"):
        reference_rows(table, table["jct"] > 0, by=["trace"])
