"""The little HTML a gallery needs: escaped elements and one self-contained page."""

from __future__ import annotations

import html
from collections.abc import Sequence

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid var(--line); margin-top: 3rem; }
nav a { margin-right: 1rem; }
section { border: 1px solid var(--line); border-radius: 8px; padding: 0 1rem 1rem;
  margin: 1.5rem 0; }
section h3 { margin-bottom: 0; }
.sub, .tally { opacity: .75; margin-top: .2rem; }
img { display: block; max-width: 100%; max-height: 26rem; background: white; border-radius: 4px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem;
  border-top: 1px solid var(--line); }
td:nth-child(4), td:nth-child(5) { font-variant-numeric: tabular-nums; }
td.reproduced { color: #2e7d32; font-weight: 600; }
td.partial { color: #b26a00; font-weight: 600; }
td.missed, .failed { color: #c62828; font-weight: 600; }
td.not-comparable { opacity: .7; }
.stand-in { color: #b26a00; }
.deviation { margin: .2rem 0; opacity: .8; }
pre { overflow-x: auto; font-size: 12px; padding: .6rem; background: #8881; border-radius: 4px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: 13px; }
dt { grid-column: 1; opacity: .7; } dd { grid-column: 2; margin: 0; overflow-wrap: anywhere; }
.links a { margin-right: 1rem; }
"""
_VOID = frozenset({"img"})


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


def page(title: str, body: Sequence[str]) -> str:
    """Return a whole page that asks the network for nothing."""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    lines = ["<!doctype html>", f'<html lang="en"><head>{head}{view}</head>', "<body>", *body]
    return "\n".join([*lines, "</body></html>", ""])
