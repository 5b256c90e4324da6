"""An executed notebook as an HTML page that needs no network."""

import functools
import threading

from pygments.formatters import HtmlFormatter

from repro.batch.notebook_libraries import HTMLExporter, clean_html, nbformat
from repro.batch.papers import papers
from repro.batch.report import templates

_converting = threading.Lock()
#: Start of a code cell that Pygments has highlighted.
_START_OF_CODE = '<div class=" highlight'


def as_page(notebook: bytes, figure_id: str, gallery: str | None) -> bytes:
    """Convert an executed notebook to a self-contained HTML page.

    The page links to the figure's paper, and to its card in the gallery at the address ``gallery``.
    """
    document = nbformat.reads(notebook.decode(), as_version=4)  # type: ignore[no-untyped-call]
    with _converting:
        body, _ = _exporter().from_notebook_node(document)
    colours = [
        HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "monokai")
    ]
    folder = figure_id.split("/")[0]
    page = templates().get_template("notebook.html")
    return page.render(
        id=figure_id,
        gallery=gallery,
        works=[paper for paper in papers() if paper.paper == folder],
        body=body,
        colours=colours,
    ).encode()


@functools.cache
def _exporter() -> HTMLExporter:
    """Exporter of all pages of this process; the first page compiles its templates."""
    return HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="basic", exclude_anchor_links=True, filters={"clean_html": _without_scripts}
    )


def _without_scripts(html: str) -> str:
    """HTML without scripts, except highlighted code: Pygments has escaped it, cleaning is slow."""
    return html if html.startswith(_START_OF_CODE) else str(clean_html(html))  # type: ignore[no-untyped-call]
