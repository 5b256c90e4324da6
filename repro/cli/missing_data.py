"""Public files that are not available: a line after a batch or a check, exit code 3 on request."""

from collections.abc import Sequence
from typing import Annotated

import typer

from repro.batch import check
from repro.cli.lines import say

#: Exit code of results without all public data.
EXIT_MISSING_DATA = 3
RequireData = Annotated[
    bool,
    typer.Option("--require-data", help="Exit 3 if a figure used a stand-in for a public file."),
]


def say_missing(figures: Sequence[check.StoredFigure]) -> bool:
    """Print the public files that some figures lack; return whether there are any."""
    line = check.missing_data_line(figures)
    if line:
        say(line)
    return bool(line)
