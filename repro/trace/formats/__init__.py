"""Trace formats: each is a function from a `Document` to `Parsed` rows before validation."""

import inspect
import re
from collections.abc import Callable

from repro.base.errors import TraceError
from repro.base.outside import takes
from repro.files.table import Parsed
from repro.model.methods import parameters_fault
from repro.model.registry import Registry

Format = Callable[..., Parsed]


def _check_format(name: str, read: Format) -> None:
    """Raise TraceError if what is registered is no function of a document."""
    if not callable(read):
        raise TraceError(
            f"trace format {name!r}: {read!r:.60} is no function; register a function of a "
            f"Document, which returns Parsed rows"
        )
    required = [option.name for option in _options(read) if option.default is option.empty]
    if not takes(read, 1, required):
        function = getattr(read, "__name__", "read")
        subject = f"trace format {name!r}"
        expected = f"{function}(document)"
        raise TraceError(parameters_fault(subject, function, read, expected, "repro.load"))


FORMATS: Registry[Format] = Registry(
    "trace format",
    "repro.trace.formats",
    TraceError,
    group="repro.trace_formats",
    check=_check_format,
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


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """Options of a format by name: the named parameters after the document.

    >>> list(options_of("gavel"))
    ['throughputs', 'reference_gpu']
    """
    return {option.name: option for option in _options(FORMATS[name])}


def _options(read: Format) -> list[inspect.Parameter]:
    """Named parameters of a function of a format after the document."""
    return [
        option
        for option in list(inspect.signature(read).parameters.values())[1:]
        if option.kind in (option.POSITIONAL_OR_KEYWORD, option.KEYWORD_ONLY)
    ]
