"""Rows of a table by which other rows are divided."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd


def reference_rows(
    table: pd.DataFrame, is_reference: pd.Series[bool], by: Sequence[str]
) -> pd.DataFrame:
    """Reference row of each row of a table: the one with equal values in the columns ``by``.

    Parameters
    ----------
    table : DataFrame
        Results, one per row.
    is_reference : Series of bool
        The rows to divide by, at most one for each value of ``by``.
    by : sequence of str
        Columns, such as trace and metric.

    Returns
    -------
    DataFrame
        Reference rows with the index of ``table``; NaN where there is none.

    Examples
    --------
    >>> table = pd.DataFrame({"trace": ["1", "1"], "policy": ["srtf", "fifo"], "jct": [2.0, 3.0]})
    >>> reference = reference_rows(table, table["policy"] == "srtf", by=["trace"])
    >>> (table["jct"] / reference["jct"]).tolist()
    [1.0, 1.5]
    """
    keys = list(by)
    rows = table[keys].merge(table[is_reference], on=keys, how="left", validate="many_to_one")
    return rows.set_index(table.index)
