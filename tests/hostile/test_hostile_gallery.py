"""Texts that reach the gallery: none becomes an element, an attribute or a script of a page."""

from __future__ import annotations

import copy
import html.parser
import json

import pytest
import yaml
from doors import Case, check, parameters
from test_hostile_results import RESULT

from repro.batch.check import stored
from repro.batch.report import write_report
from repro.figures import params

PAYLOADS = {
    "script": "<script>alert(1)</script>",
    "picture": '<img src=x onerror="alert(1)">',
    "SVG": "<svg/onload=alert(1)>",
    "end of an attribute": '" onmouseover="alert(1)" x="',
    "end of a quoted attribute": "' onmouseover='alert(1)' x='",
    "end of a script": "</script><script>alert(1)</script>",
    "end of a style": "</style><iframe src=//example.org></iframe>",
    "end of a title": "</title><base href=//example.org>",
    "comment": "<!-- a --><object data=x></object>",
    "open comment": "<!-- a",
    "CDATA": "<![CDATA[<embed src=x>]]>",
    "template": "{{ 7 * 7 }}{% for a in [1] %}x{% endfor %}",
    "entity": "&lt;script&gt;&#60;form&#62;",
    "script address": "javascript:alert(1)",
    "data address": "data:text/html,<script>alert(1)</script>",
    "reversed text": "a\u202e<script>\u202c",
    "terminal escape": "\x1b[31m<b>",
    "markdown": "[a](javascript:alert(1)) ![b](x)",
    "formula": '=HYPERLINK("http://example.org")',
    "3,000 characters": "<b>" * 1000,
}
#: Texts of a result that the pages show.
PLACES = [
    *[(name,) for name in ("title", "reference", "shows", "stand_in")],
    ("notes", 0),
    ("params", "rules"),
    ("params", "policy"),
    ("data", 0, "name"),
    ("data", 0, "kind"),
    ("versions", "python"),
    *[("claims", 0, name) for name in ("id", "what", "source", "certainty", "deviation")],
    ("claims", 0, "published"),
    ("claims", 0, "ours"),
    ("claims", 0, "tolerance"),
    *[("points", 0, name) for name in ("series", "x", "quantity", "unit", "rules")],
]
#: Elements and attributes that no page of the gallery takes from a text.
_ACTIVE = {"script", "img", "iframe", "object", "embed", "base", "form", "meta"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="252pt" height="126pt" viewBox="0 0 252 126"/>'


class Page(html.parser.HTMLParser):
    """Elements of a page, its handlers of events and its addresses."""

    def __init__(self, text):
        super().__init__()
        self.elements = {}
        self.handlers = []
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        self.addresses += [value or "" for name, value in attributes if name in ("href", "src")]


def result_with(text):
    """Result with a text in every place."""
    content = copy.deepcopy(RESULT)
    content["notes"] = ["plain"]
    for keys in PLACES:
        inner = content
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = text
    return content


def report(root, out, content):
    """Pages of the gallery of one result, in the folder ``out``."""
    spec = {"title": "a", "paper": "tiresias", "reference": "Fig 10", "shows": "a"}
    for name, text in {
        "params/tiresias/fig10.yaml": yaml.safe_dump(spec),
        "notebooks/tiresias/fig10.ipynb": '{"cells": []}',
        f"{out}/tiresias/fig10/fig10.svg": SVG,
        f"{out}/tiresias/fig10/fig10.csv": "a\n1\n",
        f"{out}/tiresias/fig10/result.json": json.dumps(content),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    figures = stored(params.discover(root), root / out)
    assert figures[0].result, figures
    write_report(root / out, figures)
    return [Page(path.read_text("utf-8")) for path in sorted((root / out).rglob("*.html"))]


#: A page for each payload has it in every place.
TABLE = [(keys, name) for keys in PLACES for name in PAYLOADS]
COMMAND = ("trace", "info", "jobs.csv")


def terminal_cases():
    """Names in a trace that commands print: escapes do not reach the terminal."""
    for name, text in {
        "terminal escape": "\x1b[2J",
        "bell": "\x07",
        "reversed text": "\u202e",
    }.items():
        for column in ("job_id", "user", "model", "other"):
            header = "job_id,submit_time,duration,num_gpus,user,model,other"
            cells = {"job_id": "a", "user": "u", "model": "m", "other": "o", column: f"x{text}"}
            row = f"{cells['job_id']},0,60,1,{cells['user']},{cells['model']},{cells['other']}"
            if column != "other":
                content = f"{header}\n{row}\n"
                yield Case(f"cell {column}: {name}", COMMAND, (column,), {"jobs.csv": content})
            names = header.replace("other", f"x{text}") if column == "other" else header
            if column == "other":
                content = f"{names}\n{row}\n"
                yield Case(f"header: {name}", COMMAND, ("jobs.csv:1:",), {"jobs.csv": content})


CASES = list(terminal_cases())


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_hostile_text_in_the_gallery(name, tmp_path, monkeypatch):
    """A text in every place changes neither elements nor handlers nor addresses of the pages."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    plain = report(tmp_path, "plain", result_with("plain"))
    hostile = report(tmp_path, "hostile", result_with(PAYLOADS[name]))
    assert len(plain) == len(hostile) >= 2
    for before, after in zip(plain, hostile, strict=True):
        assert set(after.elements) - set(before.elements) <= {"wbr"}
        for element in _ACTIVE:
            assert after.elements.get(element, 0) == before.elements.get(element, 0)
        assert after.handlers == before.handlers
        schemes = [address.partition(":")[0].strip().lower() for address in after.addresses]
        assert "javascript" not in schemes
        data = [address for address in before.addresses if address.startswith("data:")]
        assert schemes.count("data") == len(data)


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_name_on_the_terminal(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)
