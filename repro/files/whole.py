"""Read small text files completely; write files atomically; remove files; names of text files."""

import contextlib
import gzip
import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from repro.base.errors import ParamError, ReproError

#: Number of times that a write begins again if another process removes its unfinished file.
_MOST_TRIES = 20
#: Path of a file that this process already has open, such as the target of ``/dev/stdout``.
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
#: Endings of tables and archives that are no text.
_BINARY_TABLES = (".arrow", ".feather", ".h5", ".ods", ".orc", ".parquet", ".xls", ".xlsx")
_ARCHIVES = (".bz2", ".xz", ".zip", ".zst")
#: Name of a temporary file of `write_whole`.
_UNFINISHED = re.compile(r"\..+-[0-9a-f]{16}")


def read_small(path: Path, limit: int, error: type[ReproError], name: str | None = None) -> str:
    """Text of a UTF-8 file of at most ``limit`` bytes, or a one-line ``error``.

    Messages call the file ``name``.
    """
    name = str(path) if name is None else name
    try:
        if not path.is_file():
            reason = "it does not exist"
            if path.exists():
                reason = "it is a folder" if path.is_dir() else "it is no regular file"
            raise error(f"{name}: cannot be read ({reason}); check the path")
        with path.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as problem:
        raise error(f"{name}: cannot be read ({problem.strerror}); check the path") from None
    if len(raw) > limit:
        raise error(f"{name}: larger than {limit:,} bytes, the limit for such a file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise error(f"{name}:{line}: byte {problem.start} is not UTF-8 text") from None


def write_whole(path: Path, data: bytes, *, parents: bool = True) -> None:
    """Write a file atomically: readers see the old or the new content, even after a kill.

    Open descriptors (``/dev/stdout``), pipes and character devices are written directly. With
    ``parents``, missing folders are made. A file whose name ends in .gz is compressed.
    """
    if path.suffix.lower() == ".gz":
        # without the time of writing, so that equal data give equal files
        data = gzip.compress(data, mtime=0)
    try:
        if (descriptor := _open_descriptor(path)) is not None:
            _send(descriptor, data)
            return
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and not stat.S_ISREG(mode):
            _stream(path, mode, data)
            return
        target = Path(os.path.realpath(path))
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        elif not target.parent.is_dir():
            raise ReproError(f"{path}: no folder {target.parent}; make it first")
        _write_and_rename(target, data, mode)
    except OSError as error:
        raise ReproError(f"{path}: cannot be written ({error.strerror}); check the path") from None


def refuse_binary_name(path: Path, formats: str = "CSV") -> None:
    """Refuse the name of a binary table or archive for a file that will be text.

    ``formats`` are the formats in which the file could be written, in words.
    """
    if path.suffix.lower() in _BINARY_TABLES + _ARCHIVES:
        raise ParamError(
            f"{path}: the file will be text ({formats}), not {path.suffix}; choose another ending, "
            f"such as .csv"
        )


def remove_file(path: Path) -> None:
    """Remove a file that may be missing, or raise a one-line error."""
    # A read-only file system refuses to remove a missing file, too.
    if os.path.lexists(path):
        _act_or_raise(path, "removed", lambda: path.unlink(missing_ok=True))


def is_unfinished(path: Path) -> bool:
    """Whether a path has the name of a temporary file of `write_whole`, which a kill may leave.

    >>> is_unfinished(Path("a/.b.csv-0123456789abcdef")), is_unfinished(Path("a/.b-c.csv.swp"))
    (True, False)
    """
    return _UNFINISHED.fullmatch(path.name) is not None


def touch(path: Path) -> None:
    """Set the times of a file to the present, or raise a one-line error."""
    _act_or_raise(path, "written", lambda: os.utime(path))


def _act_or_raise(path: Path, done: str, act: Callable[[], None]) -> None:
    """Act on a file, or raise a one-line error.

    ``done`` names the action in the error, such as "removed".
    """
    try:
        act()
    except OSError as error:
        raise ReproError(f"{path}: cannot be {done} ({error.strerror}); check the path") from None


def _write_and_rename(target: Path, data: bytes, mode: int | None) -> None:
    """Write a temporary file in the folder of ``target`` and rename it.

    ``mode`` are the permissions of an existing target, which are kept. Temporary files of killed
    writes of the same target are removed.
    """
    for number in range(_MOST_TRIES):
        try:
            _try_to_write(target, data, mode)
            break
        except FileNotFoundError:
            # Another process that writes this file took the temporary file for a leftover.
            if number == _MOST_TRIES - 1 or not target.parent.is_dir():
                raise
    _remove_leftovers(target)


def _try_to_write(target: Path, data: bytes, mode: int | None) -> None:
    """Write a temporary file and rename it, or remove it and raise."""
    unfinished = target.with_name(f"{_unfinished_start(target)}{secrets.token_hex(8)}")
    try:
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        if mode is not None:
            os.chmod(unfinished, stat.S_IMODE(mode))
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _unfinished_start(target: Path) -> str:
    """Beginning of the names of temporary files of ``target``; 16 hexadecimal digits follow."""
    return f".{target.name[:100]}-"


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files that killed writes of ``target`` have left."""
    leftover = re.compile(f"{re.escape(_unfinished_start(target))}[0-9a-f]{{16}}")
    # A folder without permission to list it accepts writes all the same.
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if leftover.fullmatch(entry.name):
                os.unlink(entry.path)


def _stream(path: Path, mode: int, data: bytes) -> None:
    """Write bytes into a character device or a pipe; refuse folders and block devices."""
    if stat.S_ISDIR(mode):
        raise ReproError(f"{path}: is a folder; give a file inside it")
    if stat.S_ISBLK(mode):
        raise ReproError(f"{path}: is a block device; give a file on it")
    # No O_CREAT and no O_TRUNC: the device exists and cannot be emptied.
    descriptor = os.open(path, os.O_WRONLY)
    try:
        _send(descriptor, data)
    finally:
        os.close(descriptor)


def _send(descriptor: int, data: bytes) -> None:
    """Write all bytes into an open file, at its current position."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _open_descriptor(path: Path) -> int | None:
    """Descriptor of an open file with a path such as ``/dev/stdout``; None for other paths."""
    names = [os.path.abspath(path)]
    if path.is_symlink():
        names.append(os.path.join(os.path.dirname(names[0]), os.readlink(path)))
    matches = [_DESCRIPTOR.fullmatch(name) for name in names]
    return next((int(match[1]) for match in matches if match), None)
