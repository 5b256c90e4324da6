"""``repro schema``: JSON schemas of result.json and of every ``--json`` output."""

from pathlib import Path
from typing import Annotated

import typer

from repro.base.errors import refuse_unknown
from repro.cli import complete

#: Folder of the schemas, a file per document.
FOLDER = Path(__file__).parent / "schemas"


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Document; without it, list the documents.",
            autocompletion=complete.schemas,
        ),
    ] = None,
) -> None:
    """Print the JSON schema of a document that repro writes, or list the documents."""
    files = {path.stem: path for path in sorted(FOLDER.glob("*.json"))}
    if name is None:
        for known in files:
            typer.echo(known)
        return
    refuse_unknown("no schema of", [name], files)
    typer.echo(files[name].read_text(encoding="utf-8").rstrip())
