"""Libraries that read, run and convert notebooks, imported without a grammar that they do not need.

All of them import jsonschema. If ``rfc3987_syntax`` is installed, jsonschema imports this package,
which builds a parser for internationalised addresses. The parser takes a second of CPU in each
process. Notebooks have no such addresses.
"""

import sys

_GRAMMAR = "rfc3987_syntax"

_hides_grammar = _GRAMMAR not in sys.modules
if _hides_grammar:
    # None makes the import fail; jsonschema then works without the package
    sys.modules[_GRAMMAR] = None  # type: ignore[assignment]
try:
    import nbformat
    import papermill
    from nbconvert import HTMLExporter
    from nbconvert.filters import clean_html
    from papermill.exceptions import PapermillExecutionError
    from papermill.log import logger as papermill_log
finally:
    if _hides_grammar:
        del sys.modules[_GRAMMAR]

__all__ = [
    "HTMLExporter",
    "PapermillExecutionError",
    "clean_html",
    "nbformat",
    "papermill",
    "papermill_log",
]
