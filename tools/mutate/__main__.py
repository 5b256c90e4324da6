"""Command line of the mutation tests: `python -m tools.mutate --help`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tools.mutate import report, run, scope, trial
from tools.mutate.run import Options

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
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    commands = parser.add_subparsers(required=True)

    runs = commands.add_parser("run", help="run mutants that have no result yet")
    _add_choice(runs)
    runs.add_argument("-j", "--processes", type=_positive, default=2)
    runs.add_argument("--tests", nargs="+", default=scope.TESTS, help="patterns of test files")
    runs.add_argument("--budget", type=float, default=20.0, help="CPU time of a mutant's tests (s)")
    runs.add_argument("--test-limit", type=float, default=10.0, help="slower tests do not run (s)")
    runs.add_argument("--results", type=Path, help="file with a line per mutant")
    runs.set_defaults(command=_run)

    counts = commands.add_parser("list", help="count the mutants of each file")
    _add_choice(counts)
    counts.set_defaults(command=_list)

    page = commands.add_parser("report", help="write docs/quality.md from the results")
    page.add_argument("results", type=Path, nargs="*", help="files of results, also of shards")
    page.set_defaults(command=_report)

    one = commands.add_parser("try", help="run tests on one mutant, with compiled loops")
    one.add_argument("id", help="id of the mutant, as results name it")
    one.add_argument(
        "pytest", nargs=argparse.REMAINDER, help="words for pytest; none: only the difference"
    )
    one.set_defaults(command=lambda arguments: trial.run(ROOT, arguments.id, arguments.pytest))
    return parser


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", default=(), help="patterns of files with mutants")
    parser.add_argument("--sample", type=_positive, help="number of mutants; without it, all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", type=_shard, default=(1, 1), metavar="N/COUNT")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def _shard(text: str) -> tuple[int, int]:
    try:
        number, count = map(int, text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: write it like 3/8") from None
    if not 1 <= number <= count:
        raise argparse.ArgumentTypeError(f"{text}: the first number is 1 to the second")
    return number, count


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        ROOT,
        only=tuple(arguments.only),
        sample=arguments.sample,
        seed=arguments.seed,
        shard=arguments.shard,
    )


def _run(arguments: argparse.Namespace) -> int:
    choice = _options(arguments)
    options = Options(
        ROOT,
        only=choice.only,
        tests=tuple(arguments.tests),
        sample=choice.sample,
        seed=choice.seed,
        shard=choice.shard,
        processes=arguments.processes,
        budget_s=arguments.budget,
        test_s=arguments.test_limit,
        results=arguments.results,
    )
    run.run(options, lambda line: print(line, flush=True))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    counts = Counter(mutant.path for mutant, _ in run.sample(_options(arguments)))
    for path, count in sorted(counts.items()):
        print(f"{count:6} {path}")
    print(f"{counts.total():6} in all")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    report.write(ROOT, arguments.results or [Options(ROOT).results_file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
