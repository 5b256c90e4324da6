"""Group ``repro course``, found by an entry point of the group ``repro.commands``."""

from typing import ClassVar

import typer

from repro.cli.app import LazyGroup


class CourseCommands(LazyGroup):
    """Commands of ``repro course``."""

    package: ClassVar[str] = "repro_course"
    targets: ClassVar = {
        "release": (
            "commands:release",
            "Write the student's folder: assignments without solutions and hidden tests.",
        ),
        "grade": (
            "commands:grade",
            "Grade submissions, each in a process of its own, into FOLDER/grades.csv.",
        ),
    }


app = typer.Typer(cls=CourseCommands, add_completion=False, rich_markup_mode=None)


@app.callback()
def _course() -> None:
    """Release assignments to students, grade what comes back."""
