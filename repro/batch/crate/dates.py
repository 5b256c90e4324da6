"""Dates of a crate: no clock is read, so equal results give equal bytes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from repro.base.errors import ParamError
from repro.batch.check import StoredFigure
from repro.figures.saved import RESULT

#: Variable with the time of all dates, in seconds since 1970.
ENV_EPOCH = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True)
class Dates:
    """Dates of a crate: a fixed one, or the times at which results were written."""

    epoch: int | None

    @classmethod
    def from_environment(cls) -> "Dates":
        """Fixed date of ``$SOURCE_DATE_EPOCH``; without it, times of files."""
        text = os.environ.get(ENV_EPOCH)
        if text is None:
            return cls(None)
        if not (text.isascii() and text.isdigit() and len(text) <= 11):
            raise ParamError(f"{ENV_EPOCH} is {text!r}; give whole seconds since 1970")
        return cls(int(text))

    @property
    def source(self) -> str:
        """Source of the dates in words."""
        return ENV_EPOCH if self.epoch is not None else f"the last change of each {RESULT}"

    def of(self, figure: StoredFigure) -> str:
        """Date of a result in ISO 8601."""
        return _iso(_changed(figure) if self.epoch is None else self.epoch)

    def latest(self, figures: Sequence[StoredFigure]) -> str:
        """Date of the newest result in ISO 8601."""
        return max(self.of(figure) for figure in figures)


def _changed(figure: StoredFigure) -> int:
    """Time of the last change of a result, whole seconds since 1970."""
    return int((figure.folder / RESULT).stat().st_mtime)


def _iso(seconds: int) -> str:
    """Time in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
