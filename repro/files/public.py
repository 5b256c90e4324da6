"""Public files: commits, checksums, and their download into the cache."""

import csv
import hashlib
import io
import os
import re
import tarfile
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
class PublicFile:
    """One public file: a row of ``traces/registry.csv``."""

    name: str
    repository: str
    commit: str
    path: str
    #: file inside the archive at `path`; empty: `path` is the file itself
    member: str
    #: checksum and size of the file that is read: of the member, not of its archive
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
    def relative_path(self) -> Path:
        """Path of the file inside the mirror and the cache."""
        path = Path(self.repository.replace("/", "+")) / self.path
        return path.with_name(f"{path.name}.members") / self.member if self.member else path


@cache
def _read_registry(path: Path, changed_ns: int) -> dict[str, PublicFile]:
    """Public files by name.

    ``changed_ns`` (time of the last change) is part of the cache key, so an edited registry is read
    again.
    """
    text = read_small(path, _MOST_BYTES, TraceError)
    columns = [column.name for column in fields(PublicFile)]
    files: dict[str, PublicFile] = {}
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        if next(reader, []) != columns:
            raise TraceError(f"{path}:1: the trace registry has the columns {', '.join(columns)}")
        for row in filter(None, reader):
            values = dict(zip(columns, row, strict=False))
            size = values.get("bytes", "")
            if len(row) != len(columns) or not _SIZE.fullmatch(size) or row[0] in files:
                raise TraceError(
                    f"{path}:{reader.line_num}: not a valid row; give a unique name, then "
                    f"{', '.join(columns[1:])}, where bytes is a whole number"
                )
            files[row[0]] = PublicFile(**{**values, "bytes": int(size)})  # type: ignore[arg-type]
    except csv.Error as error:
        raise TraceError(f"{path}:{reader.line_num}: not a readable row ({error})") from None
    return files


def entries() -> dict[str, PublicFile]:
    """All public files by name."""
    path = paths.traces_dir() / "registry.csv"
    try:
        return _read_registry(path, path.stat().st_mtime_ns)
    except OSError:
        raise TraceError(f"{path}: the trace registry is missing; restore it") from None


def is_known(name: str) -> bool:
    """Whether a public file has this name."""
    return name in entries()


def trace_hint(name: str) -> str:
    """Words for an error about an unknown name: ``a public trace; did you …``."""
    return f"a public trace{near(name, entries())} (see repro trace list)"


def entry(name: str) -> PublicFile:
    """Public file ``name``; DataMissingError if there is none."""
    if name not in entries():
        raise DataMissingError(f"{name!r} is not the name of {trace_hint(name)}")
    return entries()[name]


def available(name: str) -> bool:
    """Whether `fetch` has a public file without a download.

    The file is in the mirror or the cache with the right checksum, or a member of such an archive.
    """
    file = entry(name)
    mirrored = _in_mirror(file)
    if mirrored is not None:
        return _fault(mirrored, file) is None
    if paths.sent_inputs() is not None:
        return False
    cached = _in_cache(file)
    if _fault(cached, file) is None:
        return True
    if cached.is_dir() or not file.member:
        return False
    return available(_archive_of(file).name)


def fetch(name: str) -> Path:
    """Path of a public file in the mirror or the cache; downloads it if it is in neither.

    A member of an archive is taken out of the archive, into the cache. Where inputs were sent to
    this machine, only sent files count: another machine of the batch may lack what the cache has.
    """
    file = entry(name)
    mirrored = _in_mirror(file)
    if mirrored is None and paths.sent_inputs() is not None:
        raise DataMissingError(
            f"{name}: not available where the batch was started; `repro trace fetch {name}` there"
        )
    if mirrored is not None:
        if fault := _fault(mirrored, file):
            raise DataMissingError(
                f"{mirrored}: {fault}; repair the mirror or unset {paths.ENV_MIRROR}"
            )
        return mirrored
    cached = _in_cache(file)
    if cached.is_dir():
        raise DataMissingError(f"{cached}: a folder where {name!r} should be cached; remove it")
    if _fault(cached, file):
        if file.member:
            _take_out(file, fetch(_archive_of(file).name), cached)
        else:
            _download(file, cached)
    return cached


def _archive_of(member: PublicFile) -> PublicFile:
    """Registered archive of a member."""
    place = (member.repository, member.commit, member.path)
    for file in entries().values():
        if not file.member and (file.repository, file.commit, file.path) == place:
            return file
    raise TraceError(f"{member.name}: the trace registry has no row for {member.path}; add it")


def _take_out(file: PublicFile, archive: Path, target: Path) -> None:
    """Write a member of a tar archive to ``target``, if the checksum is right."""
    try:
        with tarfile.open(archive) as opened:
            content = opened.extractfile(file.member)
            raw = b"" if content is None else content.read()
        paths.make_private_folder(paths.cache_dir())
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unfinished-") as folder:
            unfinished = Path(folder) / target.name
            unfinished.write_bytes(raw)
            if fault := _fault(unfinished, file):
                raise DataMissingError(f"{archive}: {file.member}: {fault}; remove the archive")
            os.replace(unfinished, target)
    except (OSError, KeyError, tarfile.TarError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataMissingError(f"{archive}: {file.member} cannot be taken out ({reason})") from None


def _in_mirror(file: PublicFile) -> Path | None:
    mirror = paths.mirror_dir()
    path = mirror / file.relative_path if mirror else None
    return path if path and path.exists() else None


def _in_cache(file: PublicFile) -> Path:
    return paths.cache_dir() / "traces" / file.relative_path


def _fault(path: Path, file: PublicFile) -> str | None:
    """Reason why a file is not the registered public file; None if it is."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return "is a pipe or device, not a file"
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return "no such file"
    except IsADirectoryError:
        return f"is a folder, not the file {file.path}"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    checksum = hashlib.sha256(raw).hexdigest()
    if checksum == file.sha256:
        return None
    if not raw:
        return f"empty file (expected {file.bytes:,} bytes)"
    if raw.lstrip()[:1] == b"<":
        return "an HTML page instead of the data"
    if len(raw) < file.bytes:
        return f"truncated: {len(raw):,} of {file.bytes:,} bytes"
    return f"wrong checksum: sha256 {checksum[:12]}…, registered {file.sha256[:12]}…"


def _download(file: PublicFile, target: Path) -> None:
    """Download a public file to ``target``, which appears only if the checksum is right."""
    hint = f"check the network, or set {paths.ENV_MIRROR} to a folder with {file.relative_path}"
    try:
        paths.make_private_folder(paths.cache_dir())
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unfinished-") as folder:
            unfinished = Path(folder) / target.name
            _retrieve(file.url, unfinished)
            if fault := _fault(unfinished, file):
                raise DataMissingError(f"{file.name}: {file.url}: {fault}; {hint}")
            os.replace(unfinished, target)
    except OSError as error:
        reason = " ".join(str(error).split())[:200]
        if "Max retries exceeded" in reason:
            reason = "no connection"
        raise DataMissingError(f"{file.name}: {file.url} failed ({reason}); {hint}") from None


def _retrieve(url: str, path: Path) -> None:
    """Download ``url`` to ``path``; errors of the network are `OSError`, as in `requests`."""
    import pooch  # slow to import, and needed for downloads only

    pooch.HTTPDownloader(progressbar=False, timeout=TIMEOUT_S)(url, str(path), None)
