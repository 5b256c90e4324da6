"""Process that runs tests in forked children, so that third-party packages are imported once.

`python -m tools.mutate.server` runs in a copy of the checkout. It reads requests from its input,
one a line in JSON, and answers each with one line on its output. A request has

- ``files``: files with tests, which the child collects;
- ``tests`` and ``limit_s``: see `tools.mutate.selection.Selection`;
- ``wall_s``: time after which the child is ended;
- ``maps``: whether the child notes the blocks that each test reaches;
- ``path`` and ``source``: file to replace while the child runs, and its text, or neither.

The answer has ``code`` (status of pytest), ``failed`` (first failed test), ``current`` (last test),
``outcomes``, ``cpu_s`` and ``ended``: `TOO_LONG` at a limit, another reason if the child did not
come to the end of its tests, and empty if it did. With ``maps`` it has ``imported``, the modules
with mutants that the child imported.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

import pytest

from tools.mutate import blocks, scope
from tools.mutate.selection import Selection

#: Packages of tests and of the library. Each child has them from the start.
PRELOADED = (
    "numpy",
    "pandas",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.stats",
    "networkx",
    "rustworkx",
    "sortedcontainers",
    "simpy",
    "yaml",
    "pydantic",
    "hypothesis.strategies",
    "hypothesis.extra.numpy",
    "pytest",
)
#: Limit of memory of a child: a fault in a length must not fill the machine.
MEMORY_BYTES = 6 << 30
#: A plug-in that only costs time, or whose limits would count twice.
_LEFT_OUT = ("cacheprovider", "xdist", "timeout", "benchmark")
TOO_LONG = "too long"
_caches: list[Any] = []


def main() -> None:
    """Answer requests until the input ends."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    answers = os.fdopen(os.dup(1), "w")
    # what tests print must not get between the answers
    os.dup2(2, 1)
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _list_caches()
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Answer to one request; the file of a mutant is replaced while the child runs."""
    path = Path(request["path"]) if request.get("path") else None
    original = path.read_bytes() if path else b""
    try:
        if path:
            path.write_text(request["source"], encoding="utf-8")
        return _answer_of_child(request)
    finally:
        if path:
            path.write_bytes(original)
        for folder in (os.environ["REPRO_CACHE_DIR"], _files_of_tests()):
            shutil.rmtree(folder, ignore_errors=True)


def _files_of_tests() -> str:
    """Folder of the temporary files of tests."""
    return f"{os.environ['REPRO_CACHE_DIR']}-tests"


def _answer_of_child(request: dict[str, Any]) -> dict[str, Any]:
    """Fork a child that runs the tests, and wait for its answer."""
    receiving, sending = os.pipe()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if not child:
        os.close(receiving)
        _be_child(request, sending)
    os.close(sending)
    text = b""
    try:
        # the child, or its parent here: whoever comes first
        with contextlib.suppress(OSError):
            os.setpgid(child, child)
        with os.fdopen(receiving, "rb") as pipe:
            if select.select([pipe], [], [], request["wall_s"])[0]:
                text = pipe.readline()
    finally:
        with contextlib.suppress(ProcessLookupError):
            # also the processes that its tests have started
            os.killpg(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result = {"code": None, "failed": None, "current": None, "outcomes": {}, "ended": ""}
    if text:
        result |= json.loads(text)
    elif os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU):
        result["ended"] = TOO_LONG
    else:
        result["ended"] = f"status {status}"
    return {**result, "cpu_s": round(cpu_s, 3)}


def _be_child(request: dict[str, Any], sending: int) -> NoReturn:
    """Run the tests of a request, send the answer, and end this process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    seconds = int(request["wall_s"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    reached = _note_blocks() if request.get("maps") else None

    def send(**entries: Any) -> NoReturn:
        about_tests = {"failed": plugin.failed, "current": plugin.current}
        if reached is not None:
            entries["imported"] = [module for module in reached if module in sys.modules]
        text = json.dumps({**about_tests, "outcomes": plugin.outcomes, **entries})
        with os.fdopen(sending, "w") as pipe:
            pipe.write(f"{text}\n")
        os._exit(0)

    plugin = Selection(
        request.get("tests"),
        request["limit_s"],
        reached,
        end=lambda: send(ended=TOO_LONG),
        clear_caches=_clear_caches,
    )
    words = [
        "--override-ini=addopts=",
        "--doctest-modules",
        "--assert=plain",
        "-m",
        "not nightly and not slow",
        f"--basetemp={_files_of_tests()}",
        *(f"-p no:{name}" for name in _LEFT_OUT),
        *([] if request.get("maps") else ["--maxfail=1"]),
        *request["files"],
    ]
    try:
        code = int(pytest.main(words, plugins=[plugin]))
    # SystemExit too: a fault may end the process anywhere
    except BaseException as error:
        send(ended=f"{type(error).__name__}")
    send(code=code)


def _note_blocks() -> dict[str, set[int]]:
    """Let the modules with mutants note their blocks, in the sets of the result."""
    files = scope.modules(Path.cwd())
    reached: dict[str, set[int]] = {module: set() for module in files}

    class Loader(importlib.machinery.SourceFileLoader):
        """Loader of an instrumented source. It neither reads nor writes a file of bytecode."""

        def get_code(self, fullname: str) -> CodeType:
            source = Path(files[fullname]).read_text(encoding="utf-8")
            tree = blocks.instrumented(source, self.path)
            return compile(tree, self.path, "exec", dont_inherit=True)

        def exec_module(self, module: ModuleType) -> None:
            setattr(module, blocks.NOTE, reached[module.__name__].add)
            super().exec_module(module)

    class Finder(importlib.machinery.PathFinder):
        """Finder of the modules with mutants."""

        @classmethod
        def find_spec(
            cls, fullname: str, path: Any = None, target: Any = None
        ) -> importlib.machinery.ModuleSpec | None:
            if fullname not in files:
                return None
            location = str(Path(files[fullname]).absolute())
            return importlib.util.spec_from_file_location(
                fullname, location, loader=Loader(fullname, location)
            )

    sys.meta_path.insert(0, Finder)
    return reached


def _list_caches() -> None:
    """Keep a list of the functions that `functools` gives a cache from now on."""
    make = functools.lru_cache

    @functools.wraps(make)
    def lru_cache(*values: Any, **named: Any) -> Any:
        made = make(*values, **named)
        if hasattr(made, "cache_clear"):
            _caches.append(made)
            return made

        def decorate(function: Any) -> Any:
            _caches.append(made(function))
            return _caches[-1]

        return decorate

    functools.lru_cache = lru_cache  # type: ignore[assignment]


def _clear_caches() -> None:
    """Forget the kept results of functions of the package and of the tests."""
    for cache in _caches:
        module = getattr(cache, "__module__", "") or ""
        # names of files with tests have no folder
        if module.startswith(("repro", "test")) or "." not in module:
            cache.cache_clear()


if __name__ == "__main__":
    main()
