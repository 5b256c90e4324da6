"""Results computed once: each is filed by what it was made from and the sources that made it."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import pickle
import platform
import threading
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import CacheWarning, ReproError
from repro.base.release import STARTED, VERSION
from repro.files.whole import write_whole
from repro.model.records import Result

T = TypeVar("T")

PACKAGE = Path(__file__).resolve().parent.parent
#: What a simulation's records depend on, besides its arguments: all that these import, too.
SIMULATION_SOURCES = (
    *("base", "engine", "files", "model", "perf", "placement", "policies", "solve", "trace"),
    *(f"figures/{name}.py" for name in ("cache", "data", "progress", "sweep")),
)
#: Libraries whose version can move a number or a line of a picture, those that are installed.
RECORDED = (
    *("ecos", "kiwisolver", "matplotlib", "networkx", "numba", "numpy", "pandas", "pillow"),
    *("river", "rustworkx", "scikit-learn", "scipy", "simpy"),
)


class NotCacheable(ReproError):
    """An argument whose content cannot be told from outside, such as a function."""


#: Whether this thread computes a result already.
_turns = threading.local()


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries results depend on."""
    found = {"python": platform.python_version(), "repro": VERSION}
    for name in RECORDED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@functools.cache
def _sources() -> list[Path]:
    """Return the Python files of `SIMULATION_SOURCES`."""
    tops = [PACKAGE / part for part in sorted(SIMULATION_SOURCES)]
    return [
        path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*.py")))
    ]


@functools.cache
def source_hash() -> str:
    """Return a hash over the Python files that simulations depend on."""
    return files_hash(_sources())


def files_hash(files: Collection[Path]) -> str:
    """Return a hash over names and contents of files."""
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return key([(path.parent.name, path.name) for path in files], sums)


def tables_hash() -> str:
    """Return a hash over the checkout's tables: ``traces/*.csv`` and every CSV in ``params/``."""
    return files_hash(_tables())


def simulated_tables_hash(readers: Iterable[Path] = ()) -> str:
    """Return `tables_hash` without what no source of simulations and no reader names.

    Published values, which only figures read, make no simulation old.
    """
    code = "".join(path.read_text() for path in (*_sources(), *readers))
    top = paths.traces_dir()
    return files_hash([path for path in _tables() if path.parent == top or path.name in code])


def _tables() -> list[Path]:
    """Return the checkout's tables."""
    return sorted([*paths.traces_dir().glob("*.csv"), *paths.params_dir().rglob("*.csv")])


def content_hash(frame: pd.DataFrame) -> str:
    """Return a hash of the values, columns and types of a frame, not of its attributes."""
    names = "".join(f"{name}:{dtype};" for name, dtype in frame.dtypes.items())
    values = pd.util.hash_pandas_object(frame, index=True).to_numpy().tobytes()
    return hashlib.sha256(names.encode() + values).hexdigest()


def key(*values: Any) -> str:
    """Return a hash that is equal exactly for equal values, in every process.

    Of classes and functions only those of this package count, by name.
    """
    pieces = b"".join(piece + b"\x00" for piece in _pieces(values))
    return hashlib.sha256(pieces).hexdigest()


def _pieces(value: Any) -> Iterable[bytes]:
    """Yield bytes that spell out a value and its type."""
    if value is None or isinstance(value, bool | int | float | str | bytes | np.generic):
        yield f"{type(value).__name__}:{value!r}".encode()
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__}:{len(value)}".encode()
        for item in value:
            yield from _pieces(item)
    elif isinstance(value, Mapping):
        yield f"mapping:{len(value)}".encode()
        for name in sorted(value, key=repr):
            yield from _pieces(name)
            yield from _pieces(value[name])
    elif isinstance(value, set | frozenset):
        yield b"set"
        yield from _pieces(sorted(value, key=repr))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array:{value.dtype}:{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, pd.DataFrame):
        try:
            yield content_hash(value).encode()
        except TypeError:
            raise NotCacheable("a frame holds objects the cache cannot compare") from None
    elif isinstance(value, pd.Series):
        yield content_hash(value.to_frame("values")).encode()
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        yield _ours(value)
    elif dataclasses.is_dataclass(value):
        yield _ours(type(value))
        for field in dataclasses.fields(value):
            yield field.name.encode()
            yield from _pieces(getattr(value, field.name))
    else:
        raise NotCacheable(f"a {type(value).__name__} has no content the cache can compare")


def _ours(named: Any) -> bytes:
    """Return the full name of a class or function of this package."""
    name = f"{named.__module__}.{named.__qualname__}"
    inner = getattr(named, "__closure__", None) is not None or "<" in named.__qualname__
    if inner or not named.__module__.startswith("repro."):
        raise NotCacheable(f"{name} may change without the cache noticing")
    return name.encode()


def recall(digest: str) -> Any:
    """Return the result filed under a key, None if there is none."""
    folder = _folder()
    return None if folder is None else _read(folder / f"{digest}.pkl")


def remembered(digest: str, compute: Callable[[], T]) -> T:
    """Return the result filed under a key, computing and filing it if there is none.

    A damaged entry is computed again; without a folder, without room, or if the package changed
    since this process began, nothing is remembered. Each is warned of.
    """
    folder = _folder()
    if folder is None:
        return compute()
    path = folder / f"{digest}.pkl"
    result = _read(path)
    if result is None:
        with _turn(folder, digest):
            # Another process may have filed it in the meantime.
            result = _read(path)
            if result is None:
                result = compute()
                _write(path, result)
    return result  # type: ignore[no-any-return]


def _folder() -> Path | None:
    """Return the folder of these sources and versions; None, after a warning, if there is none."""
    folder = paths.cache_dir() / "simulations" / key(source_hash(), versions())[:16]
    if _is_edited():
        return None
    try:
        paths.private(folder / "locks", paths.cache_dir())
    except OSError as error:
        _warn(f"no cache at {folder} ({error.strerror}); set {paths.ENV_CACHE} to a folder")
        return None
    return folder


def _is_edited() -> bool:
    """Tell, and warn, whether a source changed since this process began."""
    edited = next((path for path in _sources() if path.stat().st_ctime > STARTED), None)
    if edited:
        _warn(f"result not remembered: {edited} changed since this process began")
    return edited is not None


def _read(path: Path) -> Any:
    """Return the filed result; None, after removing it, for what cannot be read."""
    try:
        result = pickle.loads(zlib.decompress(path.read_bytes()))
        if isinstance(result, Result | dict):
            return result
        reason = f"holds a {type(result).__name__}"
    except FileNotFoundError:
        return None
    # Unpickling damaged bytes may raise anything.
    except Exception as error:
        reason = type(error).__name__
    _warn(f"damaged cache entry {path.stem[:12]} ({reason}) in {path.parent}; computed again")
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _write(path: Path, result: Any) -> None:
    """File a result, whole or, with a warning, not at all."""
    if _is_edited():
        return
    try:
        # zlib adds a checksum, so that a flipped bit is noticed and not believed.
        write_whole(path, zlib.compress(pickle.dumps(result, pickle.HIGHEST_PROTOCOL), 1))
    except ReproError as error:
        _warn(f"result not remembered: {error}")


def _warn(line: str) -> None:
    """Warn at the place that asked for a result."""
    warnings.warn(line, CacheWarning, stacklevel=5)


@contextlib.contextmanager
def _turn(folder: Path, digest: str) -> Iterator[None]:
    """Let one process at a time compute a result, so that the next one finds it in the cache.

    A result computed on the way to another one takes no turn: results share locks, and two that
    wait for each other's would wait for ever.
    """
    nested = getattr(_turns, "taken", False)
    _turns.taken = True
    with contextlib.ExitStack() as held:
        # Without locks, each computes its own. The system drops a lock when its process ends.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            if not nested:
                lock = held.enter_context((folder / "locks" / digest[:3]).open("ab"))
                fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _turns.taken = nested
