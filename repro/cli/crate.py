"""``repro crate``: results as a research object for an archive."""

from pathlib import Path
from typing import Annotated

import typer

from repro.base import paths
from repro.base.errors import ReproError
from repro.base.extras import require
from repro.batch import check
from repro.batch.crate import write_crate
from repro.cli.figures import Ids, Out, Paper
from repro.cli.lines import say
from repro.figures import params


def crate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New folder of the crate.")],
    ids: Ids = None,
    paper: Paper = None,
    out: Out = None,
) -> None:
    """Write results as a research object (Workflow Run RO-Crate) for an archive.

    It has notebooks, parameter files, results, versions, commands and verdicts. Public traces are
    named by address, checksum and licence. Dates are those of the results, or SOURCE_DATE_EPOCH.
    """
    require("crate", "repro crate")
    entries = params.select(ids or [], params.discover(), paper=paper)
    source, stored = check.last_results(entries, out)
    for figure in stored:
        if figure.damage and not figure.result:
            raise ReproError(f"{figure.entry.id}: {figure.damage[0]}")
    figures = [figure for figure in stored if figure.result]
    missing = [entry.id for entry in entries if entry not in [figure.entry for figure in figures]]
    if not figures or (ids and missing):
        raise ReproError(f"no result of {', '.join(missing)} in {source}; `repro run` makes it")
    summary = write_crate(paths.expanded(folder), figures, paths.project_root())
    figure_count = "1 figure" if summary.figures == 1 else f"{summary.figures} figures"
    say(f"{figure_count} of {source}: {check.tally_line(figures)}")
    if missing:
        say(f"left out, without a result: {', '.join(missing)}")
    megabytes = summary.size / 1e6
    say(f"{summary.files} files, {megabytes:.1f} MB, in {folder}; dates are {summary.dates}")
