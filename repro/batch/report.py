"""The gallery beside the results: overview, pictures by published values, a page per paper."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2

from repro.base import paths
from repro.batch.card import Card, farthest, in_order, off, percent
from repro.batch.check import INDEX, Stored, headline, tally_line
from repro.figures.claims import OUTCOMES
from repro.figures.params import judged_rules
from repro.figures.points import shares
from repro.figures.saved import RESULT, paper_name
from repro.figures.tolerance import flat, show
from repro.files.whole import write_whole

#: What a figure without a verdict has instead.
_OTHERS = ("no claims", "failed", "damaged")


def templates() -> jinja2.Environment:
    """Return the environment of the pages, which holds what their templates call."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.PACKAGE / "batch" / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.globals.update(
        headline=headline,
        tally_line=tally_line,
        tallied=_tallied,
        shares=shares,
        paper_name=paper_name,
        show=show,
        off=off,
        percent=percent,
        judged_rules=judged_rules,
        flat=lambda value: list(flat(value)),
        lock=_lock,
        links=_links,
        choices=_choices,
        farthest=farthest,
    )
    return found


def write_report(
    out: Path, found: Sequence[Stored], changes: Mapping[str, Sequence[str]] | None = None
) -> Path:
    """Write ``index.html`` and one such page per paper; equal results give equal bytes.

    ``changes`` are lines, by figure, on how results differ from others. No page needs a network.
    """
    papers = {
        name: list(some)
        for name, some in groupby(in_order(found), lambda card: card.one.entry.paper)
    }
    pages = templates()
    shared = {"found": found, "out": out, "papers": papers}
    for name, cards in papers.items():
        page = pages.get_template("paper.html").render(**shared, paper=name, cards=cards)
        write_whole(out / name / INDEX, page.encode())
    page = pages.get_template("gallery.html").render(**shared, changes=changes or {})
    write_whole(out / INDEX, page.encode())
    return out / INDEX


def _tallied(cards: Sequence[Card]) -> list[tuple[str, int]]:
    """Return how many cards have each verdict, from best to worst."""
    tally = Counter(card.verdict for card in cards)
    return [(word, tally[word]) for word in (*OUTCOMES, *_OTHERS) if tally[word]]


def _choices(papers: Mapping[str, Sequence[Card]]) -> dict[str, list[tuple[str, int]]]:
    """Return what can be chosen in each filter, and how many cards that shows."""
    cards = [card for some in papers.values() for card in some]
    found = {
        "kind": Counter(kind for card in cards for kind in card.kinds),
        "data": Counter(source for card in cards for source in card.data or ["none"]),
        "profile": Counter(card.one.result.get("profile", "none") for card in cards),
    }
    sorted_ = {name: sorted(tally.items()) for name, tally in found.items()}
    return {"verdict": _tallied(cards), **sorted_}


def _lock(lock: dict[str, Any] | None) -> str:
    """Return which lock file a result names, and the libraries that differed from it."""
    if not lock:
        return "none"
    differs = [
        f"{name} {here or 'not installed'} for {locked}"
        for name, (locked, here) in lock["differs"].items()
    ]
    return f"{lock['file']}, sha256 {lock['sha256'][:16]}…; " + (
        f"other versions: {', '.join(differs)}" if differs else "all versions as there"
    )


def _links(one: Stored, out: Path) -> list[tuple[str, str]]:
    """Return name and address of the files behind a figure."""
    entry = one.entry
    files = list[tuple[str, Path]]()
    if one.result:
        names = [f"{entry.stem}.{suffix}" for suffix in ("svg", "png", "csv")]
        names = list(dict.fromkeys([*names, *(one.result.get("files") or {}), RESULT]))
        files += [(name.removeprefix(f"{entry.stem}."), one.folder / name) for name in names]
    # The committed gallery must read the same in a clone that has run nothing.
    if out.resolve() != paths.figures_dir():
        ran = {"notebook with its output": entry.executed.with_suffix(".html")}
        ran |= {"executed notebook": entry.executed}
        files += [(name, path) for name, path in ran.items() if path.is_file()]
    files += [("notebook", entry.notebook), ("parameters and claims", entry.params)]
    return [(name, Path(os.path.relpath(path, out)).as_posix()) for name, path in files]
