"""YAML that is damaged, ambiguous or built to hurt ends in one line, and soon."""

import time
from itertools import pairwise

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base import paths
from repro.base.errors import ParamError, TraceError
from repro.files import strict_yaml
from repro.files.strict_yaml import parse_value, parse_yaml


def grown(first, row):
    rows = [row.replace("NEW", new).replace("OLD", f"*{old}") for old, new in pairwise("abcdefghi")]
    return "\n".join([f"a: &a {first}", *rows])


BOMB = grown("[x,x,x,x,x,x,x,x,x,x]", "NEW: &NEW [OLD,OLD,OLD,OLD,OLD,OLD,OLD,OLD,OLD,OLD]")
MERGES = grown("{x: 1}", "NEW: &NEW {<<: [OLD,OLD,OLD,OLD,OLD,OLD,OLD,OLD,OLD,OLD]}")
CHAIN = "\n".join(["a0: &a0 x", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "f.yaml:5: expanded aliases exceed 100,000 values or 50 levels"),
        (MERGES, "f.yaml:[56]: expanded aliases exceed"),
        (CHAIN, "f.yaml:51: expanded aliases exceed"),
        ("a: &a [*a]", "f.yaml:1: not valid YAML: an alias refers to itself"),
        ("a: &a\n  <<: *a", "f.yaml:1: not valid YAML: an alias refers to itself"),
        ("a: *b", "f.yaml:1: not valid YAML: found undefined alias 'b'"),
        ("a: 1\nb: " + "[" * 100_000, "f.yaml:2: nested more than 50 levels deep"),
        ("a: 1\nb: " + "{a: " * 60 + "}" * 60, "f.yaml:2: nested more than 50 levels deep"),
        ("a: 1\nb: [1, " + "9" * 5_000 + "]", "f.yaml:2:b.1: 9999.* is too large for a number"),
        ("a: 0x" + "f" * 5_000, "f.yaml:1:a: 0xff.* is too large for a number"),
        ("a: 1e999", "f.yaml:1:a: 1e999 is too large for a number"),
        ("a: -010", "f.yaml:1:a: -010 has a leading zero; write it without, or quote it"),
        ("a: [00.5]", r"f.yaml:1:a.0: 00\.5 has a leading zero"),
        ("007: x", "f.yaml:1:007: 007 has a leading zero"),
        ("a: 1\n\0", r"f.yaml:2: character U\+0000 is not accepted"),
        ("a: 1\nb: x\x1b[0m", r"f.yaml:2: character U\+001B is not accepted"),
        ('a: "\\e[0m"', r"f.yaml:1:a: character U\+001B is not accepted in a text"),
        ('a: ["\\ud800"]', r"f.yaml:1:a.0: character U\+D800 is not accepted in a text"),
        ('"\\0": 1', r"f.yaml:1:\?: character U\+0000 is not accepted in a text"),
        ('a: "\\UFFFFFFFF"', "f.yaml:1: not valid YAML: there is no such character"),
        ("a: 1\nb:\n- {c: 1, c: 2}", r"f.yaml:3:b.0.c: given twice \(first on line 3\)"),
        ("1: a\n1.0: b", r"f.yaml:2:1.0: given twice \(first on line 1\)"),
        ("? [a]\n: 1", "f.yaml:1: a key must be a word, not a list or mapping"),
        ("a: !!int 3", "f.yaml:1: tag 'tag:yaml.org,2002:int' is not accepted"),
        ("a: !!python/object/apply:os.getpid []", "f.yaml:1: tag .* is not accepted"),
        ("a: 1\n---\na: 1", "f.yaml:2: not valid YAML: expected a single document"),
        ("a: <<", "f.yaml:1: not valid YAML: could not determine a constructor"),
        ("a: {<<: 3}", "f.yaml:1: not valid YAML: while constructing a mapping, expected"),
    ],
)
def test_refused_in_one_line(text, message):
    began = time.process_time()
    with pytest.raises(TraceError, match=f"^{message}") as caught:
        parse_yaml(text, "f.yaml", TraceError)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200
    assert time.process_time() - began < 2


def test_aliases_and_merges_within_bounds_are_written_out():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]"
    found = parse_yaml(text, "f.yaml", ParamError)
    assert found.value["b"] == {"x": 1, "y": 3}
    assert found.value["c"] == [{"x": 1, "y": 2}] * 2
    assert found.line(("c", 1, "x")) == 1 and found.line(("b", "unknown")) == 2


@pytest.mark.parametrize(
    "text", ["[1", "010", "9" * 5_000, "[" * 3_000, "{a: 1, a: 2}", "a\0", "!!int 3", "1e999"]
)
def test_a_bad_value_of_the_command_line(text):
    with pytest.raises(ParamError, match=r"^value '.*give a number, a word or a list") as caught:
        parse_value(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def read_in_both_ways(text):
    """Values, lines or the message: with libyaml where it is installed, and with PyYAML alone."""
    read = []
    for with_libyaml in (yaml.__with_libyaml__, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml, "__with_libyaml__", with_libyaml)
            try:
                located = parse_yaml(text, "f.yaml", ParamError)
                read.append((repr(located.value), dict(located.lines)))
            except ParamError as error:
                read.append(str(error))
    return read


#: Pieces of texts that are often valid.
PIECES = [
    "a: 1",
    "b:",
    "- 1e3",
    "  - x",
    "[1, 2",
    "]",
    "{c: d, ",
    "}",
    "'",
    '"',
    ": ",
    "\n",
    "\n  ",
]
PIECES += ["#", "|", ">", "&x ", "*x", "!t ", "<<: ", "~", "on", "0x1f", "\\u0041", "\t", "?", "é"]
PIECES += ["\ufeff", "\u2028", "\x85", "---", "...", "%", "`", "@", ",", "-", "1_0", "null", "😀"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_libyaml_changes_no_value_line_or_message(text):
    with_libyaml, without = read_in_both_ways(text)
    assert with_libyaml == without


def test_libyaml_changes_nothing_in_the_parameter_files():
    files = sorted(paths.params_dir().rglob("*.yaml"))
    assert len(files) > 100
    for file in files[::6]:
        with_libyaml, without = read_in_both_ways(file.read_text(encoding="utf-8"))
        assert with_libyaml == without, file


def test_a_long_text_is_read_once(monkeypatch):
    text = "k:\n" + "- [1, 1]\n" * 20
    monkeypatch.setattr(strict_yaml, "MAX_WRITTEN", 50)
    with_libyaml, without = read_in_both_ways(text)
    assert with_libyaml == without == "f.yaml:17: more than 50 values"
    if yaml.__with_libyaml__:
        monkeypatch.setattr(strict_yaml, "_Loader", None)
        with pytest.raises(ParamError, match="more than 50 values"):
            parse_yaml(text, "f.yaml", ParamError)
