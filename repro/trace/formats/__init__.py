"""Trace formats: each a function from a `Document` to `Parsed` rows, not validated yet."""

from __future__ import annotations

from collections.abc import Callable

from repro.core.discovery import fill
from repro.core.registry import Registry
from repro.errors import TraceError
from repro.files.table import Parsed

Format = Callable[..., Parsed]

FORMATS: Registry[Format] = Registry("trace format", "repro.trace.formats", TraceError)


def discover() -> None:
    """Import every format of this package and of installed ones."""
    fill(FORMATS, __name__, "repro.trace_formats")
