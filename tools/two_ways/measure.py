"""Run the cases of pairs, and keep a row per pair in docs/two_ways.csv."""

from __future__ import annotations

import csv
import datetime
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from tools.two_ways import catalogue
from tools.two_ways.pair import Difference, Pair

#: Cases between two writes of the file.
_BLOCK = 50


@dataclass(frozen=True)
class Row:
    """Result of a pair.

    Parameters
    ----------
    pair : str
        Name of the pair.
    seed : int
        Seed of the cases.
    cases : int
        Number of cases, from case 0 on.
    aside : int
        Cases that were set aside.
    equal : int
        Cases without any difference.
    largest : float
        Largest difference.
    beyond : int
        Cases beyond the bound.
    cpu_s : float
        CPU time of this process (s).
    date : str
        Day of the last case.
    """

    pair: str
    seed: int
    cases: int = 0
    aside: int = 0
    equal: int = 0
    largest: float = 0.0
    beyond: int = 0
    cpu_s: float = 0.0
    date: str = ""

    def with_case(self, pair: Pair, difference: Difference) -> Row:
        """Row with one case more."""
        if difference is None:
            return replace(self, cases=self.cases + 1, aside=self.aside + 1)
        return replace(
            self,
            cases=self.cases + 1,
            equal=self.equal + (difference == 0),
            largest=max(self.largest, difference),
            beyond=self.beyond + (not pair.accepts(difference)),
        )


def read(path: Path) -> dict[str, Row]:
    """Rows of a file by pair; none if there is no file."""
    if not path.is_file():
        return {}
    types = {"seed": int, "cases": int, "aside": int, "equal": int, "beyond": int}
    types |= {"largest": float, "cpu_s": float}
    rows = {}
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            values = {name: types.get(name, str)(value) for name, value in line.items()}
            rows[line["pair"]] = Row(**values)  # type: ignore[arg-type]
    return rows


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows in the order of the catalogue."""
    order = {pair.name: number for number, pair in enumerate(catalogue.PAIRS)}
    known = sorted((row for row in rows if row.pair in order), key=lambda row: order[row.pair])
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) for row in known)


def run(
    path: Path,
    pairs: Iterable[Pair],
    *,
    seed: int,
    cases: int | None,
    budget_s: float,
    say: Callable[[str], None],
) -> bool:
    """Run the cases that a file lacks; return whether every case keeps its statement.

    Parameters
    ----------
    path : Path
        File of rows. A row of another seed is replaced.
    pairs : iterable of Pair
        Pairs to run.
    seed : int
        Seed of the cases.
    cases : int or None
        Largest number of cases of a pair; None: as many as the pair says.
    budget_s : float
        CPU time of a pair in this call, after which the next pair follows (s).
    say : callable
        Called with each line for the user.
    """
    rows = read(path)
    for pair in pairs:
        if lacking := catalogue.missing(pair):
            say(f"{pair.name}: left out, {', '.join(lacking)} is not installed")
            continue
        row = rows.get(pair.name)
        if row is None or row.seed != seed:
            row = Row(pair.name, seed)
        spent_s = 0.0
        target = pair.long if cases is None else min(cases, pair.long)
        while row.cases < target and spent_s < budget_s:
            began_s = time.process_time()
            numbers = range(row.cases, min(row.cases + _BLOCK, target))
            with warnings.catch_warnings():
                # the notes on random inputs are none on the package
                warnings.simplefilter("ignore")
                for number, difference in zip(
                    numbers, _differences(pair, seed, numbers, say), strict=True
                ):
                    row = row.with_case(pair, difference)
                    if not pair.accepts(difference):
                        say(broken(pair, seed, number, difference))
                    if spent_s + time.process_time() - began_s >= budget_s:
                        break
            used_s = time.process_time() - began_s
            spent_s += used_s
            today = datetime.date.today().isoformat()
            row = replace(row, cpu_s=round(row.cpu_s + used_s, 1), date=today)
            rows[pair.name] = row
            write(path, rows.values())
        say(
            f"{pair.name}: {row.cases:,} cases, {row.aside} set aside, largest difference "
            f"{row.largest:g} {pair.unit} ({pair.statement})"
        )
    return not any(rows[pair.name].beyond for pair in pairs if pair.name in rows)


def _differences(
    pair: Pair, seed: int, numbers: range, say: Callable[[str], None]
) -> Iterator[Difference]:
    """Differences of cases; infinite for a case that ends with an error, which is said."""
    done = 0
    while done < len(numbers):
        try:
            for difference in pair.differences(seed, numbers[done:]):
                yield difference
                done += 1
        except Exception as error:
            say(f"{pair.name}, case {numbers[done]}: {type(error).__name__}: {error}")
            yield math.inf
            done += 1


def broken(pair: Pair, seed: int, number: int, difference: Difference) -> str:
    """Line on a case that breaks its statement, with the command that repeats it."""
    shown = "set aside without a reason" if difference is None else f"{difference:g} {pair.unit}"
    return (
        f"{pair.name}, case {number}: {shown}, accepted: {pair.statement}; repeat it with "
        f"python -m tools.two_ways case {pair.name!r} {number} --seed {seed}"
    )
