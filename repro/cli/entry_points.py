"""Groups of commands of other distributions, found by entry points."""

from importlib import metadata
from typing import Any

import typer

#: Group of the entry points. Each names a `typer.Typer`.
GROUP = "repro.commands"


def group(name: str) -> Any:
    """Group of commands under a name; None if no installed distribution has it."""
    for point in metadata.entry_points(group=GROUP, name=name):
        return typer.main.get_command(point.load())
    return None
