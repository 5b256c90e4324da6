"""Small text files read whole or refused in one line; files written whole or not at all."""

import os
import re
import secrets
import stat
from pathlib import Path

from repro.base.errors import ReproError

#: Names of files that this process already has open, such as what ``/dev/stdout`` points to.
_OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


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


def write_whole(path: Path, data: bytes, *, parents: bool = True) -> None:
    """Write a file so that a reader or a kill sees the old or the new one, never a part."""
    try:
        if (number := _open_file(path)) is not None:
            _send(number, data)
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
        _replace(target, data, mode)
    except OSError as error:
        raise ReproError(f"{path}: cannot be written ({error.strerror}); check the path") from None


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    """Write beside ``target`` and move it there; a new file gets the permissions of any other."""
    unfinished = target.with_name(f".{target.name[:100]}-{secrets.token_hex(8)}")
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


def _stream(path: Path, mode: int, data: bytes) -> None:
    """Send bytes into a device for characters or a pipe; refuse folders and disks."""
    if stat.S_ISDIR(mode):
        raise ReproError(f"{path}: is a folder; give a file inside it")
    if stat.S_ISBLK(mode):
        raise ReproError(f"{path}: is a disk; give a file on it")
    # without O_CREAT and O_TRUNC: there is nothing to make and nothing to empty
    handle = os.open(path, os.O_WRONLY)
    try:
        _send(handle, data)
    finally:
        os.close(handle)


def _send(handle: int, data: bytes) -> None:
    """Write all bytes into an open file, at its current position."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _open_file(path: Path) -> int | None:
    """Return the number of the open file that a path stands for, if it does."""
    names = [os.path.abspath(path)]
    if path.is_symlink():
        names.append(os.path.join(os.path.dirname(names[0]), os.readlink(path)))
    found = [_OPEN_FILE.fullmatch(name) for name in names]
    return next((int(one[1]) for one in found if one), None)
