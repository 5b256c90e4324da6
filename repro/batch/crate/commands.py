"""The shell script of a crate that makes its results again."""

import shlex
from collections.abc import Sequence

from repro.base.release import VERSION
from repro.batch.check import StoredFigure
from repro.figures.data import PUBLIC
from repro.figures.notebook import parameter_defaults


def commands(figures: Sequence[StoredFigure]) -> str:
    """Shell script that makes results again in a checkout, and compares them with a crate."""
    public_names = sorted(
        {
            used["name"]
            for figure in figures
            for used in figure.result["data"]
            if used["kind"] == PUBLIC
        }
    )
    lines = [
        "#!/bin/sh",
        f"# Run in a checkout of repro {VERSION}. The first argument is the folder of the crate.",
        "set -eu",
        'crate="$(cd "${1:?give the folder of the crate}" && pwd)"',
        "make .venv/.core",
    ]
    if public_names:
        lines.append(f".venv/bin/repro trace fetch {shlex.join(public_names)}")
    batches: dict[str, list[str]] = {}
    for figure in figures:
        batches.setdefault(options(figure), []).append(figure.entry.id)
    for chosen, ids in batches.items():
        lines.append(f".venv/bin/repro run {shlex.join(ids)} {chosen} --out build/again")
    ids = [figure.entry.id for figure in figures]
    compared = '--out build/again --against "$crate/figures"'
    lines.append(f".venv/bin/repro check {shlex.join(ids)} {compared}")
    return "\n".join(lines) + "\n"


def options(figure: StoredFigure) -> str:
    """Options of ``repro run`` that make a result: its profile, and a seed that is no default."""
    seed = figure.result["seed"]
    # a notebook without random numbers accepts no seed
    default = parameter_defaults(figure.entry).get("seed", seed)
    own_seed = f" -p seed {seed}" if seed != default else ""
    return f"--profile {figure.result['profile']}{own_seed}"
