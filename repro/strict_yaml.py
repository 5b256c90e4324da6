"""YAML as people mean it: ``1e3`` is a number, ``on`` is a word, a key stands once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from repro.errors import ParamError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Located:
    """A parsed document that remembers the line of each key."""

    value: Any
    lines: Mapping[KeyPath, int]

    def line(self, keys: KeyPath) -> int:
        """Return the line of the deepest known part of a key path, counted from 1."""
        for end in range(len(keys), -1, -1):
            if keys[:end] in self.lines:
                return self.lines[keys[:end]]
        return 1


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalar rules of YAML 1.2 (no ``1e3`` as text, no base 60, no dates)."""


# SafeLoader's table is shared by all its subclasses, so this one gets its own.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
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
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )


def _number(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    # A leading zero is decimal here, not octal as in YAML 1.1.
    return int(text, 16) if text.lower().startswith("0x") else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _number)


def parse_value(text: str) -> Any:
    """Read one value from the command line by the rules of the parameter files.

    Parameters
    ----------
    text : str
        A YAML scalar or flow list: ``1e3``, ``true``, ``[0, 1, 2]``, ``null``.

    Raises
    ------
    ParamError
        If the text is not valid YAML.

    Examples
    --------
    >>> parse_value("1e3"), parse_value("[0, 1]"), parse_value("off")
    (1000.0, [0, 1], 'off')
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise ParamError(
            f"value {text!r}: {problem}; give a number, a word or a list such as [0,1]"
        ) from None


def read_yaml(path: Path, name: str) -> Located:
    """Read a YAML file and the line of each of its keys.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        How messages call it.

    Raises
    ------
    ParamError
        ``name:line: …`` if it cannot be read, is not YAML, or gives a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ParamError(f"{name}: cannot be read ({reason})") from None
    loader = _Loader(text)
    lines: dict[KeyPath, int] = {(): 1}
    try:
        node = loader.get_single_node()
        if node is None:
            return Located(None, lines)
        _note_lines(node, (), lines, name)
        return Located(loader.construct_document(node), lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ParamError(f"{name}:{line}: not valid YAML: {problem}") from None
    except RecursionError:
        raise ParamError(f"{name}:1: not valid YAML: an alias refers to itself") from None
    finally:
        loader.dispose()


def _note_lines(node: yaml.Node, keys: KeyPath, lines: dict[KeyPath, int], name: str) -> None:
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise ParamError(f"{name}:{line}: a key must be a word, not a list or mapping")
            key = (*keys, key_node.value)
            if key in lines and key_node.tag != "tag:yaml.org,2002:merge":
                dotted = ".".join(map(str, key))
                raise ParamError(
                    f"{name}:{line}:{dotted}: given twice (first on line {lines[key]})"
                )
            lines[key] = line
            _note_lines(value_node, key, lines, name)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            key = (*keys, index)
            lines[key] = item.start_mark.line + 1
            _note_lines(item, key, lines, name)
