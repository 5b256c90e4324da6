"""Numbers of hostile inputs by door, and their table in docs/quality.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import test_hostile_arguments
import test_hostile_clusters
import test_hostile_frames
import test_hostile_gallery
import test_hostile_parameters
import test_hostile_results
import test_hostile_submissions
import test_hostile_traces

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quality.md"
LEAST = 1200
_TABLE = re.compile("(?<=<!-- hostile: begin -->\n).*?(?=<!-- hostile: end -->)", re.S)


def counts():
    """Cases by door: (refused, accepted as the plain input)."""
    doors = {
        "traces, every format": test_hostile_traces.CASES,
        "frames passed to `repro.simulate`": test_hostile_frames.CASES,
        "clusters: specs, YAML, node lists": test_hostile_clusters.CASES,
        "parameter files, parameters of notebooks": test_hostile_parameters.CASES,
        "arguments of every command": test_hostile_arguments.CASES,
        "result files, references, cache": test_hostile_results.CASES,
        "texts on the terminal and in the gallery": test_hostile_gallery.CASES,
        "submissions of the course": test_hostile_submissions.CASES,
    }
    numbers = {}
    for door, cases in doors.items():
        accepted = sum(case.code == 0 for case in cases)
        numbers[door] = [len(cases) - accepted, accepted]
    # a damaged entry of the cache is computed again, a text in the gallery is shown as a text
    numbers["result files, references, cache"][1] += len(test_hostile_results.ENTRIES)
    numbers["texts on the terminal and in the gallery"][1] += len(test_hostile_gallery.TABLE)
    return numbers


def table():
    """Table of the page: a row for each door."""
    rows = [*counts().items()]
    total = [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]
    lines = ["| door | refused | handled with the right result |", "|---|---:|---:|"]
    for door, (refused, handled) in [*rows, ("**all**", total)]:
        lines.append(f"| {door} | {refused:,} | {handled:,} |")
    return "\n".join([*lines, ""])


def test_there_are_enough_cases():
    print(table())
    assert sum(map(sum, counts().values())) >= LEAST
    assert all(sum(numbers) for numbers in counts().values())


@pytest.mark.skipif(not PAGE.is_file(), reason="not run from a checkout")
def test_the_page_has_the_numbers():
    assert _TABLE.search(PAGE.read_text("utf-8"))[0] == table()


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: table(), text), "utf-8")
    print(table())
