"""Public traces: which file of which commit, and how to have it here with the right checksum."""

import csv
import hashlib
import io
import os
import re
import tempfile
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from urllib.parse import quote

from repro.base import paths
from repro.base.errors import DataMissingError, TraceError, near
from repro.files.whole import read_small

HOST = "https://raw.githubusercontent.com"
TIMEOUT_S = 30
_MOST_BYTES = 2**24
_SIZE = re.compile("[0-9]{1,15}")


@dataclass(frozen=True)
class Entry:
    """One public file: a row of ``traces/registry.csv``."""

    name: str
    repository: str
    commit: str
    path: str
    sha256: str
    bytes: int
    format: str
    licence: str
    description: str

    @property
    def url(self) -> str:
        """Address of the file at its commit."""
        return f"{HOST}/{self.repository}/{self.commit}/{quote(self.path)}"

    @property
    def below(self) -> Path:
        """Path of the file inside the mirror and the cache."""
        return Path(self.repository.replace("/", "+")) / self.path


@cache
def _read_registry(path: Path, changed_ns: int) -> dict[str, Entry]:
    """Return name → entry; ``changed_ns`` makes an edited file be read again."""
    text = read_small(path, _MOST_BYTES, TraceError)
    wanted = [column.name for column in fields(Entry)]
    held: dict[str, Entry] = {}
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        if next(reader, []) != wanted:
            raise TraceError(f"{path}:1: the trace registry has the columns {', '.join(wanted)}")
        for row in filter(None, reader):
            values = dict(zip(wanted, row, strict=False))
            size = values.get("bytes", "")
            if len(row) != len(wanted) or not _SIZE.fullmatch(size) or row[0] in held:
                raise TraceError(
                    f"{path}:{reader.line_num}: not a row of the trace registry: a name of its "
                    f"own, then {', '.join(wanted[1:])}, with bytes a whole number"
                )
            held[row[0]] = Entry(**{**values, "bytes": int(size)})  # type: ignore[arg-type]
    except csv.Error as error:
        raise TraceError(f"{path}:{reader.line_num}: not a readable row ({error})") from None
    return held


def entries() -> dict[str, Entry]:
    """Return the public files by name."""
    path = paths.traces_dir() / "registry.csv"
    try:
        return _read_registry(path, path.stat().st_mtime_ns)
    except OSError:
        raise TraceError(f"{path}: the trace registry is missing; restore it") from None


def is_known(name: str) -> bool:
    """Tell whether a public file has this name."""
    return name in entries()


def unknown(name: str) -> str:
    """Return ``a public trace; did you mean …?`` for an error about ``name``."""
    return f"a public trace{near(name, entries())} (see repro trace list)"


def entry(name: str) -> Entry:
    """Return the public file called ``name``."""
    if name not in entries():
        raise DataMissingError(f"{name!r} is not the name of {unknown(name)}")
    return entries()[name]


def available(name: str) -> bool:
    """Tell whether a public file is here, in mirror or cache, with the right checksum."""
    item = entry(name)
    return _fault(_in_mirror(item) or _in_cache(item), item) is None


def fetch(name: str) -> Path:
    """Return the path of a public file, from the mirror, the cache, or the network."""
    item = entry(name)
    mirrored = _in_mirror(item)
    if mirrored is not None:
        if fault := _fault(mirrored, item):
            raise DataMissingError(f"{mirrored}: {fault}; repair the mirror or unset its variable")
        return mirrored
    cached = _in_cache(item)
    if cached.is_dir():
        raise DataMissingError(f"{cached}: a folder where {name!r} should be cached; remove it")
    if _fault(cached, item):
        _download(item, cached)
    return cached


def _in_mirror(item: Entry) -> Path | None:
    mirror = paths.mirror_dir()
    path = mirror / item.below if mirror else None
    return path if path and path.exists() else None


def _in_cache(item: Entry) -> Path:
    return paths.cache_dir() / "traces" / item.below


def _fault(path: Path, item: Entry) -> str | None:
    """Return what is wrong with a file, or None if it is the registered one."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return "is a pipe or device, not a file"
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return "no such file"
    except IsADirectoryError:
        return f"is a folder, not the file {item.path}"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    found = hashlib.sha256(raw).hexdigest()
    if found == item.sha256:
        return None
    if not raw:
        return f"empty file (expected {item.bytes:,} bytes)"
    if raw.lstrip()[:1] == b"<":
        return "an HTML page instead of the data"
    if len(raw) < item.bytes:
        return f"truncated: {len(raw):,} of {item.bytes:,} bytes"
    return f"wrong checksum: sha256 {found[:12]}…, registered {item.sha256[:12]}…"


def _download(item: Entry, target: Path) -> None:
    """Download to a temporary file beside ``target`` and move it there once it is verified."""
    hint = f"check the network, or set {paths.ENV_MIRROR} to a folder with {item.below}"
    try:
        paths.private(paths.cache_dir())
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unfinished-") as folder:
            unfinished = Path(folder) / target.name
            _retrieve(item.url, unfinished)
            if fault := _fault(unfinished, item):
                raise DataMissingError(f"{item.name}: {item.url} gave {fault}; {hint}")
            os.replace(unfinished, target)
    except OSError as error:
        reason = " ".join(str(error).split())[:200]
        if "Max retries exceeded" in reason:
            reason = "no connection"
        raise DataMissingError(f"{item.name}: {item.url} failed ({reason}); {hint}") from None


def _retrieve(url: str, path: Path) -> None:
    """Bring ``url`` to ``path``; network trouble is an OSError (as requests' errors are)."""
    import pooch  # slow to import, and needed for downloads only

    pooch.HTTPDownloader(progressbar=False, timeout=TIMEOUT_S)(url, str(path), None)
