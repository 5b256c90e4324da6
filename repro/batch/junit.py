"""Verdicts as JUnit XML, which most CI systems show: a suite per paper, a case per claim."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from repro.batch.check import StoredFigure
from repro.batch.compare_results import Change
from repro.figures.claims import MISSED, NOT_COMPARABLE
from repro.figures.saved import paper_name, shown_values, verdict_word
from repro.files.whole import write_whole

#: Characters that XML 1.0 does not allow.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def write_junit(
    path: Path, figures: Sequence[StoredFigure], changes: Sequence[Change] = ()
) -> None:
    """Write the verdicts of results as JUnit XML.

    Each figure has a case ``run``, a case for each claim, and a case ``against`` if it was compared
    with other results. A claim that is not comparable, or missed with a recorded deviation, is
    skipped with the reason. If a case fails or has an error, ``repro check`` exits 1. It also exits
    1, without a case, if a parameter file cannot be read or no figure could be compared.
    """
    change_of = {change.id: change for change in changes if change.is_compared}
    root = ElementTree.Element("testsuites", name="repro check")
    for paper in dict.fromkeys(figure.entry.paper for figure in figures):
        of_paper = [figure for figure in figures if figure.entry.paper == paper]
        suite = ElementTree.SubElement(root, "testsuite", name=paper_name(paper))
        for figure in of_paper:
            _add_figure(suite, figure, change_of.get(figure.entry.id))
        _count(suite, suite.findall("testcase"))
        suite.set("time", f"{sum(_wall_s(figure) for figure in of_paper):.3f}")
    _count(root, root.findall("testsuite/testcase"))
    root.set("time", f"{sum(map(_wall_s, figures)):.3f}")
    ElementTree.indent(root)
    content = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content + b"\n")


def _add_figure(suite: ElementTree.Element, figure: StoredFigure, change: Change | None) -> None:
    """Add the cases of a figure."""
    run = _case(suite, figure, "run", _wall_s(figure))
    if figure.error:
        _add(run, "error", str(figure.error["error"]), str(figure.error.get("traceback", "")))
    elif figure.damage:
        _add(run, "failure", "damaged", "\n".join(figure.damage))
    for row in figure.claims:
        _add_claim(_case(suite, figure, row["id"]), row)
    if change is not None:
        case = _case(suite, figure, "against")
        if change.worse:
            _add(case, "failure", f"{len(change.worse)} worse", "\n".join(change.worse))
        if change.lines():
            ElementTree.SubElement(case, "system-out").text = _clean("\n".join(change.lines()))


def _add_claim(case: ElementTree.Element, row: Mapping[str, Any]) -> None:
    """Add outcome and values of a claim to its case."""
    published, ours, point = shown_values(row)
    where = f" ({point})" if point else ""
    text = f"{row['what']}: ours {ours}, published {published}{where}, tolerance {row['tolerance']}"
    if row["verdict"] == MISSED and not row.get("deviation"):
        _add(case, "failure", text, f"{text}\nsource: {row['source']} ({row['certainty']})")
    elif row["verdict"] == MISSED:
        _add(case, "skipped", f"missed; deviation: {row['deviation']}")
    elif row["verdict"] == NOT_COMPARABLE:
        _add(case, "skipped", verdict_word(row))
    ElementTree.SubElement(case, "system-out").text = _clean(f"{verdict_word(row)}: {text}")


def _case(
    suite: ElementTree.Element, figure: StoredFigure, name: str, time_s: float = 0.0
) -> ElementTree.Element:
    """Add a case of a figure."""
    names = {"classname": figure.entry.id.replace("/", "."), "name": _clean(name)}
    names |= {"file": f"params/{figure.entry.id}.yaml", "time": f"{time_s:.3f}"}
    return ElementTree.SubElement(suite, "testcase", names)


def _add(case: ElementTree.Element, kind: str, message: str, text: str = "") -> None:
    """Add ``failure``, ``error`` or ``skipped`` to a case."""
    element = ElementTree.SubElement(case, kind, message=_clean(message))
    if kind != "skipped":
        element.set("type", "verdict" if kind == "failure" else "run")
        element.text = _clean(text or message)


def _count(element: ElementTree.Element, cases: Sequence[ElementTree.Element]) -> None:
    """Write the numbers of cases, failures, errors and skipped cases."""
    element.set("tests", str(len(cases)))
    for name, kind in _COUNTED.items():
        element.set(name, str(sum(case.find(kind) is not None for case in cases)))


def _wall_s(figure: StoredFigure) -> float:
    """Wall time (s) of the run of a figure; 0 without a result."""
    return float(figure.result.get("wall_s") or 0.0)


def _clean(text: str) -> str:
    """Text without characters that XML does not allow."""
    return _FORBIDDEN.sub("?", text)
