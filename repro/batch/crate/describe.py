"""Entities of a crate: figures, runs, notebooks, papers, verdicts, and the crate itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.base.release import VERSION
from repro.batch.check import StoredFigure, counts, tally_line
from repro.batch.crate.commands import commands, options
from repro.batch.crate.data import data_entity, licence
from repro.batch.crate.dates import Dates
from repro.batch.crate.graph import Graph, reference, references, slug
from repro.batch.papers import Paper, papers
from repro.figures.saved import LOCK, RESULT, checksum, paper_name

#: Profiles that the crate conforms to: address -> name.
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
WORKFLOW_PROFILE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
PARAMETER_PROFILE = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"
COMPLETED = "http://schema.org/CompletedActionStatus"
COMMANDS = "commands.sh"
AUTHORS = "#authors"
SHELL = "#shell"
PYTHON = "#python"
SOFTWARE = ["File", "SoftwareSourceCode"]


def describe(
    graph: Graph, figures: Sequence[StoredFigure], root: Path, dates: Dates
) -> dict[str, Any]:
    """Describe all entities; return the properties of the crate itself."""
    mit = licence(graph, "MIT")
    graph.add(AUTHORS, "Organization", name="The repro authors")
    graph.add(
        SHELL,
        "ComputerLanguage",
        name="POSIX shell",
        url=reference("https://pubs.opengroup.org/onlinepubs/9799919799/utilities/sh.html"),
    )
    graph.add(PYTHON, "ComputerLanguage", name="Python", url=reference("https://www.python.org/"))
    for address, name in PROFILES.items():
        graph.add(address, "CreativeWork", name=name, version=address.rsplit("/", 1)[1])
    names = list(dict.fromkeys(figure.entry.paper for figure in figures))
    works = {paper.paper: _work(graph, paper) for paper in papers() if paper.paper in names}
    _main_workflow(graph, figures)
    _readme(graph, figures)
    _project_files(graph, figures, root)
    runs = [_figure(graph, figure, root, dates, works) for figure in figures]
    main_run = _main_run(graph, figures, dates, runs)
    shown_names = ", ".join(map(paper_name, names))
    figure_count = "1 figure" if len(figures) == 1 else f"{len(figures)} figures"
    return {
        "name": f"Results of repro {VERSION}: {figure_count} ({shown_names})",
        "description": (
            f"Figures and tables on GPU cluster scheduling, regenerated and compared with their "
            f"published numbers: {tally_line(figures)}. Dates are those of {dates.source}."
        ),
        "datePublished": dates.latest(figures),
        "license": reference(mit),
        "author": reference(AUTHORS),
        "publisher": reference(AUTHORS),
        "conformsTo": references(PROFILES),
        "mainEntity": reference(COMMANDS),
        "mentions": references([main_run, *(run.action for run in runs)]),
        "citation": references(works.values()),
        "variableMeasured": references(_verdicts(graph, "all", figures)),
        "hasPart": references(
            name for name in graph.entities if name in graph.contents or _is_data(graph, name)
        ),
    }


def _is_data(graph: Graph, identifier: str) -> bool:
    """Whether an entity is a folder or a referenced file, and no parameter or person."""
    kind = graph.entities[identifier]["@type"]
    return "File" in kind or kind == "Dataset"


def _work(graph: Graph, paper: Paper) -> str:
    """Describe a paper and its authors; return its id."""
    people = [
        graph.add(
            f"#person-{slug(f'{given} {family}')}",
            "Person",
            name=f"{given} {family}",
            familyName=family,
            givenName=given,
        )
        for family, given in paper.people
    ]
    return graph.add(
        paper.address,
        "ScholarlyArticle",
        name=paper.title,
        author=references(people),
        datePublished=paper.year,
        isPartOf=reference(graph.add(f"#venue-{paper.paper}", "CreativeWork", name=paper.venue)),
    )


def _verdicts(graph: Graph, name: str, figures: Sequence[StoredFigure]) -> list[str]:
    """Describe the counts of verdicts of claims; return their ids."""
    rows = [row for figure in figures for row in figure.claims]
    return [
        graph.add(
            f"#verdicts-{slug(name)}-{slug(outcome)}",
            "PropertyValue",
            name=f"claims {outcome}",
            value=number,
        )
        for outcome, number in counts(rows).items()
    ]


def _main_workflow(graph: Graph, figures: Sequence[StoredFigure]) -> None:
    """Describe and write ``commands.sh``."""
    graph.add_file(
        COMMANDS,
        commands(figures).encode(),
        [*SOFTWARE, "ComputationalWorkflow"],
        name="Commands that make the results again",
        description="Installs the locked versions, fetches public files, runs and compares.",
        version=VERSION,
        programmingLanguage=reference(SHELL),
        conformsTo=reference(WORKFLOW_PROFILE),
        author=reference(AUTHORS),
        license=reference(licence(graph, "MIT")),
    )


def _readme(graph: Graph, figures: Sequence[StoredFigure]) -> None:
    """Describe and write a page for people who open the folder."""
    text = f"""# Results of repro {VERSION}

Regenerated figures and tables on GPU cluster scheduling: {tally_line(figures)}.

- `figures/`: pictures, tables, points and `result.json` with verdicts and versions
- `notebooks/`, `params/`: the notebooks, and their inputs and claims
- `traces/`: tables of this project that results were made from
- `ro-crate-metadata.json`: all files with checksums and licences, public data with addresses
- `{COMMANDS}`: makes the results again in a checkout: `sh THIS_FOLDER/{COMMANDS} THIS_FOLDER`

`ro-crate-preview.html` shows the metadata in a browser.
"""
    graph.add_file("README.md", text.encode(), name="About this crate", about=reference("./"))


def _project_files(graph: Graph, figures: Sequence[StoredFigure], root: Path) -> None:
    """Copy the licence, and the lock file if results were made with it."""
    text = root / "LICENSE"
    if text.is_file():
        graph.add_file("LICENSE", text.read_bytes(), name="Licence of code, texts and pictures")
    lock = root / LOCK
    lock_sums = [(figure.result.get("lock") or {}).get("sha256") for figure in figures]
    if lock.is_file() and (number := lock_sums.count(checksum(lock.read_bytes()))):
        graph.add_file(
            LOCK,
            lock.read_bytes(),
            name="Exact versions of libraries",
            description=f"Lock file of {number} of {len(figures)} results.",
            license=reference(licence(graph, "MIT")),
        )


@dataclass(frozen=True)
class _Run:
    """Ids of a figure's run: action, folder of the result, parameter values, data."""

    action: str
    folder: str
    values: tuple[str, ...]
    data: tuple[str, ...]


def _figure(
    graph: Graph, figure: StoredFigure, root: Path, dates: Dates, works: dict[str, str]
) -> _Run:
    """Describe a figure: notebook, parameter file, data, result and run."""
    entry = figure.entry
    result = figure.result
    mit = reference(licence(graph, "MIT"))
    version = result["versions"].get("repro", VERSION)
    notebook = graph.add_file(
        entry.notebook.relative_to(root).as_posix(),
        entry.notebook.read_bytes(),
        SOFTWARE,
        name=f"Notebook {entry.notebook.stem}",
        version=version,
        programmingLanguage=reference(PYTHON),
        license=mit,
    )
    libraries = [_library(graph, name, text) for name, text in result["versions"].items()]
    graph.link(notebook, "softwareRequirements", libraries)
    parameters = graph.add_file(
        entry.params_file.relative_to(root).as_posix(),
        entry.params_file.read_bytes(),
        name=f"Parameters and claims of {entry.id}",
        license=mit,
    )
    data = tuple(dict.fromkeys(data_entity(graph, used, root, version) for used in result["data"]))
    values = tuple(
        graph.add(
            f"#{name}-{slug(str(result[name]))}",
            "PropertyValue",
            name=name,
            value=result[name],
            exampleOfWork=reference(f"#parameter-{name}"),
        )
        for name in ("profile", "seed")
    )
    names = [*(result.get("files") or _usual_files(entry.stem)), RESULT]
    files = [
        graph.add_file(
            f"figures/{entry.id}/{name}",
            (figure.folder / name).read_bytes(),
            name=f"{entry.id}: {_ROLES.get(name.partition('.')[2], name)}",
            license=mit,
        )
        for name in names
    ]
    date = dates.of(figure)
    tally = tally_line([figure])
    folder = graph.add(
        f"figures/{entry.id}/",
        "Dataset",
        name=f"{paper_name(entry.paper)}, {result['reference']}: {result['title']}",
        description=f"Shows {result['shows']}. Verdicts: {tally}.",
        hasPart=references(files),
        dateModified=date,
        license=mit,
        isBasedOn=reference(works[entry.paper]) if entry.paper in works else None,
        variableMeasured=references(_verdicts(graph, entry.id, [figure])),
        exampleOfWork=reference("#parameter-figures"),
    )
    action = graph.add(
        f"#run-{slug(entry.id)}",
        "CreateAction",
        name=f"Run of {entry.id}",
        description=f"repro run {entry.id} {options(figure)}: {tally}",
        instrument=reference(notebook),
        object=references([parameters, *data, *values]),
        result=references(files),
        endTime=date,
        actionStatus=COMPLETED,
    )
    return _Run(action, folder, values, data)


def _library(graph: Graph, name: str, version: str) -> str:
    """Describe a library by name and version; return its id."""
    release = version.replace(".", "")
    # Python has a page for each release. The id of another library is its name and version, not the
    # address of a package index.
    address = f"#software-{name}-{version}"
    if name == "python":
        address = f"https://www.python.org/downloads/release/python-{release}/"
    return graph.add(
        address,
        "SoftwareApplication",
        name=name,
        softwareVersion=version,
        url=None if address.startswith("#") else reference(address),
    )


#: Role of a file of a result, by its ending.
_ROLES = {"svg": "picture", "csv": "table", "points.csv": "points", "json": "values and verdicts"}


def _usual_files(stem: str) -> list[str]:
    """Files of a result that lists none."""
    return [f"{stem}.svg", f"{stem}.csv"]


def _main_run(
    graph: Graph, figures: Sequence[StoredFigure], dates: Dates, runs: Sequence[_Run]
) -> str:
    """Describe the batch of all runs with its inputs and outputs; return its id."""
    folders = list(dict.fromkeys(run.folder for run in runs))
    values = list(dict.fromkeys(value for run in runs for value in run.values))
    data = list(dict.fromkeys(identifier for run in runs for identifier in run.data))
    files = [identifier for identifier in data if "File" in graph.entities[identifier]["@type"]]
    inputs = [
        _parameter(graph, "profile", "Text", [v for v in values if v.startswith("#profile-")]),
        _parameter(graph, "seed", "Integer", [v for v in values if v.startswith("#seed-")]),
    ]
    if files:
        inputs.append(_parameter(graph, "data", "File", files))
        for identifier in files:
            graph.link(identifier, "exampleOfWork", ["#parameter-data"])
    graph.link(COMMANDS, "input", inputs)
    graph.link(COMMANDS, "output", [_parameter(graph, "figures", "Dataset", folders)])
    return graph.add(
        "#run",
        "CreateAction",
        name=f"Runs of {len(figures)} figures",
        description="Each notebook ran with its parameter file, as `repro run` does.",
        instrument=reference(COMMANDS),
        object=references([*values, *data]),
        result=references(folders),
        endTime=dates.latest(figures),
        actionStatus=COMPLETED,
    )


def _parameter(graph: Graph, name: str, kind: str, examples: Sequence[str]) -> str:
    """Describe an input or output of ``commands.sh``; return its id."""
    return graph.add(
        f"#parameter-{name}",
        "FormalParameter",
        name=name,
        additionalType=kind,
        conformsTo=reference(PARAMETER_PROFILE),
        workExample=references(examples),
    )
