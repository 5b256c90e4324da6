"""Pages of the site: the text that Sphinx reads, the table of contents, links and anchors.

Nothing here needs Sphinx: `conf.py` builds the site with it, and the tests check links with it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import executed
import reference

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
#: Page that lists all pages in groups.
INDEX = "index"
#: Scheme of a link to a file that is copied into the site. The rest is relative to the page.
COPIED = "copied:"

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)? *$")
_TARGET = re.compile(r"(?<=\]\()[^()\s]+(?=\))")
_GENERATED = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
_INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)
_ENTRY = re.compile(r"^- \[([^]]*)\]\(([\w./-]+\.(?:md|ipynb))\)", re.MULTILINE)
_PICTURES = {".svg", ".png"}


def names() -> list[str]:
    """Names of all committed pages: paths below docs/ without ending."""
    paths = [*DOCS.glob("*.md"), *DOCS.glob("formats/*.md")]
    return sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in paths)


def notebooks() -> list[str]:
    """Figures whose notebook is a page: docs/index.md links to the notebook."""
    listed = _ENTRY.findall(path_of(INDEX).read_text())
    paths = [(DOCS / target).resolve() for _, target in listed if target.endswith(".ipynb")]
    return [path.relative_to(ROOT / "notebooks").with_suffix("").as_posix() for path in paths]


def path_of(page: str) -> Path:
    """File of a page."""
    return DOCS / f"{page}.md"


@functools.cache
def included() -> dict[Path, str]:
    """Files outside docs/ that are the content of a page, with that page."""
    found = {
        (path_of(page).parent / name).resolve(): page
        for page in names()
        for name in _INCLUDE.findall(path_of(page).read_text())
    }
    # the first page says what README says
    return {**found, ROOT / "README.md": INDEX}


def page_of(path: Path) -> str | None:
    """Page that shows a file of the checkout; for a folder, the page of its README."""
    if (path / "README.md").exists():
        path = path / "README.md"
    if path.suffix == ".md" and path.is_relative_to(DOCS):
        return path.relative_to(DOCS).with_suffix("").as_posix()
    page = path.relative_to(ROOT).with_suffix("").as_posix()
    if page.removeprefix("notebooks/") in notebooks():
        return page
    return included().get(path)


@functools.cache
def text_of(page: str) -> str:
    """Text of a page with included files and generated parts, links relative to the page."""

    def include(found: re.Match[str]) -> str:
        path = (path_of(page).parent / found[1]).resolve()
        return move_targets(path.read_text(), path.parent, page)

    text = _INCLUDE.sub(include, path_of(page).read_text())
    return _GENERATED.sub(lambda found: reference.generate(found[1]), text)


def source(page: str) -> str:
    """Text of a page as Sphinx reads it."""
    return for_site(text_of(page), page) + _toctrees(page)


def notebook_source(figure: str) -> dict[str, Any]:
    """Notebook of a figure as Sphinx reads it."""
    document = executed.notebook(figure)
    folder = (ROOT / "notebooks" / figure).parent
    page = f"notebooks/{figure}"
    for cell in document["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = for_site(move_targets(text, folder, page), page)
    return document


def move_targets(text: str, folder: Path, page: str) -> str:
    """Text from a file in a folder for a page: links relative to the page."""

    def moved(target: str) -> str:
        if is_outside(target) or target.startswith("#"):
            return target
        return _relative(folder / target, page)

    return map_targets(text, moved)


def for_site(text: str, page: str) -> str:
    """Text of a page with links that lead to pages of the site or to copied files."""

    def site_target(target: str) -> str:
        path, anchor = resolve(page, target)
        if path is None or path.suffix in _PICTURES:
            return target
        other = page_of(path)
        if other is not None:
            ending = ".ipynb" if path.suffix == ".ipynb" else ".md"
            return f"{_relative(DOCS / f'{other}{ending}', page)}{anchor}"
        if path.is_dir():
            path = path / "index.html"
        # The root of the site has the pages of docs/, and copied files as the checkout has them.
        return f"{COPIED}{_relative(DOCS / path.relative_to(ROOT), page)}{anchor}"

    return map_targets(text, site_target)


def links(page: str) -> list[tuple[Path | None, str]]:
    """Files and anchors that a page links to, in order."""
    return [resolve(page, target) for target in targets(text_of(page))]


def copied() -> set[Path]:
    """Files and folders that pages link to and that are no pages."""
    linked = {path for page in names() for path, _ in links(page) if path is not None}
    return {path for path in linked if page_of(path) is None and path.suffix not in _PICTURES}


def _relative(path: Path, page: str) -> str:
    """Path relative to the folder of a page."""
    return Path(os.path.relpath(path, path_of(page).parent)).as_posix()


def is_outside(target: str) -> bool:
    """Whether a link leaves the checkout."""
    return re.match(r"[a-z][a-z+.-]*:", target) is not None


def resolve(page: str, target: str) -> tuple[Path | None, str]:
    """File and anchor (with #) of a link on a page; no file for a link out of the checkout."""
    if is_outside(target):
        return None, ""
    name, mark, anchor = target.partition("#")
    path = (path_of(page).parent / name).resolve() if name else path_of(page)
    return path, mark + anchor


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line outside of code blocks; inline code is blanked."""
    fence = ""
    for number, line in enumerate(text.split("\n")):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield number, _CODE.sub(lambda code: " " * len(code[0]), line)


def targets(text: str) -> list[str]:
    """Targets of all links and pictures of a text."""
    return [target for _, line in prose(text) for target in _TARGET.findall(line)]


def map_targets(text: str, function: Callable[[str], str]) -> str:
    """Text with new targets of links and pictures."""
    lines = text.split("\n")
    for number, line in prose(text):
        for found in reversed(list(_TARGET.finditer(line))):
            before, after = lines[number][: found.start()], lines[number][found.end() :]
            lines[number] = f"{before}{function(found[0])}{after}"
    return "\n".join(lines)


def headings(text: str) -> list[str]:
    """Headings of a text, as written."""
    lines = text.split("\n")
    found = (_HEADING.match(lines[number]) for number, _ in prose(text))
    return [heading[1] for heading in found if heading]


def slug(heading: str) -> str:
    """Anchor of a heading, as GitHub forms it.

    >>> slug("Gavel: `--rules gavel`")
    'gavel---rules-gavel'
    """
    shown = re.sub(r"\]\([^)]*\)|[`*\[]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a text; a repeated heading gets a number."""
    found: set[str] = set()
    for heading in headings(text):
        base = anchor = slug(heading)
        count = 0
        while anchor in found:
            count += 1
            anchor = f"{base}-{count}"
        found.add(anchor)
    return found


def contents() -> dict[str, dict[str, str]]:
    """Pages by group with their short titles: the lists of docs/index.md."""
    groups: dict[str, dict[str, str]] = {}
    for line in path_of(INDEX).read_text().split("\n"):
        entry = _ENTRY.match(line)
        if line.startswith("## "):
            group = groups.setdefault(line.removeprefix("## "), {})
        elif entry:
            page = page_of((DOCS / entry[2]).resolve())
            group[page or entry[2]] = entry[1]
    return groups


def below(page: str) -> dict[str, str]:
    """Pages below a page in the table of contents, with their titles.

    A README has the pages of its folder that it links to. Another page has the pages that it lists
    and whose names begin with its own name and a hyphen.
    """
    if page.endswith("/README"):
        linked = [page_of(path) for path, _ in links(page) if path is not None]
        folder = page.removesuffix("README")
        return {
            name: name.removeprefix(folder) for name in linked if name and name.startswith(folder)
        }
    listed = {
        target.removesuffix(".md"): title
        for title, target in _ENTRY.findall(path_of(page).read_text())
    }
    in_index = {name for titles in contents().values() for name in titles}
    return {
        name: title
        for name, title in listed.items()
        if name.startswith(f"{page}-") and name not in in_index
    }


def _toctrees(page: str) -> str:
    """Directives of the table of contents that a page adds, all hidden."""
    groups = contents() if page == INDEX else {"": below(page)}
    return "".join(
        "\n```{toctree}\n:hidden:\n"
        + (f":caption: {group}\n" if group else "")
        + "".join(f"\n{title} </{name}>" for name, title in titles.items())
        + "\n```\n"
        for group, titles in groups.items()
        if titles
    )


class _Links(HTMLParser):
    """Links and anchors of a page of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to and the anchor it is."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.add(value)
            elif name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")


def broken_links(site: Path) -> list[str]:
    """Links of a built site to files or anchors that do not exist."""
    parsed: dict[Path, _Links] = {}
    for path in site.rglob("*.html"):
        parsed[path] = _Links()
        parsed[path].feed(path.read_text())
    broken = []
    for path, links in parsed.items():
        for target in sorted(links.targets):
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            other = (path.parent / unquote(url.path)).resolve() if url.path else path
            anchors = parsed[other].anchors if other in parsed else None
            # the gallery keeps its filters in the fragment, as #?paper=pcs
            fragment = "" if url.fragment.startswith("?") else unquote(url.fragment)
            if not other.exists() or (anchors and fragment not in anchors):
                broken.append(f"{path.relative_to(site)}: {target}")
    return broken
