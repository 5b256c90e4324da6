"""`Finding`: one remark on a trace, with its level, count, first jobs and advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from repro.base.typing import Flags
from repro.files.checks import shown

Level = Literal["error", "warning", "note"]
#: Levels from the worst to the mildest.
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
#: Number of ids that a finding names.
FIRST = 3


@dataclass(frozen=True)
class Finding:
    """One remark on a trace.

    An ``error`` makes a simulation refuse the trace. A ``warning`` is a contradiction or a value
    that is likely wrong. A ``note`` is a fact that changes what a result means.
    """

    level: Level
    #: short name of the check
    code: str
    #: what was found, one sentence without a full stop
    what: str
    #: number of jobs, rows or columns concerned
    count: int
    #: ids of the first jobs concerned
    jobs: tuple[Any, ...] = ()
    #: what to do, empty if nothing needs to be done
    advice: str = ""

    def lines(self) -> list[str]:
        """Text of the finding: level, code and sentence, and the advice below."""
        named = ", ".join(shown(job) for job in self.jobs)
        more = ", …" if self.jobs and self.count > len(self.jobs) else ""
        noun = "job" if self.count == 1 else "jobs"
        text = f"{self.level:<8} {self.code}: {self.what}"
        lines = [f"{text} ({noun} {named}{more})" if named else text]
        if self.advice:
            lines.append(f"{'':<8} -> {self.advice}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Fields of the finding for JSON."""
        return asdict(self) | {"jobs": list(self.jobs)}


def first_ids(frame: pd.DataFrame, flags: Flags) -> tuple[Any, ...]:
    """Ids of the first jobs that are flagged, as plain Python values."""
    places = np.flatnonzero(flags)[:FIRST]
    return tuple(frame["job_id"].iloc[places].tolist())
