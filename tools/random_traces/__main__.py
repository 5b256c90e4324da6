"""Command line of the random traces: `python -m tools.random_traces --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.random_traces import report, run
from tools.random_traces.check import MAX_ATTEMPTS, check, fault_of, relation_of
from tools.random_traces.run import Options

ROOT = Path(__file__).resolve().parents[2]


def main(words: list[str] | None = None) -> int:
    """Run a command."""
    arguments = _parser().parse_args(words)
    try:
        return int(arguments.command(arguments))
    except KeyboardInterrupt:
        print("ended; the same command goes on from here", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.random_traces", description=__doc__)
    commands = parser.add_subparsers(required=True)

    runs = commands.add_parser("run", help="check traces that have no result yet")
    runs.add_argument(
        "--traces", type=_positive, default=10_000, help="of each policy and rule set"
    )
    runs.add_argument("--seed", type=int, default=42)
    runs.add_argument("-j", "--processes", type=_positive, default=1)
    runs.add_argument("--only", nargs="+", default=(), help="patterns of policies")
    runs.add_argument("--rules", nargs="+", default=(), help="rule sets")
    runs.add_argument(
        "--more", action="store_true", help=f"leave out the traces that {run.COMMITTED} counts"
    )
    runs.add_argument("--results", type=Path, help="file with a line per block of traces")
    runs.set_defaults(command=_run)

    one = commands.add_parser("show", help="print a trace, its settings and its violation")
    one.add_argument("policy")
    one.add_argument("rules")
    one.add_argument("index", type=int)
    one.add_argument("--seed", type=int, default=42)
    one.add_argument("--rows", type=_numbers, help="rows of the trace; without it, all")
    one.set_defaults(command=_show)

    page = commands.add_parser(
        "report", help="add results to the committed ones; write docs/quality.md"
    )
    page.add_argument("results", type=Path, nargs="*", help="files of results")
    page.set_defaults(command=_report)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _run(arguments: argparse.Namespace) -> int:
    options = Options(
        ROOT,
        traces=arguments.traces,
        seed=arguments.seed,
        processes=arguments.processes,
        only=tuple(arguments.only),
        rules=tuple(arguments.rules),
        more=arguments.more,
        results=arguments.results,
    )
    violations = run.run(options, lambda line: print(line, flush=True))
    return 1 if violations else 0


def _show(arguments: argparse.Namespace) -> int:
    verdict = check(arguments.policy, arguments.rules, arguments.seed, arguments.index)
    case = verdict.case
    relation = relation_of(case)
    fault = verdict.fault
    if arguments.rows is not None and verdict.refused < MAX_ATTEMPTS:
        case = case.of_rows(arguments.rows)
        fault = fault_of(case, relation)
    print(case.trace.to_string())
    print(f"cluster {case.cluster}, settings {case.settings}, options {case.options}")
    print(f"relation: {relation.name if relation else 'none'}")
    print(f"violation: {fault or 'none'}")
    return 1 if fault else 0


def _report(arguments: argparse.Namespace) -> int:
    report.write(ROOT, arguments.results or [Options(ROOT).results_file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
