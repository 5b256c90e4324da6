"""What a trace format returns: rows in file order, and how many it left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from repro.files.checks import Origin
from repro.typing import Flags


@dataclass
class Parsed:
    """Jobs in schema columns and file order, not validated yet."""

    frame: pd.DataFrame
    origin: Origin
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def drop(self, reasons: Mapping[str, Flags]) -> None:
        """Leave out rows of the file, each counted under the first reason that holds for it."""
        for reason, rows in reasons.items():
            held = rows[self.frame.index]
            if held.any():
                self.dropped[reason] = int(held.sum())
                self.frame = self.frame[~held].copy()
