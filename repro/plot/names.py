"""Names and texts in the columns of a chart's frame, where values may be missing."""

import pandas as pd


def names_in(frame: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Names in a column as texts; a missing name is "no" and the name of the column.

    >>> names_in(pd.DataFrame({"policy": ["srtf", None]}), "policy").tolist()
    ['srtf', 'no policy']
    """
    values = frame[column]
    return values.astype(str).where(values.notna(), f"no {column}")


def texts_in(frame: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Texts in a column, to be written into a chart; a missing text is empty."""
    values = frame[column]
    return values.astype(str).where(values.notna(), "")
