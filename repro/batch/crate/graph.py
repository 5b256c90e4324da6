"""Entities of a crate: descriptions in JSON-LD, and the files that are copied into it."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

#: Media type by suffix of a file.
MEDIA_TYPES = {
    ".svg": "image/svg+xml",
    ".csv": "text/csv",
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".ipynb": "application/x-ipynb+json",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".sh": "application/x-sh",
}

Entity = dict[str, Any]


class Graph:
    """Entities by id, in the order of their first mention."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}
        #: id of a file in the crate -> its content
        self.contents: dict[str, bytes] = {}

    def add(self, identifier: str, kind: str | list[str], /, **properties: Any) -> str:
        """Describe an entity, unless its id is described already; return the id."""
        if identifier not in self.entities:
            described = {
                name: value for name, value in properties.items() if value not in (None, [])
            }
            self.entities[identifier] = {"@id": identifier, "@type": kind, **described}
        return identifier

    def add_file(
        self, path: str, content: bytes, kind: str | list[str] = "File", **properties: Any
    ) -> str:
        """Copy a file into the crate, at ``path``, with size and checksum; return its id."""
        identifier = quote(path)
        self.contents.setdefault(identifier, content)
        return self.add(
            identifier,
            kind,
            **properties,
            encodingFormat=MEDIA_TYPES.get(Path(path).suffix, "text/plain"),
            contentSize=str(len(content)),
            sha256=hashlib.sha256(content).hexdigest(),
        )

    def link(self, identifier: str, name: str, targets: Iterable[str]) -> None:
        """Append references to a property of an entity, each target once."""
        entity = self.entities[identifier]
        linked = entity.setdefault(name, [])
        linked += [
            reference(target)
            for target in dict.fromkeys(targets)
            if reference(target) not in linked
        ]


def reference(identifier: str) -> dict[str, str]:
    """Reference to an entity."""
    return {"@id": identifier}


def references(identifiers: Iterable[str]) -> list[dict[str, str]]:
    """References to entities, each once."""
    return [reference(identifier) for identifier in dict.fromkeys(identifiers)]


def slug(text: str) -> str:
    """Text as a part of an id: other characters than letters, digits, dots become hyphens.

    >>> slug("traces/measured/a b.csv")
    'traces-measured-a-b.csv'
    """
    return "-".join("".join(c if c.isalnum() or c == "." else " " for c in text).split())
