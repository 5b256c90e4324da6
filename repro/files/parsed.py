"""What the reader of a file returns: rows in file order, and what it left out of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.files.checks import Origin


@dataclass
class Parsed:
    """Jobs in schema columns and file order, not validated yet."""

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
