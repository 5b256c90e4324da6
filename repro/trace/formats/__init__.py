"""Published trace formats, one file each; what they all return and where they are registered."""

from __future__ import annotations

from collections.abc import Callable

from repro.core.registry import Registry
from repro.errors import TraceError
from repro.files.parsed import Parsed

Format = Callable[..., Parsed]

FORMATS: Registry[Format] = Registry("trace format", "repro.trace.formats", TraceError)
