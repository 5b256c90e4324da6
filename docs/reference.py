"""Reference pages of the site, written from the code when the site is built."""

from __future__ import annotations

import csv
import inspect
import json
import pkgutil
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from repro.cli.app import app
from repro.cli.schema import FOLDER as SCHEMAS
from repro.figures.claims import Claim
from repro.figures.params import FigureSpec
from repro.figures.tolerance import Accept, Relation

ROOT = Path(__file__).resolve().parents[1]
#: Models of a parameter file: heading and sentence.
MODELS: dict[type[BaseModel], tuple[str, str]] = {
    FigureSpec: ("Keys of the file", "A file has these keys and no others."),
    Claim: ("Keys of a claim", "`claims` is a list of claims."),
    Accept: (
        "Tolerance: `accept`",
        "A tolerance has `low`, `high` or both, or one of `rel`, `abs` and `exact`.",
    ),
    Relation: (
        "Relation: `relation`",
        "A relation has one key. A value outside of the tolerance that meets it is partial.",
    ),
}
_PAGE_OF_NAMES = Path(__file__).with_name("api.md")
_NAME = re.compile(r"`(repro(?:_course)?(?:\.\w+)+)`")
#: Type that Typer adds to the spelling of an argument or an option.
_TYPE = re.compile(r" ?<(.*)>$")
_TYPES = {"str": " TEXT", "path": " PATH", "int": " N", "float": " X"}


def generate(name: str) -> str:
    """Text of a generated part: ``api``, ``cli``, ``params`` or ``schemas``."""
    return {"api": api, "cli": cli, "params": params, "schemas": schemas}[name]()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown table; bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    escaped = [[cell.replace("|", r"\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


# Command line


def cli() -> str:
    """Every command with its options."""
    group = typer.main.get_command(app)
    return "\n\n".join(_command(name, command) for name, command in commands(group, "repro"))


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield all commands below a group, with their words."""
    context = group.context_class(group, info_name=path)
    for name in group.list_commands(context):
        command = group.resolve_command(context, [name])[1]
        if hasattr(command, "list_commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _command(words: str, command: Any) -> str:
    """Section of a command: help, usage, arguments and options."""
    context = command.context_class(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    records = [param.get_help_record(context) for param in command.params]
    rows = [_option(*record) for record in records if record is not None]
    options = table(["option", "meaning", "default"], rows) if rows else "It has no options."
    help_text = _prose(inspect.cleandoc(command.help or ""))
    return f"## {words}\n\n{help_text}\n\n```text\n{usage}\n```\n\n{options}"


def _option(spelling: str, text: str) -> list[str]:
    """Row of an option: spelling with the form of its value, meaning, and default."""
    # an argument has a name of its own, an option needs one for its value
    spelling = _TYPE.sub(lambda kind: _TYPES[kind[1]] if spelling.startswith("-") else "", spelling)
    meaning, _, remark = text.partition("  [")
    default = remark.removesuffix("]").removeprefix("default: ")
    shown = default if default in ("", "required") else f"`{default}`"
    return [f"`{spelling}`", _prose(meaning), shown]


def _prose(text: str | None) -> str:
    """Text of a help for Markdown; options and what is between backticks are code."""
    parts = re.split(r"(`[^`]*`|(?<!\S)--\w[\w-]*)", text or "")
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = re.sub(r"([<*\[\]])", r"\\\1", part)
        elif part.startswith("-"):
            parts[number] = f"`{part}`"
    return "".join(parts)


# Parameter files


def params() -> str:
    """Keys of a parameter file: a section for each model."""
    meanings = key_meanings()
    sections = []
    for model, (heading, sentence) in MODELS.items():
        rows = [
            [
                f"`{name}`",
                _type_words(field.annotation),
                _prose(meanings[model.__name__, name]),
                _field_default(field),
            ]
            for name, field in model.model_fields.items()
        ]
        head = ["key", "type", "meaning", "default"]
        sections.append(f"## {heading}\n\n{sentence}\n\n{table(head, rows)}")
    return "\n\n".join(sections)


def key_meanings() -> dict[tuple[str, str], str]:
    """Meaning of each key by model and key, from params.csv."""
    with Path(__file__).with_name("params.csv").open(newline="", encoding="utf-8") as file:
        return {(row["model"], row["key"]): row["meaning"] for row in csv.DictReader(file)}


def _field_default(field: FieldInfo) -> str:
    """Default of a key in YAML."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined:
        return ""
    return f"`{json.dumps(value)}`" if value != "" else '`""`'


def _type_words(annotation: Any) -> str:
    """Type of a key in words.

    >>> _type_words(list[float] | None)
    'list of numbers'
    """
    origin = typing.get_origin(annotation)
    arguments = [part for part in typing.get_args(annotation) if part is not type(None)]
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is typing.Annotated:
        return _type_words(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_type_words, arguments)))
    if origin is list:
        items = " or ".join(dict.fromkeys(map(_plural, _alternatives(arguments[0]))))
        return f"list of {items}"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__.lower()}](#{_anchor(annotation)})"
    names = {str: "text", float: "number", bool: "true or false", Any: "any value"}
    return names[annotation]


def _alternatives(annotation: Any) -> list[Any]:
    """Alternatives of a union, or the type itself."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return list(typing.get_args(annotation))
    return [annotation]


def _plural(annotation: Any) -> str:
    """Plural of a type in words."""
    if annotation is Claim:
        return f"[claims](#{_anchor(Claim)})"
    return f"{_type_words(annotation)}s"


def _anchor(model: type[BaseModel]) -> str:
    """Anchor of a model's section."""
    return re.sub(r"[^\w\- ]", "", MODELS[model][0].lower()).replace(" ", "-")


# JSON schemas


def schemas() -> str:
    """Every JSON schema: a table of its fields, and a link to the file."""
    sections = []
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts = [f"## {path.stem}", f"{schema['description']} File: [{path.name}]({_link(path)})."]
        parts.append(_field_table(schema))
        for name, part in schema.get("$defs", {}).items():
            if "properties" in part:
                parts += [f"**{name}**", _field_table(part)]
        sections.append("\n\n".join(parts))
    return "\n\n".join(sections)


def _link(path: Path) -> str:
    """Link from a page to a file of the checkout."""
    return f"../{path.relative_to(ROOT).as_posix()}"


def _field_table(schema: Mapping[str, Any]) -> str:
    """Table of the fields of an object."""
    rows = [
        [f"`{name}`", kind, "" if is_required else "optional", _prose(meaning)]
        for name, kind, is_required, meaning in schema_fields(schema)
    ]
    return table(["field", "type", "", "meaning"], rows)


def schema_fields(
    node: Mapping[str, Any], path: str = "", is_required: bool = True
) -> Iterator[tuple[str, str, bool, str]]:
    """Yield path, type, whether it is always there, and meaning of each field below a node.

    ``[]`` in a path stands for each element of an array, ``*`` for each key of an object.
    """
    if path:
        yield path, _schema_type(node), is_required, node.get("description", "")
    if "items" in node:
        node = node["items"]
        path = f"{path}[]"
    prefix = f"{path}." if path else ""
    for name, field in node.get("properties", {}).items():
        yield from schema_fields(field, f"{prefix}{name}", name in node.get("required", ()))
    each = node.get("additionalProperties")
    if isinstance(each, Mapping) and each:
        yield from schema_fields(each, f"{prefix}*", False)


def _schema_type(node: Mapping[str, Any]) -> str:
    """Type of a field, or its accepted values."""
    if "$ref" in node:
        return node["$ref"].rpartition("/")[2]
    if "enum" in node:
        return ", ".join(f"`{json.dumps(value)}`" for value in node["enum"])
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    for key in ("anyOf", "oneOf"):
        if key in node:
            return " or ".join(dict.fromkeys(map(_schema_type, node[key])))
    kinds = node.get("type", "any")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "items" in node:
        kinds = [f"array of {_schema_type(node['items'])}" if k == "array" else k for k in kinds]
    return " or ".join(kinds)


# Library


def public_names() -> dict[str, list[str]]:
    """Public names of docs/api.md by theme, without the old names of release 0.3."""
    text = _PAGE_OF_NAMES.read_text().split("\n## Names of release")[0]
    flat, deep = text.split("\n## Names without a flat name\n")
    themes = {"import repro": re.findall(r"^\| `([\w.]+)` \|", flat, re.MULTILINE)}
    for theme, listed in re.findall(r"^- \*\*(.+)\*\*:((?:.|\n(?!- ))*)", deep, re.MULTILINE):
        themes[theme] = _NAME.findall(listed)
    return themes


def api() -> str:
    """Signature and docstring of every public name, by theme."""
    sections = []
    for theme, listed in public_names().items():
        sections.append(f"### {theme}")
        sections += map(_entry, listed)
    return "\n\n".join(sections)


def _entry(name: str) -> str:
    """Directive that shows a name."""
    public = pkgutil.resolve_name(name)
    kind = "function"
    options = ""
    if inspect.ismodule(public):
        kind = "module"
        options = "   :no-index:\n"
    elif inspect.isclass(public):
        kind = "class"
        options = "   :members:\n"
    return f"```{{eval-rst}}\n.. auto{kind}:: {name}\n{options}```"
