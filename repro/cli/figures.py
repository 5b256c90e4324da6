"""``repro list``, ``check`` and ``report``: the figures, and the verdicts of their results."""

import json
import os
import webbrowser
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from repro.base import paths
from repro.base.counts import quantity
from repro.base.errors import ParamError, ReproError
from repro.batch import check, compare_results, reference
from repro.batch import github as github_output
from repro.batch.junit import write_junit
from repro.batch.report import write_report
from repro.cli import complete
from repro.cli.lines import complain, say
from repro.cli.missing_data import EXIT_MISSING_DATA, RequireData, say_missing
from repro.figures import params, variation
from repro.figures.saved import RESULT, read_result

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...",
        help="Figure ids (`repro list`) or unique prefixes.",
        autocompletion=complete.figures,
    ),
]
Paper = Annotated[
    str | None,
    typer.Option("--paper", metavar="P", help="Only this paper.", autocompletion=complete.papers),
]
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
Against = Annotated[
    Path | None,
    typer.Option(
        "--against",
        metavar="DIR|FILE",
        help="Other results to compare with: a folder such as figures/, or a reference such as "
        "figures/quick.json.",
    ),
]


def list_(
    paper_name: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER]",
            help="Only this paper, the same as --paper.",
            autocompletion=complete.papers,
        ),
    ] = None,
    paper: Paper = None,
    as_json: Json = False,
) -> None:
    """List the figures and tables that can be regenerated."""
    if paper_name is not None and paper not in (None, paper_name):
        raise ParamError(f"two papers, {paper_name} and --paper {paper}; give one")
    entries = params.select([], params.discover(), paper=paper_name or paper)
    specs, errors = params.loaded(entries)
    if errors and not specs:
        raise next(iter(errors.values()))
    if as_json:
        texts = ("kind", "title", "reference", "shows")
        rows = [
            {"id": entry.id, "paper": entry.paper}
            | {"notebook": entry.notebook.relative_to(entry.root).as_posix()}
            | {name: getattr(spec, name) for name in texts}
            | {"claims": len(spec.claims), "stand_in": spec.stand_in}
            for entry, spec in specs.items()
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        width = max((len(entry.id) for entry in specs), default=0)
        for entry, spec in specs.items():
            diagram = ", diagram" if spec.kind == "diagram" else ""
            say(f"{entry.id:<{width}}  {spec.title} ({spec.reference}{diagram})")
    for error in errors.values():
        complain(str(error))


def check_figures(
    ids: Ids = None,
    paper: Paper = None,
    out: Out = None,
    against: Against = None,
    as_json: Json = False,
    require_data: RequireData = False,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the values as a reference, which --against FILE reads."
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the verdicts as JUnit XML.")
    ] = None,
    github: Annotated[
        bool,
        typer.Option(
            "--github",
            help="Also print annotations for GitHub Actions, and a summary in Markdown "
            f"(into ${github_output.ENV_SUMMARY} if that is set).",
        ),
    ] = False,
    variations: Annotated[
        bool,
        typer.Option(
            "--variations", help="List variations (runs with other parameters) instead of verdicts."
        ),
    ] = False,
) -> None:
    """Print the verdicts of the last results; exit 1 on a miss without a recorded deviation.

    Exit 1 also on a failed or damaged figure, and on a parameter file that cannot be read. With
    --against, exit 1 also if a point left its tolerance, a verdict got worse, or no figure could
    be compared.
    """
    if as_json and github:
        raise ParamError("--json prints one document, --github prints lines; give one of them")
    entries = params.select(ids or [], params.discover(), paper=paper)
    if variations:
        about_verdicts = {
            "--against": against,
            "--json": as_json,
            "--require-data": require_data,
            "--save": save,
            "--junit": junit,
            "--github": github,
        }
        if given := [option for option, value in about_verdicts.items() if value]:
            raise ParamError(f"--variations lists runs without verdicts; leave out {given[0]}")
        _list_variations(entries, out)
        return
    specs, errors = params.loaded(entries)
    if errors and (ids or not specs):
        raise next(iter(errors.values()))
    folder, results = check.last_results(entries, out)
    with_result = [result.entry for result in results]
    without_result = [entry.id for entry in entries if entry not in with_result]
    if ids and without_result:
        names = ", ".join(without_result)
        raise ReproError(f"no result of {names} in {folder}; `repro run` makes it")
    changes = _changes(entries, folder, results, against)
    if against is not None and not ids:
        changes += _without_figure(against, paper)
    if save is not None:
        known = {entry.id for entry in params.discover()}
        figures_saved = reference.save(save, results, specs, known)
    if as_json:
        document = check.as_json(folder, results)
        if against:
            document["against"] = [asdict(change) for change in changes]
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for line in check.lines(results):
            say(line)
        for line in check.headline_lines(results):
            typer.echo(line)
        if line := check.not_comparable_line(results):
            typer.echo(line)
        typer.echo(f"{quantity(len(results), 'figure')} in {folder}: {check.tally_line(results)}")
        say_missing(results)
        if without_result:
            verb = "has" if len(without_result) == 1 else "have"
            typer.echo(f"{quantity(len(without_result), 'figure')} {verb} no result yet")
        if out is None and (note := check.line_on_other_folder(entries, folder)):
            typer.echo(note)
        for change in changes:
            for line in change.lines():
                say(f"{change.id}  {line}")
        if against:
            for line in compare_results.not_compared_lines(changes):
                say(line)
            typer.echo(f"against {against}: {compare_results.totals(changes)}")
        if save is not None:
            typer.echo(f"reference of {quantity(figures_saved, 'figure')}: {save}")
    if junit is not None:
        write_junit(junit, results, changes)
    if github:
        _print_for_github(results, changes, against)
    for error in errors.values():
        complain(str(error))
    is_worse = any(change.worse for change in changes)
    # a comparison of nothing must not pass
    compares_nothing = bool(changes) and not any(change.is_compared for change in changes)
    if errors or not check.is_fine(results) or is_worse or compares_nothing:
        raise typer.Exit(1)
    if require_data and check.missing_data(results)[0]:
        raise typer.Exit(EXIT_MISSING_DATA)


def _print_for_github(
    results: Sequence[check.StoredFigure],
    changes: Sequence[compare_results.Change],
    against: Path | None,
) -> None:
    """Print annotations; append the summary to the step's file, or print it."""
    for line in github_output.annotation_lines(results, changes):
        say(line)
    summary = github_output.summary(results, changes, str(against or ""))
    path = os.environ.get(github_output.ENV_SUMMARY)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(summary)
    else:
        say(summary)


def _list_variations(entries: Sequence[params.FigureEntry], out: Path | None) -> None:
    """Print the stored variations of some figures, a line each."""
    base = variation.variations_folder(paths.build_dir() if out is None else out)
    count = 0
    for entry in entries:
        for folder in sorted((base / entry.id).glob("*")):
            result, _ = read_result(folder)
            if result:
                count += 1
                say(f"{entry.id}: {variation.text(result['variation'])} ({folder})")
    if not count:
        typer.echo(f"no variations in {base}; `repro run ID -p NAME VALUE` makes one")


def report(
    out: Out = None,
    against: Against = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write the gallery page next to the last results and print its path."""
    entries = params.discover()
    folder, results = check.last_results(entries, out)
    changes = _changes(entries, folder, results, against)
    if against is not None:
        changes += _without_figure(against)
    page = write_report(folder, results, {change.id: change.lines() for change in changes})
    typer.echo(str(page))
    if out is None and (note := check.line_on_other_folder(entries, folder)):
        typer.echo(f"repro: {note}", err=True)
    if open_:
        webbrowser.open(page.resolve().as_uri())


def _changes(
    entries: Sequence[params.FigureEntry],
    folder: Path,
    results: Sequence[check.StoredFigure],
    against: Path | None,
) -> list[compare_results.Change]:
    """Compare results with those in a folder or a reference; empty without ``against``.

    Figures that only the other results have are changes, too.
    """
    if against is None:
        return []
    if against.resolve() == folder.resolve():
        raise ParamError(
            f"--against {against}: this is the folder of the results themselves; give another one"
        )
    tolerance = compare_results.Same()
    if against.is_file():
        values = reference.Reference(against)
        earlier = values.matching(results)
        earlier_ids = set(values.ids)
        tolerance = compare_results.Same(values.relative, values.absolute)
    else:
        earlier = check.stored(entries, against)
        earlier_ids = {stored.entry.id for stored in earlier if stored.result}
    if not any(stored.result for stored in earlier):
        damaged = [stored.entry.id for stored in earlier if stored.damage]
        if damaged:
            raise ReproError(f"--against {against}: results damaged there: {check.listed(damaged)}")
        raise ReproError(
            f"--against {against}: no results there; give a folder with results, or a reference "
            "of these figures"
        )
    changes = compare_results.compare(results, earlier, params.loaded(entries)[0], tolerance)
    ids_here = {stored.entry.id for stored in results}
    selected = {entry.id for entry in entries}
    gone = sorted((selected & earlier_ids) - ids_here)
    return changes + [compare_results.Change(id, other=compare_results.NO_RESULT) for id in gone]


def _without_figure(against: Path, paper: str | None = None) -> list[compare_results.Change]:
    """Figures of the other results, of a paper or of all, that have no parameter file here."""
    if against.is_file():
        earlier_ids = set(reference.Reference(against).ids)
    else:
        earlier_ids = {"/".join(file.parts[-3:-1]) for file in against.glob(f"*/*/{RESULT}")}
    unknown = sorted(earlier_ids - {entry.id for entry in params.discover()})
    return [
        compare_results.Change(id, other=compare_results.NO_FIGURE)
        for id in unknown
        if paper in (None, id.partition("/")[0])
    ]
