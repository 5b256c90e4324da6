"""Trace formats: each is a function from a `Document` to `Parsed` rows before validation."""

import inspect
import re
from collections.abc import Callable

from repro.base.errors import TraceError
from repro.files.table import Parsed
from repro.model.registry import Registry

Format = Callable[..., Parsed]

FORMATS: Registry[Format] = Registry(
    "trace format", "repro.trace.formats", TraceError, group="repro.trace_formats"
)


def documented(name: str) -> str:
    """Paragraph ``Columns: …`` of the docstring of a format."""
    paragraphs = (inspect.getdoc(FORMATS[name]) or "").split("\n\n")
    return next((text for text in paragraphs if text.startswith("Columns:")), "")


def required_columns(name: str) -> tuple[str, ...]:
    """Read the required columns of a format from its docstring.

    >>> required_columns("philly")
    ('timestamp', 'duration', 'num_gpus')
    """
    required = re.split("[;.]", documented(name).removeprefix("Columns:"))[0]
    return tuple(re.findall(r"\w+", required))
