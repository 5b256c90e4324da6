"""Small text files, read whole or refused in one line: no device, no pipe, no endless file."""

from __future__ import annotations

from pathlib import Path

from repro.errors import ReproError


def read_small(path: Path, limit: int, error: type[ReproError], name: str | None = None) -> str:
    """Read a text file of bounded size."""
    name = str(path) if name is None else name
    try:
        if not path.is_file():
            found = "it is a folder" if path.is_dir() else "it is no regular file"
            reason = found if path.exists() else "it does not exist"
            raise error(f"{name}: cannot be read ({reason}); check the path")
        with path.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as problem:
        raise error(f"{name}: cannot be read ({problem.strerror}); check the path") from None
    if len(raw) > limit:
        raise error(f"{name}: larger than {limit:,} bytes, the most that is read of such a file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise error(f"{name}:{line}: byte {problem.start} is not UTF-8 text") from None
