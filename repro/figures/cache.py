"""Cache of simulation results, keyed by their inputs, the source files and library versions."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import pickle
import platform
import threading
import types
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import CacheWarning, ReproError
from repro.base.release import VERSION, edited_since_start
from repro.figures.costs import COSTS
from repro.files.whole import write_whole
from repro.model.records import Result

T = TypeVar("T")

#: Packages and modules that a simulation's records depend on. They import no others of `repro`.
SIMULATION_SOURCES = (
    *("base", "engine", "files", "model", "perf", "placement", "policies", "solve", "trace"),
    *(f"figures/{name}.py" for name in ("cache", "costs", "data", "progress", "remote", "sweep")),
)
#: Libraries whose version can change a number or a line of a picture.
RECORDED = (
    *("ecos", "kiwisolver", "matplotlib", "networkx", "numba", "numpy", "pandas", "pillow"),
    *("river", "rustworkx", "scikit-learn", "scipy", "simpy"),
)


class NotCacheable(ReproError):
    """An argument without comparable content, such as a function."""


#: ``active``: whether this thread is computing a result.
_computing = threading.local()


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python, this package and the installed libraries of `RECORDED`."""
    installed = {"python": platform.python_version(), "repro": VERSION}
    for name in RECORDED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


@functools.cache
def _sources() -> list[Path]:
    """Python files of `SIMULATION_SOURCES`."""
    tops = [paths.PACKAGE / part for part in sorted(SIMULATION_SOURCES)]
    return [
        path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*.py")))
    ]


@functools.cache
def source_hash() -> str:
    """Hash of the Python files that simulations depend on."""
    return files_hash(_sources())


def files_hash(files: Collection[Path]) -> str:
    """Hash of the names and contents of files."""
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return key([(path.parent.name, path.name) for path in files], sums)


def tables_hash() -> str:
    """Hash of the checkout's tables: ``traces/*.csv`` and every CSV file in ``params/``."""
    return files_hash(_tables())


def simulated_tables_hash(readers: Iterable[Path] = ()) -> str:
    """Hash of the CSV tables that simulations may read.

    These are all tables in ``traces/``, and the tables in ``params/`` whose file name occurs in
    simulation code or in the files ``readers``. Tables of published values, which only figures
    read, do not change the hash.
    """
    top = paths.traces_dir()
    reader_code = "".join(path.read_text() for path in readers)
    return files_hash(
        [
            path
            for path in _tables()
            if path.parent == top or _in_sources(path.name) or path.name in reader_code
        ]
    )


# Without this cache, reading and searching the code takes as long as a short simulation.
@functools.cache
def _in_sources(name: str) -> bool:
    """Whether the name of a table occurs in the files of `SIMULATION_SOURCES`."""
    return name in _code()


@functools.cache
def _code() -> str:
    """Text of the files of `SIMULATION_SOURCES`."""
    return "".join(path.read_text() for path in _sources())


def _tables() -> list[Path]:
    """Tables of the checkout."""
    return sorted([*paths.traces_dir().glob("*.csv"), *paths.params_dir().rglob("*.csv")])


def content_hash(frame: pd.DataFrame) -> str:
    """Hash of the values, columns and types of a frame; its attributes do not count."""
    names = "".join(f"{name}:{dtype};" for name, dtype in frame.dtypes.items())
    values = pd.util.hash_pandas_object(frame, index=True).to_numpy().tobytes()
    return hashlib.sha256(names.encode() + values).hexdigest()


def key(*values: Any) -> str:
    """Cache key: a hash that is equal exactly for equal values, in every process.

    Classes and functions of this package count by name, bound methods also by the value of their
    object. Functions that are defined inside a function, and classes and functions of other
    packages, are not cacheable.
    """
    pieces = b"".join(piece + b"\x00" for piece in _pieces(values))
    return hashlib.sha256(pieces).hexdigest()


def _pieces(value: Any) -> Iterable[bytes]:
    """Yield bytes that determine a value and its type."""
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
    elif isinstance(value, pd.DataFrame | pd.Series):
        frame = value.to_frame("values") if isinstance(value, pd.Series) else value
        try:
            yield content_hash(frame).encode()
        except TypeError:
            raise NotCacheable("a frame holds objects the cache cannot compare") from None
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        yield _qualified_name(value)
        if isinstance(value, types.MethodType):
            yield from _pieces(value.__self__)
    elif dataclasses.is_dataclass(value):
        yield _qualified_name(type(value))
        for field in dataclasses.fields(value):
            yield field.name.encode()
            yield from _pieces(getattr(value, field.name))
    else:
        raise NotCacheable(f"a {type(value).__name__} has no content the cache can compare")


def _qualified_name(named: Any) -> bytes:
    """Full name of a class or function of this package; others raise NotCacheable."""
    name = f"{named.__module__}.{named.__qualname__}"
    inner = getattr(named, "__closure__", None) is not None or "<" in named.__qualname__
    if inner or not str(named.__module__).startswith("repro."):
        raise NotCacheable(f"{name} may change without the cache noticing")
    return name.encode()


@dataclasses.dataclass(frozen=True)
class Entry:
    """A stored result, and the CPU time (s) of its computation."""

    result: Result | dict[str, Any]
    cpu_s: float


def recall(digest: str) -> Any:
    """Stored result of a key; None if there is none."""
    folder = _folder()
    entry = None if folder is None else _read(folder / f"{digest}.pkl")
    if entry is None:
        return None
    COSTS.use(digest, entry.cpu_s)
    return entry.result


def remembered(digest: str, compute: Callable[[], T]) -> T:
    """Stored result of a key; if there is none, compute and store it.

    A damaged entry is computed again. Nothing is stored without a folder, on a full disk, or after
    a change of the package since this process began. Each of these cases gives a warning.
    """
    return entry_of(digest, compute).result  # type: ignore[return-value]


def entry_of(digest: str, compute: Callable[[], Any]) -> Entry:
    """Entry of a key, as `remembered`."""
    folder = _folder()
    path = None if folder is None else folder / f"{digest}.pkl"
    entry = None if path is None else _read(path)
    if entry is None:
        if folder is None or path is None:
            entry = _computed(compute)
        else:
            with _compute_lock(folder, digest):
                # Another process may have stored it in the meantime.
                entry = _read(path)
                if entry is None:
                    entry = _computed(compute)
                    _write(path, entry)
    COSTS.use(digest, entry.cpu_s)
    return entry


def store(digest: str, entry: Entry) -> None:
    """Store the entry of a key that was computed elsewhere."""
    folder = _folder()
    if folder is not None:
        _write(folder / f"{digest}.pkl", entry)


def _computed(compute: Callable[[], Any]) -> Entry:
    """Compute a result, and measure the computation."""
    with COSTS.computing() as spent:
        result = compute()
    return Entry(result, spent.cpu_s)


def _folder() -> Path | None:
    """Make the folder of the present sources and versions.

    None, after a warning: a source has changed, or the folder cannot be made.
    """
    folder = paths.cache_dir() / "simulations" / key(source_hash(), versions())[:16]
    if _is_edited():
        return None
    try:
        paths.make_private_folder(folder / "locks", paths.cache_dir())
    except OSError as error:
        _warn(f"no cache at {folder} ({error.strerror}); set {paths.ENV_CACHE} to a folder")
        return None
    return folder


def _is_edited() -> bool:
    """Whether a source changed since this process began; warn if so."""
    edited = edited_since_start(_sources())
    if edited:
        _warn(f"result not stored: {edited} changed since this process began")
    return edited is not None


def _read(path: Path) -> Entry | None:
    """Read a stored result; a damaged one is removed and gives None."""
    try:
        entry = pickle.loads(zlib.decompress(path.read_bytes()))
        if isinstance(entry, Entry):
            return entry
        reason = f"holds a {type(entry).__name__}"
    except FileNotFoundError:
        return None
    # Unpickling damaged bytes may raise anything.
    except Exception as error:
        reason = type(error).__name__
    _warn(f"damaged cache entry {path.stem[:12]} ({reason}) in {path.parent}; computed again")
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _write(path: Path, entry: Entry) -> None:
    """Store a result as a whole; if that fails, warn."""
    if _is_edited():
        return
    try:
        # zlib's checksum reveals a flipped bit.
        write_whole(path, zlib.compress(pickle.dumps(entry, pickle.HIGHEST_PROTOCOL), 1))
    except ReproError as error:
        _warn(f"result not stored: {error}")


def _warn(line: str) -> None:
    """Warn at the caller that asked for a result."""
    warnings.warn(line, CacheWarning, stacklevel=5)


@contextlib.contextmanager
def _compute_lock(folder: Path, digest: str) -> Iterator[None]:
    """Let one process at a time compute a result, so that the others find it in the cache.

    A result computed within the computation of another takes no lock. Results share lock files, so
    two processes with nested locks could wait for each other for ever.
    """
    nested = getattr(_computing, "active", False)
    _computing.active = True
    with contextlib.ExitStack() as locks:
        # Without locks, each process computes its own. The system drops locks of ended processes.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            if not nested:
                lock = locks.enter_context((folder / "locks" / digest[:3]).open("ab"))
                fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _computing.active = nested
