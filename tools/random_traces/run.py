"""Blocks of cases, a line of results for each; a run goes on where it stopped."""

from __future__ import annotations

import csv
import gc
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

from repro.trace.runs import quantity
from tools.random_traces import cases
from tools.random_traces.check import MAX_ATTEMPTS, Verdict, check, relation_of
from tools.random_traces.reduce import reduced

#: Folder of the results, below the checkout.
FOLDER = "build/random_traces"
#: Committed results: neighbouring blocks without violation are one line.
COMMITTED = "docs/random_traces.csv"
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
    #: whether traces that the committed results count are left out
    more: bool = False
    results: Path | None = None

    @property
    def results_file(self) -> Path:
        """File with a line for each block."""
        return self.results or self.root / FOLDER / "results.csv"

    @property
    def committed_file(self) -> Path:
        """File of the committed results."""
        return self.root / COMMITTED


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
    #: traces with a second run that must agree with the first
    compared: int
    violations: int
    cpu_s: float
    #: commit of the checkout; several are separated by spaces
    commit: str
    #: first and last day; one day if they are equal
    date: str

    @property
    def end(self) -> int:
        """Number after that of the last trace."""
        return self.first + self.traces


def blocks(options: Options, done: Iterable[Line] = ()) -> list[Block]:
    """Blocks without a clean result, by their first trace; they end at multiples of `BLOCK`."""
    ends: dict[tuple[str, str, int, int], int] = {}
    for line in done:
        if not line.violations:
            begin = (line.policy, line.rules, line.seed, line.first)
            ends[begin] = max(line.end, ends.get(begin, 0))
    missing = []
    for policy, rules in cases.pairs():
        if options.only and not any(fnmatch(policy, pattern) for pattern in options.only):
            continue
        if options.rules and rules not in options.rules:
            continue
        first = 0
        while first < options.traces:
            end = ends.get((policy, rules, options.seed, first))
            if end is None:
                end = min((first // BLOCK + 1) * BLOCK, options.traces)
                missing.append(Block(policy, rules, options.seed, first, end - first))
            first = end
    return sorted(missing, key=lambda block: block.first)


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


def merged(lines: Iterable[Line]) -> list[Line]:
    """Lines without violation, with one line for neighbouring blocks; no trace counts twice."""
    clean = sorted(
        (line for line in lines if not line.violations),
        key=lambda line: (line.policy, line.rules, line.seed, line.first, -line.traces),
    )
    joined: list[Line] = []
    for line in clean:
        before = joined[-1] if joined else None
        if before is None or (before.policy, before.rules, before.seed) != (
            line.policy,
            line.rules,
            line.seed,
        ):
            joined.append(line)
        elif line.first == before.end:
            joined[-1] = _joined(before, line)
        elif line.first > before.end:
            joined.append(line)
    return joined


def _joined(before: Line, after: Line) -> Line:
    """Two neighbouring lines as one."""
    days = sorted({*before.date.split(" to "), *after.date.split(" to ")})
    return replace(
        before,
        traces=before.traces + after.traces,
        jobs=before.jobs + after.jobs,
        compared=before.compared + after.compared,
        cpu_s=round(before.cpu_s + after.cpu_s, 2),
        commit=" ".join(sorted({*before.commit.split(), *after.commit.split()})),
        date=" to ".join(dict.fromkeys((days[0], days[-1]))),
    )


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    """Write a file of results anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


def run(options: Options, report: Callable[[str], None] = print) -> int:
    """Check all blocks that have no clean result yet. Return the number of violations."""
    done = read_lines(options.results_file)
    if options.more:
        done = [*read_lines(options.committed_file), *done]
    todo = blocks(options, done)
    traces = sum(block.traces for block in todo)
    report(f"{quantity(len(todo), 'block')} without a clean result, {quantity(traces, 'trace')}")
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
    # Automatic garbage collections take a twentieth of the time. `checked` collects once a block.
    with ProcessPoolExecutor(processes, initializer=gc.disable) as pool:
        yield from pool.map(checked, todo, [commit] * len(list(todo)))


def checked(block: Block, commit: str) -> tuple[Line, list[str]]:
    """Check the cases of a block: its line of results, and a text for each violation."""
    begin = time.process_time()
    jobs = 0
    compared = 0
    faults = []
    for index in range(block.first, block.first + block.traces):
        verdict = check(block.policy, block.rules, block.seed, index)
        jobs += len(verdict.case.trace)
        compared += bool(verdict.relation)
        if verdict.fault:
            faults.append(description(verdict))
    gc.collect()
    line = Line(
        **asdict(block),
        jobs=jobs,
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
