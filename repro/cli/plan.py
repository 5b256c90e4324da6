"""``repro plan``: how long figures take on a number of workers."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from repro.base import paths
from repro.base.counts import quantity, refuse_below
from repro.base.errors import ReproError, refuse_unknown
from repro.batch import duration
from repro.cli import complete
from repro.cli.figures import Ids, Json, Paper
from repro.cli.lines import complain, say
from repro.figures import params


def plan_figures(
    ids: Ids = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", help="Simulations at a time, on all machines.")
    ] = 1,
    paper: Paper = None,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="quick (small, minutes for all figures) or paper (the paper's size).",
            autocompletion=complete.profiles,
        ),
    ] = "quick",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder of results with the recorded times (default: build/figures, else the "
            "committed figures).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the critical path of figures and their time on N workers, from recorded CPU times."""
    refuse_unknown("--profile cannot be", [profile], params.PROFILES)
    refuse_below("--workers", workers, 1, "a number of workers")
    entries = params.select(ids or [], params.discover(), paper=paper)
    folders = [paths.build_dir(), paths.figures_dir()] if out is None else [paths.expanded(out)]
    loads, unknown = duration.recorded_loads(entries, profile, folders)
    if not loads:
        names = " or ".join(map(str, folders))
        raise ReproError(
            f"no figure has a result of profile {profile} in {names}; `repro run` records the times"
        )
    document = _document(loads, unknown, workers, profile)
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        for line in _lines(document):
            say(line)
    if unknown:
        complain(f"{quantity(len(unknown), 'figure')} without a result, not planned: ", *unknown)
    if undivided := document["undivided"]:
        names = ", ".join(undivided[:3]) + (", …" if len(undivided) > 3 else "")
        complain(
            f"{quantity(len(undivided), 'result')} of an earlier version ({names}) did not record "
            "their simulations, so each is planned as one piece of work; `repro run --force` "
            "records them"
        )


def _document(
    loads: list[duration.Load], unknown: list[str], workers: int, profile: str
) -> dict[str, Any]:
    """Critical path, bounds and expected time."""
    path = max(loads, key=lambda load: load.critical_path_s)
    longest = max(loads, key=lambda load: load.longest_s)
    return {
        "profile": profile,
        "workers": workers,
        "figures": len(loads),
        "simulations": sum(batch.simulations for load in loads for batch in load.parallel_batches),
        "cpu_s": round(sum(load.cpu_s for load in loads), 3),
        "longest_simulation": {"figure": longest.id, "cpu_s": longest.longest_s},
        "critical_path": {
            "figure": path.id,
            "seconds": round(path.critical_path_s, 3),
            "own_s": round(path.own_s, 3),
            "rounds_s": [batch.longest_s for batch in path.parallel_batches],
        },
        "least_s": round(duration.least_s(loads, workers), 3),
        "expected_s": round(duration.expected_s(loads, workers), 3),
        "most_s": round(duration.most_s(loads, workers), 3),
        "undivided": [load.id for load in loads if not load.is_divided],
        "unknown": unknown,
    }


def _lines(document: dict[str, Any]) -> list[str]:
    """Lines for a reader."""
    path = document["critical_path"]
    longest = document["longest_simulation"]
    num_rounds = len(path["rounds_s"])
    steps = f", then {quantity(num_rounds, 'round')} of simulations" if num_rounds else ""
    work = f"{_time(document['cpu_s'])} of CPU time"
    lines = [
        f"work           {quantity(document['figures'], 'figure')}, {work}, "
        f"{quantity(document['simulations'], 'simulation')} that workers can run",
        f"critical path  {_time(path['seconds'])}, {path['figure']}: {_time(path['own_s'])} in the "
        f"notebook{steps}",
    ]
    if document["simulations"]:
        lines.append(
            f"longest        {_time(longest['cpu_s'])}, a simulation of {longest['figure']}"
        )
    bounds = f"{_time(document['least_s'])} to {_time(document['most_s'])}"
    lines.append(
        f"expected       {_time(document['expected_s'])} on "
        f"{quantity(document['workers'], 'worker')} ({bounds})"
    )
    return lines


def _time(seconds: float) -> str:
    """Time in words.

    >>> _time(5.25), _time(75), _time(7260)
    ('5.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest_s} s"
