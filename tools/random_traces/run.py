"""Blocks of cases, a line of results for each; a run goes on where it stopped."""

from __future__ import annotations

import csv
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

from tools.random_traces import cases
from tools.random_traces.check import MAX_ATTEMPTS, Verdict, check, relation_of
from tools.random_traces.reduce import reduced

#: Folder of the results, below the checkout.
FOLDER = "build/random_traces"
#: Cases of one line of results.
BLOCK = 50


@dataclass(frozen=True)
class Options:
    """What to run."""

    root: Path
    traces: int = 10_000
    seed: int = 42
    processes: int = 1
    #: patterns of policies; empty: all
    only: tuple[str, ...] = ()
    #: rule sets; empty: all
    rules: tuple[str, ...] = ()
    results: Path | None = None

    @property
    def results_file(self) -> Path:
        """File with a line for each block."""
        return self.results or self.root / FOLDER / "results.csv"


@dataclass(frozen=True)
class Block:
    """Cases of a policy under a rule set, by number."""

    policy: str
    rules: str
    seed: int
    first: int
    traces: int


@dataclass(frozen=True)
class Line:
    """Results of a block."""

    policy: str
    rules: str
    seed: int
    first: int
    traces: int
    #: jobs of all traces
    jobs: int
    #: draws that were refused
    refused: int
    #: traces with a second run that must agree with the first
    compared: int
    violations: int
    cpu_s: float
    commit: str
    date: str


def blocks(options: Options) -> list[Block]:
    """All blocks of a run: the first block of each policy and rule set, then the second, ..."""
    chosen = [
        (policy, rules)
        for policy, rules in cases.pairs()
        if (not options.only or any(fnmatch(policy, pattern) for pattern in options.only))
        and (not options.rules or rules in options.rules)
    ]
    return [
        Block(policy, rules, options.seed, first, min(BLOCK, options.traces - first))
        for first in range(0, options.traces, BLOCK)
        for policy, rules in chosen
    ]


def read_lines(path: Path) -> list[Line]:
    """Lines of a file of results. The last line may be cut off, where a run was ended."""
    lines = []
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                try:
                    values = {
                        field.name: _KINDS[str(field.type)](row[field.name])
                        for field in fields(Line)
                    }
                except (TypeError, ValueError):
                    continue
                lines.append(Line(**values))
    return lines


_KINDS: dict[str, Callable[[str], object]] = {"str": str, "int": int, "float": float}


def run(options: Options, report: Callable[[str], None] = print) -> int:
    """Check all blocks that have no result yet. Return the number of violations."""
    done = {
        (line.policy, line.rules, line.seed, line.first, line.traces)
        for line in read_lines(options.results_file)
    }
    every = blocks(options)
    todo = [
        block
        for block in every
        if (block.policy, block.rules, block.seed, block.first, block.traces) not in done
    ]
    report(f"{len(every):,} blocks, {len(every) - len(todo):,} with a result")
    commit = _commit(options.root)
    violations = 0
    for number, (line, faults) in enumerate(_results(todo, options.processes, commit), 1):
        violations += line.violations
        for text in faults:
            report(text)
        _append(options.results_file, line)
        report(
            f"[{number}/{len(todo)}] {line.policy} {line.rules} {line.first}: {line.traces} "
            f"traces, {line.violations} violations ({line.cpu_s:.1f} s)"
        )
    return violations


def _results(
    todo: Iterable[Block], processes: int, commit: str
) -> Iterator[tuple[Line, list[str]]]:
    """Results of blocks, in their order."""
    if processes == 1:
        for block in todo:
            yield checked(block, commit)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(checked, todo, [commit] * len(list(todo)))


def checked(block: Block, commit: str) -> tuple[Line, list[str]]:
    """Check the cases of a block: its line of results, and a text for each violation."""
    begin = time.process_time()
    jobs = 0
    refused = 0
    compared = 0
    faults = []
    for index in range(block.first, block.first + block.traces):
        verdict = check(block.policy, block.rules, block.seed, index)
        jobs += len(verdict.case.trace)
        refused += verdict.refused
        compared += bool(verdict.relation)
        if verdict.fault:
            faults.append(description(verdict))
    line = Line(
        **asdict(block),
        jobs=jobs,
        refused=refused,
        compared=compared,
        violations=len(faults),
        cpu_s=round(time.process_time() - begin, 2),
        commit=commit,
        date=date.today().isoformat(),
    )
    return line, faults


def description(verdict: Verdict) -> str:
    """Command that shows a violation again, with the fewest jobs, and the fault."""
    case = verdict.case
    command = f"show {case.policy} {case.rules} {case.index} --seed {case.seed}"
    if verdict.refused == MAX_ATTEMPTS:
        return f"{command}: {verdict.fault}"
    rows, fault = reduced(case, relation_of(case))
    return f"{command} --rows {','.join(map(str, rows))}: {fault}"


def _append(path: Path, line: Line) -> None:
    """Append a line of results to a file, also behind a line that was cut off.

    The first line has the names of the columns.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.is_file() else b""
    is_cut_off = before != b"" and not before.endswith(b"\n")
    with path.open("a", newline="", encoding="utf-8") as file:
        if is_cut_off:
            file.write("\n")
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(asdict(line))


def _commit(root: Path) -> str:
    """Commit of a checkout, with a plus sign if files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=8", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()
