"""The gallery of results: an overview, a card per figure, a page per paper."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.base import paths
from repro.base.extras import needed_for
from repro.batch.card import Card, distance_text, farthest, in_order, lead, percent
from repro.batch.check import (
    INDEX,
    ORIGIN_WORDS,
    UNKNOWN_WORDS,
    StoredFigure,
    headline,
    missing_data_line,
    tally_line,
)
from repro.batch.papers import papers as works
from repro.figures.claims import OUTCOMES, OWN_CHECKS
from repro.figures.params import judged_rules
from repro.figures.points import within_distances
from repro.figures.saved import RESULT, SUFFIXES, paper_name, shown_values, verdict_word
from repro.figures.tolerance import flat, show
from repro.files.whole import write_whole

if TYPE_CHECKING:
    import jinja2

#: Labels of figures without a verdict on a claim of the paper. Tallies list them last.
_OTHERS = (OWN_CHECKS, "no claims", "failed", "damaged")


def templates() -> jinja2.Environment:
    """Jinja environment of the pages, with the functions that templates call."""
    with needed_for("the gallery"):
        import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.PACKAGE / "batch" / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        headline=headline,
        tally_line=tally_line,
        missing_data_line=missing_data_line,
        origin_words=ORIGIN_WORDS,
        unknown_words=UNKNOWN_WORDS,
        shown_values=shown_values,
        verdict_word=verdict_word,
        tallied=_tallied,
        within_distances=within_distances,
        paper_name=paper_name,
        show=show,
        distance_text=distance_text,
        percent=percent,
        judged_rules=judged_rules,
        flat=lambda value: list(flat(value)),
        lock=_lock,
        links=_links,
        choices=_choices,
        farthest=farthest,
        lead=lead,
        works={work.paper: work for work in works()},
    )
    return environment


def write_report(
    out: Path, figures: Sequence[StoredFigure], changes: Mapping[str, Sequence[str]] | None = None
) -> Path:
    """Write ``index.html`` and a page per paper; equal results give equal bytes.

    ``changes`` are lines on differences from other results, by figure. No page needs a network;
    links to the papers do.
    """
    papers = {
        name: list(cards)
        for name, cards in groupby(in_order(figures), lambda card: card.stored.entry.paper)
    }
    pages = templates()
    shared = {"figures": figures, "out": out, "papers": papers}
    for name, cards in papers.items():
        page = pages.get_template("paper.html").render(**shared, paper=name, cards=cards)
        write_whole(out / name / INDEX, page.encode())
    page = pages.get_template("gallery.html").render(
        **shared, changes=changes or {}, most_versions=_most_versions(figures)
    )
    write_whole(out / INDEX, page.encode())
    return out / INDEX


def _most_versions(figures: Sequence[StoredFigure]) -> dict[str, str]:
    """Versions of libraries that most results were made with; none if each result has its own."""
    seen = Counter(tuple(figure.result.get("versions", {}).items()) for figure in figures)
    ((versions, count),) = seen.most_common(1) or [((), 0)]
    return dict(versions) if count > 1 else {}


def _tallied(cards: Sequence[Card]) -> list[tuple[str, int]]:
    """Numbers of cards by verdict, from best to worst, then by label."""
    tally = Counter(card.verdict for card in cards)
    return [(word, tally[word]) for word in (*OUTCOMES, *_OTHERS) if tally[word]]


def _choices(papers: Mapping[str, Sequence[Card]]) -> dict[str, list[tuple[str, int]]]:
    """Choices of each filter, with the number of cards that each shows."""
    cards = [card for group in papers.values() for card in group]
    tallies = {
        "kind": Counter(kind for card in cards for kind in card.kinds),
        "data": Counter(source for card in cards for source in card.data or ["none"]),
        "profile": Counter(card.stored.result.get("profile", "none") for card in cards),
    }
    choices = {name: sorted(tally.items()) for name, tally in tallies.items()}
    return {"verdict": _tallied(cards), **choices}


def _lock(lock: dict[str, Any] | None) -> str:
    """Lock file of a result, and the libraries whose versions differed from it."""
    if not lock:
        return "none"
    differs = [
        f"{name} {installed or 'not installed'} instead of {locked}"
        for name, (locked, installed) in lock["differs"].items()
    ]
    return f"{lock['file']}, sha256 {lock['sha256'][:16]}…; " + (
        f"other versions: {', '.join(differs)}" if differs else "all versions as locked"
    )


def _links(figure: StoredFigure, out: Path) -> list[tuple[str, str]]:
    """Names and addresses of a figure's files."""
    entry = figure.entry
    files = list[tuple[str, Path]]()
    if figure.result:
        names = [f"{entry.stem}.{suffix}" for suffix in SUFFIXES]
        names = list(dict.fromkeys([*names, *(figure.result.get("files") or {}), RESULT]))
        files += [(name.removeprefix(f"{entry.stem}."), figure.folder / name) for name in names]
    # The committed gallery must be the same in a clone that has run no notebook.
    if out.resolve() != paths.figures_dir():
        by_run = {
            "png": figure.folder / f"{entry.stem}.png",
            "notebook with its output": entry.executed_notebook.with_suffix(".html"),
            "executed notebook": entry.executed_notebook,
        }
        files += [(name, path) for name, path in by_run.items() if path.is_file()]
    files += [("notebook", entry.notebook), ("parameters and claims", entry.params_file)]
    return [(name, Path(os.path.relpath(path, out)).as_posix()) for name, path in files]
