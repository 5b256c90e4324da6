"""Command line of the comparison of two ways: `python -m tools.two_ways --help`."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from docs import marks
from tools.two_ways import catalogue, measure, report

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "two_ways.csv"
PAGE = ROOT / "docs" / "quality.md"


def main(words: list[str] | None = None) -> int:
    """Run a command."""
    arguments = _parser().parse_args(words)
    try:
        return int(arguments.command(arguments))
    except KeyboardInterrupt:
        print("ended; the same command goes on from here", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.two_ways", description=__doc__)
    commands = parser.add_subparsers(required=True)

    runs = commands.add_parser("run", help="run cases that have no result yet")
    runs.add_argument("--cases", type=_positive, help="largest number of cases of a pair")
    runs.add_argument("--seed", type=int, default=42)
    runs.add_argument("--only", nargs="+", choices=catalogue.BY_NAME, metavar="PAIR")
    runs.add_argument("--budget", type=float, default=math.inf, help="CPU time of a pair (s)")
    runs.add_argument("--results", type=Path, default=RESULTS, help="file with a row per pair")
    runs.set_defaults(command=_run)

    page = commands.add_parser("report", help="write docs/quality.md from the results")
    page.set_defaults(command=_report)

    names = commands.add_parser("list", help="list the pairs")
    names.set_defaults(command=_list)

    one = commands.add_parser("case", help="run one case")
    one.add_argument("pair", choices=catalogue.BY_NAME, metavar="PAIR")
    one.add_argument("number", type=int)
    one.add_argument("--seed", type=int, default=42)
    one.set_defaults(command=_case)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def _run(arguments: argparse.Namespace) -> int:
    names = arguments.only or list(catalogue.BY_NAME)
    is_kept = measure.run(
        arguments.results,
        [catalogue.BY_NAME[name] for name in names],
        seed=arguments.seed,
        cases=arguments.cases,
        budget_s=arguments.budget,
        say=lambda line: print(line, flush=True),
    )
    return 0 if is_kept else 1


def _report(arguments: argparse.Namespace) -> int:
    marks.write(PAGE, report.MARK, report.section(measure.read(RESULTS)))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    for pair in catalogue.PAIRS:
        print(f"{pair.name}: {pair.first} | {pair.second} | {pair.statement}")
    return 0


def _case(arguments: argparse.Namespace) -> int:
    pair = catalogue.BY_NAME[arguments.pair]
    (difference,) = pair.differences(arguments.seed, [arguments.number])
    if not pair.accepts(difference):
        print(measure.broken(pair, arguments.seed, arguments.number, difference))
        return 1
    shown = f"set aside, {pair.aside}" if difference is None else f"{difference:g} {pair.unit}"
    print(f"{pair.name}, case {arguments.number}: {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
