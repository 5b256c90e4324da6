"""The gallery page beside the results: pictures, verdicts, provenance, tracebacks."""

import html
import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from repro import paths
from repro.batch.check import INDEX, Stored, counts, headline_lines, tally_line
from repro.figures.saved import paper_name
from repro.figures.tolerance import show
from repro.files.whole import write_whole

_VOID = frozenset({"img"})


def write_report(out: Path, found: Sequence[Stored]) -> Path:
    """Write ``index.html``, which needs no network; equal results give equal bytes."""
    papers = [(paper, list(group)) for paper, group in groupby(found, lambda one: one.entry.paper)]
    body: list[str] = [
        element("h1", "Figures and tables, regenerated"),
        element("ul", *(element("li", line) for line in headline_lines(found))),
        element("p", tally_line(found), cls="tally"),
        element("nav", *(element("a", paper_name(name), href=f"#{name}") for name, _ in papers)),
    ]
    for paper, group in papers:
        body.append(element("h2", paper_name(paper), id=paper))
        body.append(element("p", tally_line(group), cls="tally"))
        body.extend(_card(one, out) for one in group)
    path = out / INDEX
    page = (paths.PACKAGE / "batch" / "gallery.html").read_text("utf-8")
    write_whole(path, page.replace("<!-- figures -->", "\n".join(body)).encode())
    return path


def _card(one: Stored, out: Path) -> str:
    result, stem = one.result, one.entry.stem
    base = one.folder.relative_to(out).as_posix()
    title = result.get("title") or one.entry.id
    parts: list[str] = [element("h3", title), element("p", _subtitle(one), cls="sub")]
    if result.get("stand_in"):
        parts.append(element("p", result["stand_in"], cls="stand-in"))
    parts += [element("p", note, cls="stand-in") for note in result.get("notes", [])]
    if one.error:
        note = " The picture below is from an earlier run." if result else ""
        parts.append(element("p", f"Failed: {one.error['error']}.{note}", cls="failed"))
        trace = element("pre", one.error.get("traceback", ""))
        parts.append(element("details", element("summary", "traceback"), trace, open="open"))
    parts += [element("p", f"Damaged: {line}.", cls="failed") for line in one.damage]
    if result:
        picture = element("img", src=f"{base}/{stem}.png", alt=title, loading="lazy")
        parts.append(element("a", picture, href=f"{base}/{stem}.svg"))
        if one.claims:
            parts.append(_verdicts(one.claims))
        parts.append(element("details", element("summary", "provenance"), _provenance(result)))
    parts.append(element("p", *_links(one, out, base), cls="links"))
    return element("section", *parts, id=one.entry.id.replace("/", "-"))


def _subtitle(one: Stored) -> str:
    result = one.result
    if not result:
        return one.entry.id
    tally = ", ".join(f"{n} {outcome}" for outcome, n in counts(one.claims).items())
    parts = [result["reference"], result["shows"], f"profile {result['profile']}"]
    return " · ".join([*parts, f"seed {result['seed']}", tally or "no claims"])


def _verdicts(claims: Sequence[dict[str, Any]]) -> str:
    head = ("verdict", "kind", "claim", "published", "ours", "tolerance", "source")
    rows: list[str] = [element("tr", *(element("th", name) for name in head))]
    for row in claims:
        what: list[str] = [element("span", row["what"])]
        if row.get("stand_in"):
            what.append(element("span", " (stand-in)", cls="stand-in"))
        if row.get("deviation"):
            what.append(element("p", f"Deviation: {row['deviation']}", cls="deviation"))
        verdict = element("td", row["verdict"], cls=row["verdict"].replace(" ", "-"))
        values = [show(row["published"]), show(row["ours"]), row["tolerance"]]
        values.append(f"{row['source']} ({row['certainty']})")
        cells = [element("td", row["kind"]), element("td", *what)]
        cells += [element("td", value) for value in values]
        rows.append(element("tr", verdict, *cells))
    return element("div", element("table", *rows), cls="wide")


def _provenance(result: dict[str, Any] | Any) -> str:
    used = [
        f"{item['name']}: {item['kind']}"
        + (f", seed {item['seed']}" if item.get("seed") is not None else "")
        + (f", sha256 {item['sha256'][:16]}…" if item.get("sha256") else "")
        for item in result.get("data", [])
    ]
    facts = {
        "data": used or ["none"],
        "inputs": [f"{name} = {value}" for name, value in result.get("params", {}).items()],
        "versions": [f"{name} {text}" for name, text in result.get("versions", {}).items()],
    }
    if "lock" in result:
        facts["lock"] = [_lock(result["lock"])]
    lists: list[str] = []
    for name, items in facts.items():
        lists += [element("dt", name), *(element("dd", str(item)) for item in items)]
    return element("dl", *lists)


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


def _links(one: Stored, out: Path, base: str) -> list[str]:
    links: list[str] = []
    if one.result:
        names = [f"{one.entry.stem}.{suffix}" for suffix in ("svg", "png", "csv")]
        names += [name for name in one.result.get("files") or {} if name not in names]
        links += [element("a", name, href=f"{base}/{name}") for name in [*names, "result.json"]]
    copy = one.entry.executed
    # The committed gallery must read the same in a clone that has run nothing.
    committed = out.resolve() == paths.figures_dir()
    if copy.is_file() and not committed:
        links.append(element("a", "executed notebook", href=_relative(copy, out)))
    made_by = {"notebook": one.entry.notebook, "parameters and claims": one.entry.params}
    return links + [element("a", name, href=_relative(it, out)) for name, it in made_by.items()]


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path, start)).as_posix()


class Markup(str):
    """Text that is HTML already; everything else is escaped."""

    __slots__ = ()


def element(tag: str, *children: str, cls: str = "", **attributes: str) -> Markup:
    """Return an HTML element; plain text and attribute values are escaped."""
    given = {"class": cls, **attributes} if cls else attributes
    head = "".join(f' {name}="{html.escape(str(value))}"' for name, value in given.items())
    if tag in _VOID:
        return Markup(f"<{tag}{head}>")
    inner = "".join(
        child if isinstance(child, Markup) else html.escape(str(child), quote=False)
        for child in children
    )
    return Markup(f"<{tag}{head}>{inner}</{tag}>")
