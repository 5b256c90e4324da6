"""Commands ``repro course release`` and ``repro course grade``."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from repro.base.errors import ParamError
from repro.cli.lines import complain, say
from repro_course import grade as grading
from repro_course.release import release as write_release

_Source = Annotated[
    Path | None,
    typer.Option("--source", metavar="DIR", help="Assignments of your own, 1_name.ipynb ..."),
]


def release(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    source: _Source = None,
) -> None:
    """Write the student's folder: assignments without solutions and hidden tests."""
    for path in write_release(folder, source):
        say(str(path))


def grade(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Submissions, STUDENT/1_name.ipynb.")
    ],
    jobs: Annotated[
        int | None, typer.Option("-j", metavar="N", help="Processes; by default one per CPU.")
    ] = None,
    cell: Annotated[float, typer.Option(metavar="S", help="Seconds one cell may take.")] = 60.0,
    wall: Annotated[float, typer.Option(metavar="S", help="Seconds one notebook may take.")] = 300,
    memory: Annotated[int, typer.Option(metavar="MB", help="Memory of one notebook.")] = 4096,
    source: _Source = None,
) -> None:
    """Grade submissions, each in a process of its own, into FOLDER/grades.csv."""
    faults = 0
    if jobs is not None and jobs < 1:
        raise ParamError(f"-j {jobs}: give a whole number of 1 or more")
    if not (cell > 0 and wall > 0 and memory > 0):
        raise ParamError("--cell, --wall and --memory: give numbers above 0")

    def report(row: dict[str, Any]) -> None:
        nonlocal faults
        faults += row["fault"]
        say(_line(row))

    limits = grading.Limits(cell=cell, wall=wall, cpu=wall, memory_mb=memory)
    say(str(grading.grade(folder, limits, source, jobs or os.cpu_count() or 1, report)))
    if faults:
        notebooks = "1 notebook" if faults == 1 else f"{faults} notebooks"
        complain(
            f"{notebooks} could not be graded because the grader failed (column note); mend the "
            "causes and run the command again, which grades only what is missing"
        )
        raise typer.Exit(1)


def _line(row: dict[str, Any]) -> str:
    """Line of text for a row of the table."""
    note = f" ({row['note']})" if row["note"] else ""
    name = f"{row['student']} {row['assignment']}".rstrip()
    if not row["tasks"]:
        return f"{name}: not graded{note}"
    return f"{name}: {sum(row['tasks'].values()):g} of {row['of']:g}, {row['seconds']:.1f} s{note}"
