"""YAML 1.2: ``1e3`` is a number, ``on`` is a word, and a repeated key is an error."""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.composer import Composer

from repro.base.errors import ParamError, ReproError

MAX_BYTES = 1 << 20
#: Largest number of values after aliases are expanded.
MAX_NODES = 100_000
#: Largest number of values before aliases are expanded.
MAX_WRITTEN = 50_000
MAX_LEVELS = 50

KeyPath = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]")
#: Texts that the parser of PyYAML and that of libyaml may read differently.
_READ_IN_TWO_WAYS = re.compile(r"[\t?\ufeff]|[|>][-+0-9]*#")


@dataclass(frozen=True)
class Located:
    """A parsed YAML document with the line of each key."""

    value: Any
    lines: Mapping[KeyPath, int]

    def line(self, keys: KeyPath) -> int:
        """Line (from 1) of a key path, or of its longest prefix in the document."""
        for end in range(len(keys), -1, -1):
            if keys[:end] in self.lines:
                return self.lines[keys[:end]]
        return 1


class _Refused(Exception):
    """Error in a YAML text: its line, its reason and its key."""

    def __init__(self, line: int, reason: str, keys: KeyPath = ()) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
        self.key = ".".join(map(str, keys))


class _TooLong(_Refused):
    """Refusal of a text with too many values."""


class _Limits(Composer):
    """Composer that refuses tags, and more than a number of values or levels."""

    levels = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[attr-defined]
        line = event.start_mark.line + 1
        if tag := getattr(event, "tag", None):
            raise _Refused(line, f"tag {tag[:40]!r} is not accepted; write a plain value")
        if self.levels == MAX_LEVELS:
            raise _Refused(line, f"nested more than {MAX_LEVELS} levels deep")
        self.nodes += 1
        if self.nodes > MAX_WRITTEN:
            raise _TooLong(line, f"more than {MAX_WRITTEN:,} values")
        self.levels += 1
        node = super().compose_node(parent, index)
        self.levels -= 1
        return node


class _Loader(_Limits, yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2: ``1e3`` is a number; no base 60, no dates."""


# All subclasses of SafeLoader share its table, so this class gets a table of its own.
_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9][0-9_]*|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"^(?:{_pattern})$"), list(_first))


def _whole_number(loader: Any, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    return int(text, 16) if text.lower().startswith("0x") else int(text)


_Loader.add_constructor(f"{_TAG}int", _whole_number)


if yaml.__with_libyaml__:

    class _FastLoader(_Limits, yaml.CSafeLoader):
        """`_Loader` with the parser of libyaml, which takes a quarter of the time."""

        yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
        yaml_constructors = _Loader.yaml_constructors

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)


def parse_value(text: str) -> Any:
    """Value of a command-line text, parsed like a value in a parameter file."""
    try:
        return _parse(text).value
    except _Refused as refused:
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise ParamError(
            f"value {shown!r}: {refused.reason}; give a number, a word or a list such as [0,1]"
        ) from None


def parse_yaml(text: str, name: str, error: type[ReproError]) -> Located:
    """Value of a YAML text and the lines of its keys; messages call the file ``name``."""
    try:
        return _parse(text)
    except _Refused as refused:
        key = f"{refused.key}: " if refused.key else " "
        raise error(f"{name}:{refused.line}:{key}{refused.reason}") from None


def _parse(text: str) -> Located:
    if yaml.__with_libyaml__ and not _READ_IN_TWO_WAYS.search(text):
        # A text with an error is read again, because the messages of libyaml differ.
        # Reading a long text again would take seconds, and its message is the same.
        try:
            return _read(_FastLoader(text))
        except _TooLong:
            raise
        except (yaml.YAMLError, ValueError, OverflowError, _Refused):
            pass
    loader = None
    try:
        loader = _Loader(text)
        return _read(loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _Refused(line, f"character U+{error.character:04X} is not accepted") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        texts = [getattr(error, name, None) for name in ("context", "problem")]
        reason = ", ".join(filter(None, texts)) or "cannot be parsed"
        raise _Refused(mark.line + 1 if mark else 1, f"not valid YAML: {reason}") from None
    except (ValueError, OverflowError):
        # PyYAML passes an escape such as "\UFFFFFFFF" to chr() unchecked.
        line = loader.line + 1 if loader else 1
        raise _Refused(line, "not valid YAML: there is no such character") from None
    finally:
        if loader is not None:
            loader.dispose()


def _read(loader: Any) -> Located:
    """Value of the text of a loader and the lines of its keys."""
    lines: dict[KeyPath, int] = {(): 1}
    node = loader.get_single_node()
    if node is None:
        return Located(None, lines)
    _expanded_size(node, {})
    _note_lines(loader, node, (), lines)
    return Located(loader.construct_document(node), lines)


def _expanded_size(node: yaml.Node, sizes: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """Count the values and levels of a node with aliases expanded; too many raise."""
    if id(node) not in sizes:
        # None marks a node whose size is being counted
        sizes[id(node)] = None
        children: Any = () if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            children = itertools.chain.from_iterable(children)
        below = [_expanded_size(child, sizes) for child in children]
        size = 1 + sum(size for size, _ in below)
        levels = 1 + max((levels for _, levels in below), default=0)
        sizes[id(node)] = size, levels
        if size > MAX_NODES or levels > MAX_LEVELS:
            limits = f"{MAX_NODES:,} values or {MAX_LEVELS} levels"
            raise _Refused(node.start_mark.line + 1, f"expanded aliases exceed {limits}")
    expanded = sizes[id(node)]
    if expanded is None:
        raise _Refused(node.start_mark.line + 1, "not valid YAML: an alias refers to itself")
    return expanded


def _note_lines(loader: Any, node: yaml.Node, keys: KeyPath, lines: dict[KeyPath, int]) -> None:
    """Record the line of each key below a node; an invalid key or scalar raises."""
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: dict[Any, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _Refused(line, "a key must be a word, not a list or mapping", keys)
            key = (*keys, key_node.value)
            _check_scalar(key_node, key)
            if key_node.tag != f"{_TAG}merge":
                # Python would merge the keys 1, 1.0 and true, so they count as repeated
                value = loader.construct_object(key_node)
                if value in seen:
                    raise _Refused(line, f"given twice (first on line {seen[value]})", key)
                seen[value] = line
            lines[key] = line
            _note_lines(loader, value_node, key, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            key = (*keys, index)
            lines[key] = item.start_mark.line + 1
            _note_lines(loader, item, key, lines)
    else:
        _check_scalar(node, keys)


def _check_scalar(node: yaml.Node, keys: KeyPath) -> None:
    text = node.value
    line = node.start_mark.line + 1
    if match := _UNPRINTABLE.search(text):
        keys = tuple(_UNPRINTABLE.sub("?", str(key)) for key in keys)
        raise _Refused(line, f"character U+{ord(match[0]):04X} is not accepted in a text", keys)
    if node.tag not in (f"{_TAG}int", f"{_TAG}float"):
        return
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    if _LEADING_ZERO.match(text):
        raise _Refused(line, f"{shown} has a leading zero; write it without, or quote it", keys)
    digits = text.replace("_", "").lower()
    if digits.lstrip("+-") in (".inf", ".nan"):
        return
    try:
        magnitude = float.fromhex(digits) if digits.startswith("0x") else float(digits)
    except OverflowError:
        magnitude = math.inf
    if math.isinf(magnitude):
        raise _Refused(line, f"{shown} is too large for a number (at most 1.8e308)", keys)
