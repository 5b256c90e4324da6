"""Lines for people: a list below an error, what compiles."""

from __future__ import annotations

import sys

from repro.cli.lines import compiling_line, complain


def test_a_list_stands_below_its_line_and_keeps_its_columns(capsys):
    complain("no  such\nthing;", "one    first", "second\x1b[31m\nline")
    assert capsys.readouterr().err.splitlines() == [
        "repro: no such thing;",
        "  one    first",
        "  second\\x1b[31m line",
    ]


def test_on_a_terminal_one_line_says_what_compiles(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    tell = compiling_line()
    tell("repro.engine.loop")
    tell("repro.engine.other")
    err = capsys.readouterr().err
    assert err.startswith("repro: compiling repro.engine.loop ") and err.count("\n") == 1


def test_elsewhere_nothing_is_said(capsys):
    compiling_line()("repro.engine.loop")
    assert capsys.readouterr().err == ""
