"""Groups of commands that other distributions bring by entry points."""

from importlib import metadata
from typing import Any

import typer

#: Group of the entry points. Each names a `typer.Typer`.
GROUP = "repro.commands"


def group(name: str) -> Any:
    """Group of commands under a name; None where no installed distribution brings it."""
    for point in metadata.entry_points(group=GROUP, name=name):
        return typer.main.get_command(point.load())
    return None
