"""Batches of a tiny project, and comparisons of what they leave with an undisturbed batch."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

from processes import unfinished

from repro.figures import saved

FIGURES = ("tiresias/fig00_x", "gavel/fig01_x")
#: Folder of results; pages of all folders at this depth have the same links.
UNDISTURBED = "build/undisturbed"
_TIMES = ("wall_s", "cpu_s", "rounds")
#: how long a figure took, in the gallery
_WALL = re.compile(rb'<dd class="wall">.*</dd>')


def add_figures(project):
    """Write the figures and run them undisturbed."""
    for name in FIGURES:
        project.add(name)
    done = run(project, "--out", UNDISTURBED)
    assert done.returncode == 0, done.stdout + done.stderr


def run(project, *words, **env):
    """Run all figures to the end, in a process of its own."""
    return subprocess.run(
        project.command("run", "--all", "-j", "2", *words),
        env={**project.env, **env},
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def results(folder: Path) -> dict[str, object]:
    """Files of a folder of results, without the times that runs took."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name == saved.RESULT:
            content = saved.read_json(path)
            found[name] = {key: content[key] for key in content if key not in _TIMES}
        elif path.is_file():
            found[name] = _WALL.sub(b"", path.read_bytes())
    return found


def faults_of(project, out="build/figures"):
    """How the results of a batch that was resumed differ from an undisturbed one, and leftovers."""
    undisturbed = results(project.root / UNDISTURBED)
    resumed = results(project.root / out)
    differing = undisturbed.keys() ^ resumed.keys()
    differing |= {name for name in undisturbed if resumed.get(name) != undisturbed[name]}
    hidden = [name for part in ("build", "cache") for name in unfinished(project.root / part)]
    # The module multiprocessing leaves an empty folder with a socket.
    left = [name for name in os.listdir(project.env["TMPDIR"]) if not name.startswith("pymp-")]
    return [*sorted(differing), *hidden, *sorted(left)]


def check_whole(project, out="build/figures"):
    """No file has a part of its content; files of two runs of the same inputs are the same."""
    undisturbed = results(project.root / UNDISTURBED)
    for name in FIGURES:
        folder = project.root / out / name
        assert saved.read_result(folder)[1] == ""
        for path in folder.glob("[!.]*"):
            if path.suffix in (".svg", ".csv"):
                with contextlib.suppress(FileNotFoundError):
                    assert path.read_bytes() == undisturbed[f"{name}/{path.name}"]
