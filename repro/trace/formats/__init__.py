"""Trace formats: each a function from a `Document` to `Parsed` rows, not validated yet."""

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
    """Paragraph of the docstring of a format that names its columns."""
    paragraphs = (inspect.getdoc(FORMATS[name]) or "").split("\n\n")
    return next((part for part in paragraphs if part.startswith("Columns:")), "")


def required_columns(name: str) -> tuple[str, ...]:
    """Columns that a format cannot do without, as its docstring names them.

    >>> required_columns("philly")
    ('timestamp', 'duration', 'num_gpus')
    """
    required = re.split("[;.]", documented(name).removeprefix("Columns:"))[0]
    return tuple(re.findall(r"\w+", required))
