"""What the reader of a file returns: rows in file order, and what it left out of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.files.checks import Origin


@dataclass
class Parsed:
    """Jobs in schema columns and file order, not validated yet.

    Parameters
    ----------
    frame : DataFrame
        Schema columns; index labels are the row numbers of the file (0 = first job).
    origin : Origin
        Names file, lines and columns for errors.
    dropped : dict
        Reason to number of rows that are no jobs (never ran, no GPU).
    notes : list of str
        What the reader should know about assumptions made while reading.
    unread : list of str
        Columns (or keys) of the file that no column of the frame is made from.
    """

    frame: pd.DataFrame
    origin: Origin
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def drop(self, rows: NDArray[np.bool_], reason: str) -> None:
        """Leave out the marked rows and count them under ``reason``."""
        if rows.any():
            self.dropped[reason] = self.dropped.get(reason, 0) + int(rows.sum())
            self.frame = self.frame[~rows].copy()
