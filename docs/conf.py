"""Sphinx builds the site with this file: `make docs`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import pages

import repro

project = "repro"
author = "The repro authors"
copyright = "2026 The repro authors"
version = release = repro.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["inventory"]
html_theme = "furo"
html_title = f"repro {release}"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
# dashes alone, for `--` between a parameter and its meaning
smartquotes_action = "D"
toc_object_entries_show_parents = "hide"

myst_heading_anchors = 6
myst_heading_slug_func = "pages.slug"
myst_url_schemes = ["http", "https", "mailto", pages.COPIED.rstrip(":")]
nb_execution_mode = "off"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

#: Folders that the gallery links to.
GALLERY = ("figures", "notebooks", "params")


class CopiedLinks(SphinxTransform):
    """Links to copied files lose their scheme and are relative to the page."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Change all links of a document."""
        for link in self.document.findall(nodes.reference):
            if link.get("refuri", "").startswith(pages.COPIED):
                link["refuri"] = link["refuri"].removeprefix(pages.COPIED)


def write_notebooks(app: Sphinx, _config: Any) -> None:
    """Write the notebooks that are pages; git ignores them."""
    for figure in pages.notebooks():
        path = Path(app.srcdir, "notebooks", f"{figure}.ipynb")
        text = json.dumps(pages.notebook_source(figure))
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def read_page(_app: Sphinx, page: str, content: list[str]) -> None:
    """Replace the text of a page by what the site shows."""
    if page in pages.names():
        content[0] = pages.source(page)


def copy_files(site: Path) -> None:
    """Copy what pages link to into the site, with all that the gallery links to."""
    paths = pages.copied()
    if any(path.is_relative_to(pages.ROOT / "figures") for path in paths):
        for name in GALLERY:
            shutil.copytree(pages.ROOT / name, site / name, dirs_exist_ok=True)
    for path in sorted(paths):
        target = site / path.relative_to(pages.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            shutil.copyfile(path, target)
        else:
            shutil.copytree(path, target, dirs_exist_ok=True)
            names = sorted(other.name for other in path.iterdir())
            rows = "".join(f'<li><a href="{name}">{name}</a></li>' for name in names)
            (target / "index.html").write_text(f"<!doctype html><ul>{rows}</ul>")


def finish(app: Sphinx, error: Exception | None) -> None:
    """Copy files and check every link of the site."""
    if error is None and app.builder.name == "html":
        copy_files(Path(app.outdir))
        broken = pages.broken_links(Path(app.outdir))
        if broken:
            raise ExtensionError("links that lead nowhere:\n" + "\n".join(broken))


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.add_transform(CopiedLinks)
    # Pygments has no lexer of its own for it
    app.add_lexer("csv", TextLexer)
    app.connect("config-inited", write_notebooks)
    app.connect("source-read", read_page)
    app.connect("build-finished", finish)
