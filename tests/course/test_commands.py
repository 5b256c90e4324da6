"""The two parts of the course: its commands, and what students import."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest
from sheets import by_command

from repro.cli import main
from repro_course.app import CourseCommands


@pytest.mark.parametrize("name", CourseCommands.targets)
def test_every_command_has_the_line_of_its_help(name):
    target, line = CourseCommands.targets[name]
    module, _, function = target.partition(":")
    command = getattr(importlib.import_module(f"{CourseCommands.package}.{module}"), function)
    assert " ".join(inspect.getdoc(command).split("\n\n")[0].split()) == line


@by_command
@pytest.mark.parametrize("name", CourseCommands.targets)
def test_every_command_answers_to_h(name, capsys):
    assert main(["course", name, "-h"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: repro course {name} ") and "-h, --help" in shown


@by_command
def test_no_command_shows_the_help(capsys):
    assert main(["course"]) == 0
    bare = capsys.readouterr().out
    assert main(["course", "--help"]) == 0
    assert bare == capsys.readouterr().out
    assert bare.startswith("Usage: repro course ")
    assert all(f"\n  {name} " in bare for name in CourseCommands.targets)


def test_help_imports_nothing_heavy():
    code = (
        "import sys, repro_course.app, typer; typer.main.get_command(repro_course.app.app);"
        "sys.exit(bool({'numpy', 'pandas', 'nbformat', 'pytest'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_checks_work_without_the_instructors_part():
    code = (
        "import sys; sys.modules['repro_course'] = None\n"
        "from repro.course import Wrong, expect\n"
        "expect(lambda: 6, gives=6.0)\n"
        "try: expect(lambda: 5, gives=6.0)\n"
        "except Wrong as wrong: print(wrong)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "gives 5 instead of 6.0" in done.stdout
