"""Trace formats: each a function from a `Document` to `Parsed` rows, not validated yet."""

from collections.abc import Callable

from repro.base.errors import TraceError
from repro.files.table import Parsed
from repro.model.registry import Registry

Format = Callable[..., Parsed]

FORMATS: Registry[Format] = Registry(
    "trace format", "repro.trace.formats", TraceError, group="repro.trace_formats"
)
