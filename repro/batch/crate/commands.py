"""The shell script of a crate that makes its results again."""

import shlex
from collections.abc import Sequence

from repro.base.release import VERSION
from repro.batch.check import StoredFigure
from repro.figures.data import PUBLIC


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
    batches: dict[tuple[str, int], list[str]] = {}
    for figure in figures:
        run = figure.result["profile"], figure.result["seed"]
        batches.setdefault(run, []).append(figure.entry.id)
    for (profile, seed), ids in batches.items():
        options = f"--profile {profile} -p seed {seed} --out build/again"
        lines.append(f".venv/bin/repro run {shlex.join(ids)} {options}")
    ids = [figure.entry.id for figure in figures]
    compared = '--out build/again --against "$crate/figures"'
    lines.append(f".venv/bin/repro check {shlex.join(ids)} {compared}")
    return "\n".join(lines) + "\n"
