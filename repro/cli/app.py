"""The command line: list, run, check, report, simulate, policies, new-policy, trace."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from repro.cli import new_policy, run, simulate
from repro.cli.lines import complain, say, warnings_in_lines
from repro.cli.trace import app as trace_app
from repro.errors import ReproError

#: What a shell reports of a command that Ctrl-C has ended.
INTERRUPTED = 130

app = typer.Typer(
    help="Regenerate the figures and tables of five papers on GPU cluster scheduling.",
    epilog="Add --debug to any command to see the traceback of an error.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(trace_app, name="trace")
app.command("run")(run.run)
app.command("simulate")(simulate.simulate)
app.command("new-policy")(new_policy.new_policy)

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Figure ids or unique prefixes.")
]
Paper = Annotated[str | None, typer.Option("--paper", metavar="P", help="Only this paper.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document, nothing else.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder of results (default: build/figures once a batch has ended there, else the "
        "committed figures).",
    ),
]


@app.callback()
def _top() -> None:
    """Regenerate the figures and tables of five papers on GPU cluster scheduling."""


@app.command("list")
def list_(paper: Paper = None, as_json: Json = False) -> None:
    """List the figures and tables that can be regenerated."""
    from repro.figures import params

    entries = params.select([], params.discover(), paper=paper)
    specs, broken = params.loaded(entries)
    if broken and not specs:
        raise next(iter(broken.values()))
    if as_json:
        rows = [
            {
                "id": entry.id,
                "paper": entry.paper,
                "title": spec.title,
                "reference": spec.reference,
                "shows": spec.shows,
                "claims": len(spec.claims),
                "stand_in": spec.stand_in,
            }
            for entry, spec in specs.items()
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        width = max((len(entry.id) for entry in specs), default=0)
        for entry, spec in specs.items():
            say(f"{entry.id:<{width}}  {spec.title} ({spec.reference})")
    for error in broken.values():
        complain(str(error))


@app.command()
def check(ids: Ids = None, paper: Paper = None, out: Out = None, as_json: Json = False) -> None:
    """Print the verdicts of the last results; exit 1 on a miss without a recorded deviation.

    A parameter file that cannot be read counts as a miss.
    """
    from repro.batch import check as checks
    from repro.figures import params

    entries = params.select(ids or [], params.discover(), paper=paper)
    specs, broken = params.loaded(entries)
    if broken and (ids or not specs):
        raise next(iter(broken.values()))
    folder, found = checks.last_results(entries, out)
    absent = [entry.id for entry in entries if entry not in [one.entry for one in found]]
    if ids and absent:
        raise ReproError(f"no result of {', '.join(absent)} in {folder}; `repro run` makes it")
    if as_json:
        typer.echo(json.dumps(checks.as_json(folder, found), indent=2, ensure_ascii=False))
    else:
        for line in checks.lines(found):
            say(line)
        for line in checks.headline_lines(found):
            typer.echo(line)
        typer.echo(f"{len(found)} figures in {folder}: {checks.tally_line(found)}")
        if absent:
            typer.echo(f"{len(absent)} figures have no result yet")
        if out is None and (note := checks.elsewhere(entries, folder)):
            typer.echo(note)
    for error in broken.values():
        complain(str(error))
    if broken or not checks.is_fine(found):
        raise typer.Exit(1)


@app.command()
def report(
    out: Out = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write the gallery page beside the last results and print its path."""
    from repro.batch import check as checks
    from repro.batch.report import write_report
    from repro.figures import params

    entries = params.discover()
    folder, found = checks.last_results(entries, out)
    page = write_report(folder, found)
    typer.echo(str(page))
    if out is None and (note := checks.elsewhere(entries, folder)):
        typer.echo(f"repro: {note}", err=True)
    if open_:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


@app.command()
def policies(as_json: Json = False) -> None:
    """List the scheduling policies with their parameters."""
    rows = simulate.policy_rows()
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        settings = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
        typer.echo(f"{row['name']:<{width}}  {row['summary']}")
        if settings:
            typer.echo(f"{'':<{width}}  --set {settings}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of the process's own.

    Returns
    -------
    int
        0 fine, 1 a check failed, 2 wrong use or bad input, 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        with warnings_in_lines():
            code = app(
                args=run.join_pairs(words),
                prog_name="repro",
                standalone_mode=False,
                obj={"debug": debug},
            )
        if code == INTERRUPTED:
            complain("interrupted")
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ReproError, OSError) as error:
        if debug:
            raise
        return _refuse(str(error))
    except typer.Abort:
        complain("interrupted")
        return INTERRUPTED
    except _click_error() as error:
        if debug:
            raise
        message = error.format_message()
        return _refuse(message or "see `repro --help`") if message else 2


def _refuse(message: str) -> int:
    complain(message)
    return 2


def _click_error() -> type[typer.BadParameter]:
    # Typer may bring a click of its own, so the base of its errors is taken from one of them.
    bases = typer.BadParameter.__mro__
    return next(base for base in bases if base.__name__ == "ClickException")
