"""Trace formats: each a function from a `Document` to `Parsed` rows, not validated yet."""

from collections.abc import Callable

from repro.core.registry import Registry
from repro.errors import TraceError
from repro.files.table import Parsed

Format = Callable[..., Parsed]

FORMATS: Registry[Format] = Registry(
    "trace format", "repro.trace.formats", TraceError, group="repro.trace_formats"
)
