"""Text that a spreadsheet would run: quoted on the way out, given back on the way in."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.files.spreadsheet import plain_cells, safe_cells

SIGNS = "=+-@\t\r\n＝＋－＠"


@pytest.mark.parametrize(
    "text",
    [
        "=HYPERLINK(1)",
        "+1+1",
        "-2+3",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "＝1+1",
        "=",
        "-cmd",
        "'=1",
    ],
)
def test_what_a_spreadsheet_would_run_is_quoted(text):
    assert safe_cells(pd.DataFrame({"a": [text]}))["a"].tolist() == [f"'{text}"]


def test_numbers_and_other_text_stay():
    plain = ["a", "a=b", "", "-5", "+1.5e-3", "'a'", "-inf", None, -3.5, True]
    assert safe_cells(pd.DataFrame({"a": plain}))["a"].tolist() == plain
    numbers = pd.DataFrame({"n": [-1.5, 2.0], "whole": [-1, 1], "yes": [True, False]})
    pd.testing.assert_frame_equal(safe_cells(numbers), numbers)


def test_column_names_and_categories_count_as_text():
    kinds = pd.Series(["=1", "b", "=1"], dtype="category")
    frame = safe_cells(pd.DataFrame({"=name": kinds, "n": [1, 2, 3]}))
    assert list(frame) == ["'=name", "n"] and frame["'=name"].tolist() == ["'=1", "b", "'=1"]


@given(st.lists(st.text(alphabet=f"{SIGNS}'a1 .", max_size=6), min_size=1))
def test_what_was_quoted_comes_back(texts):
    frame = pd.DataFrame({"a": pd.Series(texts, dtype=object)})
    quoted = safe_cells(frame)
    assert plain_cells(quoted)["a"].tolist() == texts
    held = [text for text in quoted["a"] if text[:1] in SIGNS and text]
    assert all(text.lstrip("+-").replace(".", "").isdigit() for text in held)
