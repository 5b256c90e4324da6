"""Run the commands and snippets of pages and write what they print: `python docs/printed.py`.

A page is run from top to bottom in a folder of its own. The first words after the three backticks
of a block say what happens to it:

- ``csv NAME``, ``yaml NAME``, ``python NAME``: the block is written into the file NAME.
- ``python``, with a name or without one: the block is run, after those above it.
- ``bash``: the block is run by a shell, and ends with code 0, or with N if it says ``exits N``.
- ``text printed``: the block holds what the block above it printed.

All other blocks are text. Pages in `IN_CHECKOUT` run in a copy of the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

ROOT = Path(__file__).resolve().parents[1]
#: Pages whose blocks are run.
PAGES = ("README", "start", "your_trace", "your_policy", "your_figure", "commands")
#: Pages whose commands read and write the folders of a checkout.
IN_CHECKOUT = ("start", "your_figure")
#: Picture that a run of a page writes, and its copy next to the page.
PICTURES = {"your_trace": ("comparison/jct.svg", "your_trace.svg")}
#: Lines on the progress of a batch, which differ from run to run.
_PROGRESS = re.compile(r"^\S+ (?:\d+/)?\d+ simulations\n", re.MULTILINE)
#: Folders and files of a copy of the checkout. It writes to `build`, and to folders of its own.
COPIED = ("params", "notebooks", "traces", "figures")

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Times of a run, which differ from run to run.
_TIMES = re.compile(r"\(\d[\d.]* (?:s|min)\)|(?<=wall_s) +[\d.,]+ s")
#: Last column of the table of `repro compare`, a time too.
_CPU_COLUMN = "CPU/job (ms)"
#: Reads blocks of Python, each a line of JSON, and answers each with a line of JSON.
_WORKER = """
import contextlib, io, json, sys, traceback
space = {"__name__": "__main__"}
for line in sys.stdin:
    printed, failed = io.StringIO(), False
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            exec(compile(json.loads(line), "<page>", "exec"), space)
        except BaseException:
            failed = True
            traceback.print_exc()
    print(json.dumps([printed.getvalue(), failed]), flush=True)
"""


class PageError(Exception):
    """A block of a page failed, or printed nothing where the page shows something."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, and its text."""

    language: str
    words: tuple[str, ...]
    text: str

    @property
    def is_printed(self) -> bool:
        """Whether the block holds what the block above it printed."""
        return (self.language, self.words) == ("text", ("printed",))

    @property
    def file_name(self) -> str:
        """File that the block is written into; empty if there is none."""
        named = self.language in ("csv", "yaml", "python") and len(self.words) == 1
        return self.words[0] if named else ""


def blocks(text: str) -> list[Block]:
    """Fenced blocks of a page."""
    return [
        Block(language, tuple(words.split()), body)
        for language, words, body in _BLOCK.findall(text)
    ]


def run_page(name: str, folder: Path) -> list[str]:
    """Texts that the blocks above each ``text printed`` of a page print now, in order.

    Parameters
    ----------
    name : str
        Stem of the page in `docs`, or ``README``.
    folder : Path
        Empty folder, in which the blocks run.

    Raises
    ------
    PageError
        If a block fails, or prints nothing although the page shows something.
    """
    home = copy_of_checkout(folder) if name in IN_CHECKOUT else ROOT
    work = home if name in IN_CHECKOUT else folder
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "REPRO_HOME": str(home),
    }
    printed: list[str] = []
    last = ""
    with Python(work, environment) as python:
        for block in blocks(page(name).read_text(encoding="utf-8")):
            if block.is_printed:
                if not last:
                    raise PageError(f"{name}: nothing is printed above block {len(printed) + 1}")
                printed.append(last)
                continue
            last = ""
            if block.file_name:
                path = work / block.file_name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            if block.language == "python":
                last = python.run(block.text)
            elif block.language == "bash":
                last = shell(block, work, environment)
            last = _PROGRESS.sub("", last)
            last = last.replace(f"{work}/", "").replace(str(work), ".")
    return printed


def page(name: str) -> Path:
    """Path of a page."""
    return ROOT / f"{name}.md" if name == "README" else ROOT / "docs" / f"{name}.md"


def copy_of_checkout(folder: Path) -> Path:
    """Checkout whose files are links to those of this one, so that new files are its own."""
    for name in COPIED:
        for source in sorted((ROOT / name).rglob("*")):
            target = folder / source.relative_to(ROOT)
            if not source.is_dir():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(source)
    return folder


def shell(block: Block, folder: Path, environment: dict[str, str]) -> str:
    """Output and errors of a block of shell commands."""
    expected = int(block.words[1]) if block.words[:1] == ("exits",) else 0
    done = subprocess.run(
        ["bash", "-e", "-c", block.text],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != expected:
        raise PageError(f"code {done.returncode}, not {expected}:\n{block.text}{done.stdout}")
    return done.stdout


class Python:
    """A Python process that runs blocks one after another in one namespace."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Python:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, text: str) -> str:
        """What a block prints."""
        questions = cast(IO[str], self._process.stdin)
        questions.write(f"{json.dumps(text)}\n")
        questions.flush()
        printed, failed = json.loads(cast(IO[str], self._process.stdout).readline())
        if failed:
            raise PageError(f"{text}{printed}")
        return str(printed)


def with_printed(text: str, printed: list[str]) -> str:
    """Page with other texts in its blocks ``text printed``."""
    texts = iter(printed)

    def replaced(match: re.Match[str]) -> str:
        (block,) = blocks(match[0])
        return f"```text printed\n{next(texts).rstrip()}\n```" if block.is_printed else match[0]

    return _BLOCK.sub(replaced, text)


def without_times(text: str) -> str:
    """Text without the times of a run and the widths of columns, to compare two runs."""
    if _CPU_COLUMN in text:
        text = re.sub(r" +[\d.,]+$", "", text, flags=re.MULTILINE)
    return re.sub(r" +", " ", _TIMES.sub("(time)", text.rstrip()))


def main() -> int:
    """Run the pages that are named, or all, and write what they print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"by default {', '.join(PAGES)}")
    for name in parser.parse_args().pages or PAGES:
        with tempfile.TemporaryDirectory() as folder:
            printed = run_page(name, Path(folder).resolve())
            if name in PICTURES:
                source, copy = PICTURES[name]
                shutil.copy(Path(folder) / source, page(name).parent / copy)
        text = page(name).read_text(encoding="utf-8")
        page(name).write_text(with_printed(text, printed), encoding="utf-8")
        print(f"{name}.md written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
