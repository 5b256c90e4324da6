"""A tiny project in a folder with a short name, and notes on the trials of each fault."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from tiny_project import Project


@dataclass
class Trials:
    """Trials of a fault: how often it was made, and what was right afterwards."""

    fault: str = ""
    run: str = ""
    #: number of trials
    times: int = 0
    #: trials in which the fault hit the run: it was killed, refused, or lost a worker or a file
    hit: int = 0
    #: trials after which the same command gave the bytes of an undisturbed run
    same: int = 0


def pytest_addoption(parser):
    parser.addoption("--faults", metavar="FILE", help="file for the trials, a line each")


@pytest.fixture
def trials(request):
    """Trials of a test; a test that passes writes them into the file of the option --faults."""
    noted = Trials()
    yield noted
    assert noted.times == noted.same
    if noted.times and (path := request.config.getoption("--faults")):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(asdict(noted))}\n")


@pytest.fixture
def folder():
    """Folder with a name that is short enough for the sockets of kernels."""
    path = Path(tempfile.mkdtemp(prefix="faults-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def project(folder):
    """Tiny project with an own folder for temporary files."""
    made = Project(folder / "p")
    (folder / "t").mkdir()
    made.env["TMPDIR"] = str(folder / "t")
    return made
