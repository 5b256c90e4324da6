"""An executed notebook as an HTML page that needs no network."""

import functools
import threading

from pygments.formatters import HtmlFormatter

from repro.batch.notebook_libraries import HTMLExporter, nbformat
from repro.batch.report import templates

_converting = threading.Lock()


def as_page(notebook: bytes, title: str) -> bytes:
    """Convert an executed notebook to a self-contained HTML page."""
    document = nbformat.reads(notebook.decode(), as_version=4)  # type: ignore[no-untyped-call]
    with _converting:
        body, _ = _exporter().from_notebook_node(document)
    colours = [
        HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "monokai")
    ]
    page = templates().get_template("notebook.html")
    return page.render(title=title, body=body, colours=colours).encode()


@functools.cache
def _exporter() -> HTMLExporter:
    """Exporter of all pages of this process; the first page compiles its templates."""
    return HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="basic", exclude_anchor_links=True
    )
