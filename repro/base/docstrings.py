"""Parts of a docstring in the numpydoc form: summary, description, parameters, reference."""

import inspect
import re
from typing import NamedTuple

#: Line below the title of a section.
_RULE = re.compile(r"-{3,}")
#: ``name : type`` or ``name, name : type, type``.
_ENTRY = re.compile(r"(\w+(?:, \w+)*) : (\S.*)")
_REFERENCE = "Reference: "


class Described(NamedTuple):
    """Type and meaning of a parameter, as its docstring has them."""

    type: str
    meaning: str


def summary(text: str | None) -> str:
    r"""First line of a docstring; empty without a docstring.

    >>> summary("Sort jobs.\n\nSmallest first.")
    'Sort jobs.'
    """
    return next(iter(inspect.cleandoc(text or "").splitlines()), "").strip()


def description(text: str | None) -> str:
    r"""Text between the summary and the first section, without the reference.

    >>> description("Sort jobs.\n\nSmallest first.\n\nNotes\n-----\nStable.")
    'Smallest first.'
    """
    _, _, body = inspect.cleandoc(text or "").partition("\n")
    lines = body.splitlines()
    for number, line in enumerate(lines):
        if _RULE.fullmatch(line.strip()):
            lines = lines[: number - 1]
            break
    paragraphs = "\n".join(lines).split("\n\n")
    kept = [part for part in paragraphs if not part.strip().startswith(_REFERENCE)]
    return "\n\n".join(kept).strip("\n").rstrip()


def reference(text: str | None) -> str:
    r"""Paragraph ``Reference: …`` or section References, in one line; empty if there is none.

    >>> reference("Sort jobs.\n\nReference: A paper,\nsection 2.")
    'A paper, section 2.'
    >>> reference("Sort jobs.\n\nReferences\n----------\nA paper.\n\nExamples\n--------\nNone.")
    'A paper.'
    """
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        title, _, body = paragraph.partition("\n----------\n")
        if title == "References":
            return " ".join(body.split())
        if paragraph.startswith(_REFERENCE):
            return " ".join(paragraph.removeprefix(_REFERENCE).split())
    return ""


def parameters(text: str | None) -> dict[str, Described]:
    r"""Entries of the section Parameters: name -> type and meaning.

    Names that share an entry share its meaning. A list in a meaning keeps its lines.

    >>> parameters("Sort.\n\nParameters\n----------\nn : int\n    Size\n    of a job.")
    {'n': Described(type='int', meaning='Size of a job.')}
    """
    lines = inspect.cleandoc(text or "").splitlines()
    if "Parameters" not in lines:
        return {}
    described: dict[str, Described] = {}
    names: list[str] = []
    types: list[str] = []
    body: list[str] = []

    def keep() -> None:
        for number, name in enumerate(names):
            one_type = types[number] if len(types) == len(names) else ", ".join(types)
            described[name] = Described(one_type, _flowed("\n".join(body)))

    for line in lines[lines.index("Parameters") + 2 :]:
        if line and not line.startswith(" "):
            keep()
            entry = _ENTRY.fullmatch(line.strip())
            if entry is None:
                names = []
                break
            names = entry[1].split(", ")
            types = entry[2].split(", ") if len(names) > 1 else [entry[2]]
            body = []
        else:
            body.append(line)
    keep()
    return described


def _flowed(text: str) -> str:
    """Text whose paragraphs are one line each; an item of a list begins a line."""
    paragraphs = [
        " ".join(part.split())
        for part in re.split(r"\n\s*\n|\n(?=\s*- )", inspect.cleandoc(text))
        if part.strip()
    ]
    return "\n".join(paragraphs)
