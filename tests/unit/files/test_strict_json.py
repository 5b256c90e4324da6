from __future__ import annotations

import json
import math

import pytest

from repro.base.errors import TraceError
from repro.files.strict_json import elements, parse
from repro.files.table import Document


def read(text: str):
    return parse(Document("t.json", text.encode()))


def listed(text: str):
    return list(elements(Document("t.json", text.encode()), "job"))


def test_elements_are_those_of_the_list_with_their_lines():
    value = [{"a": [1, 2.5, "x\ny"]}, 3, None, [], "]"]
    text = "\n " + json.dumps(value, indent=1) + "\n"
    assert [element for _, element in listed(text)] == read(text) == value
    lines = text.splitlines()
    assert [lines[line - 1].strip()[0] for line, _ in listed(text)] == ["{", "3", "n", "[", '"']
    assert listed(" [ ] ") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b": }', "t.json:2:7: broken JSON (Expecting value)"),
        ('{"a": 1}\n {"b": 2}', "t.json:2:2: more text after the JSON"),
        ('\n{"a": {"x\\u001b": 1, "x\\u001b": 2}}', r"t.json:2:1: the key x\x1b is twice"),
        ('{"a":' * 20_000, "t.json:1:1: JSON nested too deeply"),
        ("[" * 100_000, "t.json:1:1: JSON nested too deeply"),
        ('["abc', "t.json:1:2: broken JSON (Unterminated string"),
    ],
)
def test_what_is_broken_has_a_line_and_a_column(text, message):
    with pytest.raises(TraceError) as caught:
        read(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\n {"a": 1}', "t.json:2:2: not a JSON list; expected [{job}, …]"),
        ("[1,\n2 3]", "t.json:2:3: broken JSON (Expecting ',' or ']')"),
        ("[1,\n2", "t.json:2:2: broken JSON (Expecting ',' or ']')"),
        ("[1,\n]", "t.json:2:1: broken JSON (Expecting value)"),
        ("[1,", "t.json:1:4: broken JSON (Expecting value)"),
        ("[1]\ngarbage", "t.json:2:1: more text after the JSON"),
        ("[1]]", "t.json:1:4: more text after the JSON"),
        ("[\n1,\n" + "[" * 100_000, "t.json:3:1: JSON nested too deeply"),
        ('[1,\n{"a": 1, "a": 1}]', "t.json:2:1: the key a is twice"),
    ],
)
def test_broken_lists(text, message):
    with pytest.raises(TraceError) as caught:
        listed(text)
    assert str(caught.value).startswith(message)


def test_numbers_beyond_the_limit_of_the_interpreter_are_infinite():
    assert read("9" * 5000) == math.inf
    assert read("-" + "9" * 5000) == -math.inf
    assert read("9" * 30) == 10**30 - 1
