"""Runs of mutants: the sample, the map of the tests, and a line of results for each mutant."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tools.mutate import operators, scope, suite
from tools.mutate.copies import Server, copy_checkout
from tools.mutate.operators import Mutant
from tools.mutate.server import TOO_LONG
from tools.mutate.suite import Choice, Keys, Test, choose, short_hash

KILLED, TIMEOUT, SURVIVED = "killed", "timeout", "survived"
#: The folder of maps and results, below the checkout.
FOLDER = "build/mutate"
#: A child is ended after so many seconds per second of its tests: other processes may slow it.
_WALL_FACTOR = 20.0
_WALL_S = 120.0
_MAP_WALL_S = 7200.0


@dataclass(frozen=True)
class Options:
    """What to run."""

    root: Path
    #: patterns of files with mutants; empty: all
    only: tuple[str, ...] = ()
    #: patterns of files with tests
    tests: tuple[str, ...] = scope.TESTS
    #: number of mutants; None: all
    sample: int | None = None
    seed: int = 0
    #: number of this shard from 1, and number of shards
    shard: tuple[int, int] = (1, 1)
    processes: int = 2
    #: CPU time of the tests of a mutant (s)
    budget_s: float = 20.0
    #: a test that takes longer judges no mutants (s of CPU time)
    test_s: float = 10.0
    results: Path | None = None

    @property
    def results_file(self) -> Path:
        """File with a line for each mutant."""
        return self.results or self.root / FOLDER / "results.jsonl"


def sample(options: Options) -> list[tuple[Mutant, str]]:
    """Mutants of a run with their sources, in an order that the seed decides.

    A larger sample of the same seed contains the smaller one. Which mutants a shard has does not
    depend on the other shards.
    """
    every: list[tuple[str, Mutant, str]] = []
    for path in scope.modules(options.root).values():
        if not options.only or any(fnmatch(path, pattern) for pattern in options.only):
            source = (options.root / path).read_text("utf-8")
            for mutant in operators.mutants(source, path):
                order = hashlib.sha256(f"{options.seed}:{mutant.id}".encode()).hexdigest()
                every.append((order, mutant, source))
    every.sort(key=lambda row: row[0])
    chosen: list[tuple[Mutant, str]] = []
    for _, mutant, source in every:
        if len(chosen) == options.sample:
            break
        if operators.compiles(mutant, source):
            chosen.append((mutant, source))
    number, count = options.shard
    return chosen[number - 1 :: count]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Lines of a file of results. The last line may be cut off, where a run was ended."""
    lines = []
    if path.is_file():
        for text in path.read_text("utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                continue
    return lines


def known_results(lines: Iterable[dict[str, Any]], keys: Keys) -> dict[tuple[str, str], Any]:
    """Last result of each mutant and source that still holds, by (id, hash of the source).

    A killed mutant stays killed. A survivor is run again after a change of the package or of a
    test.
    """
    return {
        (line["id"], line["source"]): line
        for line in lines
        if line["status"] != SURVIVED or line["suite"] == keys.suite
    }


def run(options: Options, report: Callable[[str], None] = print) -> int:
    """Run the mutants that have no result yet. Return the number of mutants that were run."""
    keys = Keys(options.root)
    mutants = sample(options)
    known = known_results(read_lines(options.results_file), keys)
    todo = [row for row in mutants if (row[0].id, short_hash(row[1])) not in known]
    report(f"{len(mutants)} mutants, {len(mutants) - len(todo)} with a result")
    if not todo:
        return 0
    with tempfile.TemporaryDirectory(prefix="repro-mutate-") as folder, ExitStack() as stack:
        servers = []
        for number in range(options.processes):
            copy = Path(folder) / f"copy{number}"
            copy_checkout(options.root, copy)
            servers.append(stack.enter_context(Server(copy)))
        tests = mapped_tests(options, keys, servers, report)
        judge = Judge(options, keys, tests, report, len(todo))
        in_parallel(servers, todo, judge)
    return len(todo)


def in_parallel(
    servers: Sequence[Server], items: Iterable[Any], work: Callable[[Server, Any], None]
) -> None:
    """Do the work for each item, each server in a thread; the first error ends all."""
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)
    errors: list[BaseException] = []

    def serve(server: Server) -> None:
        while not errors:
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                work(server, item)
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=serve, args=[server], daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def mapped_tests(
    options: Options, keys: Keys, servers: Sequence[Server], report: Callable[[str], None]
) -> list[Test]:
    """Map of the tests, as far as it is not in ``map.jsonl`` yet."""
    path = options.root / FOLDER / "map.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = threading.Lock()
    files = scope.test_files(options.root, options.tests)
    key_of = {name: keys.of_tests(name) for name in files}
    known = {
        line["file"]: line
        for line in read_lines(path)
        if (line["key"], line["test_s"]) == (key_of.get(line["file"]), options.test_s)
    }
    missing = [name for name in files if name not in known]

    def work(server: Server, name: str) -> None:
        answer = server.ask(files=[name], limit_s=options.test_s, wall_s=_MAP_WALL_S, maps=True)
        line = {
            "file": name,
            "key": key_of[name],
            "test_s": options.test_s,
            "cpu_s": answer["cpu_s"],
            "imported": answer.get("imported", []),
            "tests": answer["outcomes"],
        }
        with lock:
            known[name] = line
            _append(path, line)
            ended = f", {answer['ended']}" if answer["ended"] else ""
            report(f"mapped {name}: {len(line['tests'])} tests ({answer['cpu_s']:.1f} s{ended})")

    in_parallel(servers, missing, work)
    tests, unused = suite.read(known[name] for name in files)
    report(f"{len(tests)} tests judge mutants, {len(unused)} are skipped, fail or take too long")
    return tests


class Judge:
    """Runs the tests of a mutant and writes its line of results.

    Parameters
    ----------
    options : Options
        Options of the run.
    keys : Keys
        Hashes of the checkout.
    tests : list of Test
        Map of the tests.
    report : callable
        Called with a line of progress for each mutant.
    count : int
        Number of mutants of this run.
    """

    def __init__(
        self,
        options: Options,
        keys: Keys,
        tests: list[Test],
        report: Callable[[str], None],
        count: int,
    ) -> None:
        self._options = options
        self._keys = keys
        self._tests = tests
        self._report = report
        self._count = count
        self._done = 0
        self._lock = threading.Lock()
        #: tests that passed without a mutant after they had found one, and tests that did not
        self._trusted: set[str] = set()
        self._distrusted: set[str] = set()
        self._commit = _commit(options.root)

    def __call__(self, server: Server, row: tuple[Mutant, str]) -> None:
        """Judge a mutant."""
        mutant, source = row
        begin = time.perf_counter()
        status, test, choice, cpu_s = self._judge(server, mutant, source)
        old, new = mutant.diff(source)
        line = {
            "id": mutant.id,
            "path": mutant.path,
            "line": mutant.line,
            "function": mutant.function,
            "operator": mutant.operator,
            "old": old,
            "new": new,
            "status": status,
            "test": test,
            "tests": choice.count,
            "left_out": choice.left_out,
            "reached": choice.is_reached,
            "cpu_s": round(cpu_s, 2),
            "wall_s": round(time.perf_counter() - begin, 2),
            "source": short_hash(source),
            "suite": self._keys.suite,
            "commit": self._commit,
            "date": date.today().isoformat(),
        }
        with self._lock:
            self._done += 1
            _append(self._options.results_file, line)
            place = f"{mutant.path}:{mutant.line}"
            self._report(
                f"[{self._done}/{self._count}] {status} {mutant.id} {place} {mutant.operator} "
                f"({cpu_s:.1f} s)"
            )

    def _judge(
        self, server: Server, mutant: Mutant, source: str
    ) -> tuple[str, str | None, Choice, float]:
        """Status of a mutant, the test that finds it, its tests and the CPU time (s)."""
        cpu_s = 0.0
        while True:
            choice = choose(self._tests, mutant, self._options.budget_s, self._distrusted)
            found: tuple[str, str | None] = (SURVIVED, None)
            is_trusted = True
            for stage in choice.stages:
                faulty = mutant.apply(source)
                answer = _ask(server, stage, path=mutant.path, source=faulty)
                cpu_s += answer["cpu_s"]
                found = _status(answer)
                if found[0] != SURVIVED:
                    is_trusted, checking_s = self._is_trusted(server, stage, found[1])
                    cpu_s += checking_s
                    break
            if is_trusted:
                return *found, choice, cpu_s

    def _is_trusted(
        self, server: Server, stage: tuple[Test, ...], name: str | None
    ) -> tuple[bool, float]:
        """Whether a test that found a mutant passes without one, after the same tests.

        A mutant that breaks an import is found by no test. Then all tests must pass without it.
        """
        names = [test.name for test in stage]
        until = names.index(name) + 1 if name in names else len(names)
        key = name or " ".join(names)
        if key in self._trusted:
            return True, 0.0
        answer = _ask(server, stage[:until])
        status, failed = _status(answer)
        if status == SURVIVED:
            self._trusted.add(key)
            return True, answer["cpu_s"]
        if failed is None:
            raise RuntimeError(f"tests do not run without a mutant ({answer['ended']}): {names}")
        self._distrusted.add(failed)
        self._report(f"left out, as it fails without a mutant: {failed}")
        return False, answer["cpu_s"]


def _ask(server: Server, tests: Sequence[Test], **replaced: str) -> dict[str, Any]:
    """Run tests, with a file replaced or as they are."""
    files = list(dict.fromkeys(test.file for test in tests))
    limits = {test.name: test.limit_s for test in tests}
    wall_s = _WALL_S + _WALL_FACTOR * sum(test.seconds for test in tests)
    return server.ask(files=files, tests=limits, limit_s=60.0, wall_s=wall_s, **replaced)


def _status(answer: dict[str, Any]) -> tuple[str, str | None]:
    """Status of a mutant after some tests, and the test that found it; None for an import."""
    if answer["ended"] == TOO_LONG:
        return TIMEOUT, answer["current"]
    if answer["code"] == 0:
        return SURVIVED, None
    return KILLED, answer["failed"]


def _append(path: Path, line: dict[str, Any]) -> None:
    """Append a line to a file, also behind a line that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(line, ensure_ascii=False) + "\n"
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                text = f"\n{text}"
        file.write(text.encode())


def _commit(root: Path) -> str:
    """Commit of a checkout, with a plus sign if files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=8", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()
