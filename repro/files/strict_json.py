"""JSON files read strictly: an error is one line that names file, line and column."""

import json
import re
from collections.abc import Iterator
from typing import Any

from repro.base.errors import TraceError
from repro.files.checks import shown
from repro.files.guess import is_json_lines
from repro.files.table import Document

_SPACE = re.compile(r"[ \t\r\n]*")
#: A whole number with more digits is read as a float.
_DIGITS = 300


def parse(document: Document) -> Any:
    """Value of a JSON file."""
    value, end = _value(document, _skip(document, 0))
    _check_end(document, end)
    return value


def elements(document: Document, kind: str) -> Iterator[tuple[int, Any]]:
    """Yield (line, element) for each element of a JSON list.

    Messages call an element ``kind``, such as "job".
    """
    text = document.text
    line = 1
    element_start = 0
    at = _skip(document, 0)
    if text[at] != "[":
        if is_json_lines(text):
            reason = f"JSON lines; write one list with commas: [{{{kind}}}, {{{kind}}}, …]"
            raise _error(document, at, reason)
        raise _error(document, at, f"not a JSON list; expected [{{{kind}}}, …]")
    at = _skip(document, at + 1)
    has_element = text[at : at + 1] != "]"
    while has_element:
        line = line + text.count("\n", element_start, at)
        element_start = at
        value, at = _value(document, at)
        yield line, value
        at = _skip(document, at)
        has_element = text[at : at + 1] == ","
        if has_element:
            at = _skip(document, at + 1)
        elif text[at : at + 1] != "]":
            raise _error(document, at, "broken JSON (Expecting ',' or ']'); fetch the file again")
    _check_end(document, at + 1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON object as a dictionary; KeyError for a repeated key."""
    by_key = dict(pairs)
    if len(by_key) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in by_key if names.count(name) > 1))
    return by_key


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    # Python refuses to convert a whole number of thousands of digits.
    parse_int=lambda digits: int(digits) if len(digits) <= _DIGITS else float(digits),
)


def _value(document: Document, start: int) -> tuple[Any, int]:
    """Value that begins at offset ``start``, and the offset where it ends."""
    try:
        return _DECODER.raw_decode(document.text, start)
    except json.JSONDecodeError as error:
        reason = f"broken JSON ({error.msg}); fetch the file again"
        raise _error(document, error.pos, reason) from None
    except RecursionError:
        raise _error(document, start, "JSON nested too deeply; fetch the file again") from None
    except KeyError as error:
        reason = f"the key {shown(error.args[0])} is twice in one JSON object; give it once"
        raise _error(document, start, reason) from None


def _skip(document: Document, start: int) -> int:
    """Offset of the first character from ``start`` on that is not a blank."""
    return _SPACE.match(document.text, start).end()  # type: ignore[union-attr]


def _check_end(document: Document, start: int) -> None:
    at = _skip(document, start)
    if at < len(document.text):
        raise _error(document, at, "more text after the JSON; a file holds one list or object")


def _error(document: Document, at: int, reason: str) -> TraceError:
    line = 1 + document.text.count("\n", 0, at)
    column = at - document.text.rfind("\n", 0, at)
    return TraceError(f"{document.name}:{line}:{column}: {reason}")
