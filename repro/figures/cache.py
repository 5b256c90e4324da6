"""Simulations done once: a result is filed by its arguments and the sources that made it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.core.records import Result
from repro.errors import CacheWarning, ReproError
from repro.figures.versions import versions
from repro.files.whole import write_whole
from repro.release import STARTED

PACKAGE = Path(__file__).resolve().parent.parent
#: What a simulation's records depend on, besides its arguments: all that these import, too.
SIMULATION_SOURCES = (
    "cluster",
    "compiled.py",
    "core",
    "errors.py",
    "estimate",
    "experiments/gavel/cases.py",
    "figures/cache.py",
    "figures/data.py",
    "figures/versions.py",
    "files",
    "matching",
    "optimise",
    "paths.py",
    "perf",
    "placement",
    "policies",
    "release.py",
    "sim",
    "trace",
)


class NotCacheable(ReproError):
    """An argument whose content cannot be told from outside, such as a function."""


@functools.cache
def source_hash(parts: tuple[str, ...] = SIMULATION_SOURCES) -> str:
    """Return a hash over the Python files of the named parts of the package.

    Parameters
    ----------
    parts : tuple of str
        Folders or files below the package; what does not exist counts as empty.
    """
    return files_hash(_sources(parts))


@functools.cache
def _sources(parts: tuple[str, ...] = SIMULATION_SOURCES) -> list[Path]:
    """Return the Python files of the named parts of the package."""
    found: list[Path] = []
    for part in sorted(parts):
        top = PACKAGE / part
        found += [top] if top.is_file() else sorted(top.rglob("*.py"))
    return found


def files_hash(files: Iterable[Path]) -> str:
    """Return a hash over names and contents of files."""
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.parent.name}/{path.name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def tables_hash() -> str:
    """Return a hash over the checkout's tables: ``traces/*.csv`` and every CSV in ``params/``."""
    tables = [*paths.traces_dir().glob("*.csv"), *paths.params_dir().rglob("*.csv")]
    return files_hash(sorted(tables))


def content_hash(frame: pd.DataFrame) -> str:
    """Return a hash of the values, columns and types of a frame, not of its attributes.

    Examples
    --------
    >>> one = pd.DataFrame({"a": [1, 2]})
    >>> content_hash(one) == content_hash(one.copy()), content_hash(one) == content_hash(one + 1)
    (True, False)
    """
    digest = hashlib.sha256()
    for name, dtype in frame.dtypes.items():
        digest.update(f"{name}:{dtype};".encode())
    digest.update(pd.util.hash_pandas_object(frame, index=True).to_numpy().tobytes())
    return digest.hexdigest()


def key(*values: Any) -> str:
    """Return a hash that is equal exactly for equal values, in every process.

    Parameters
    ----------
    *values
        Numbers, texts, containers, arrays, frames and dataclasses of them; classes and functions
        only if they belong to this package, whose sources are part of the cache's address.

    Raises
    ------
    NotCacheable
        For anything else.

    Examples
    --------
    >>> key({"a": 1, "b": 2}) == key({"b": 2, "a": 1}), key(1) == key(1.0)
    (True, False)
    """
    digest = hashlib.sha256()
    for piece in _pieces(values):
        digest.update(piece)
        digest.update(b"\x00")
    return digest.hexdigest()


def _pieces(value: Any) -> Iterable[bytes]:
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
        yield _ours(value, value)
    elif dataclasses.is_dataclass(value):
        yield _ours(type(value), value)
        for field in dataclasses.fields(value):
            yield field.name.encode()
            yield from _pieces(getattr(value, field.name))
    else:
        raise NotCacheable(f"a {type(value).__name__} has no content the cache can compare")


def _ours(kind: Any, value: Any) -> bytes:
    name = f"{kind.__module__}.{kind.__qualname__}"
    inner = getattr(kind, "__closure__", None) is not None or "<" in kind.__qualname__
    if inner or not kind.__module__.startswith("repro."):
        raise NotCacheable(f"{name} may change without the cache noticing")
    return name.encode()


def remembered(digest: str, compute: Callable[[], Result]) -> Result:
    """Return the result filed under ``digest``, computing and filing it if there is none.

    Parameters
    ----------
    digest : str
        From :func:`key`.
    compute : callable
        Makes the result.

    Returns
    -------
    Result

    Raises
    ------
    ParamError
        If others may write to the cache folder: loading a result can run code.

    Warns
    -----
    CacheWarning
        If the entry was damaged: it is computed again and replaced. If there can be no folder, no
        room is left, or the package changed since this process began: nothing is remembered.
    """
    folder = paths.cache_dir() / "simulations" / key(source_hash(), versions())[:16]
    path = folder / f"{digest}.pkl"
    if edited := _edited():
        _tell(f"result not remembered: {edited} changed since this process began")
        return compute()
    try:
        paths.private(folder / "locks", paths.cache_dir())
    except OSError as error:
        _tell(f"no cache at {folder} ({error.strerror}); set {paths.ENV_CACHE} to a folder")
        return compute()
    result = _read(path)
    if result is None:
        with _turn(folder, digest):
            # Another process may have filed it in the meantime.
            result = _read(path)
            if result is None:
                result = compute()
                _write(path, result)
    return result


def _edited() -> Path | None:
    """Return a source that changed since this process began."""
    return next((path for path in _sources() if path.stat().st_ctime > STARTED), None)


def _read(path: Path) -> Result | None:
    """Return the filed result; None, after removing it, for what cannot be read."""
    import joblib

    try:
        result = joblib.load(path)
        if isinstance(result, Result):
            return result
        reason = f"holds a {type(result).__name__}"
    except FileNotFoundError:
        return None
    # Unpickling damaged bytes may raise anything.
    except Exception as error:
        reason = type(error).__name__
    _tell(f"damaged cache entry {path.stem[:12]} ({reason}) in {path.parent}; computed again")
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _write(path: Path, result: Result) -> None:
    """File a result, whole or, with a warning, not at all."""
    import joblib

    if edited := _edited():
        _tell(f"result not remembered: {edited} changed since this process began")
        return
    content = io.BytesIO()
    # Compression adds a checksum, so that a flipped bit is noticed and not believed.
    joblib.dump(result, content, compress=1)
    try:
        write_whole(path, content.getvalue())
    except ReproError as error:
        _tell(f"result not remembered: {error}")


def _tell(line: str) -> None:
    """Warn, as the caller of `remembered`."""
    warnings.warn(line, CacheWarning, stacklevel=4)


@contextlib.contextmanager
def _turn(folder: Path, digest: str) -> Iterator[None]:
    """Let one process at a time compute a result, so that the next one finds it in the cache."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    # The system drops the lock with the process, however that ends.
    try:
        lock = (folder / "locks" / digest[:3]).open("ab")
    except OSError:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached_simulate(
    trace: pd.DataFrame, cluster: Any, policy: Any, *, rules: str = "paper", **settings: Any
) -> Result:
    """Do what ``repro.simulate`` does, or remember having done it.

    Parameters
    ----------
    trace, cluster, policy, rules, **settings
        As for ``repro.simulate``. With an argument whose content cannot be compared (a policy
        defined in a notebook, extra processes) the simulation simply runs.

    Returns
    -------
    Result
        ``meta["wall_s"]`` is that of the run that computed it.
    """
    from repro.cluster.spec import Cluster
    from repro.files import public
    from repro.perf.throughput_files import throughputs_of
    from repro.sim.simulate import simulate

    machines = Cluster.parse(cluster)
    chosen = resolved(policy, rules)
    if settings.get("perf") is None and machines.gpu_types and "throughputs" in trace.attrs:
        # named by the trace, so that its content counts too
        settings["perf"] = chosen.performance() or throughputs_of(trace)

    def compute() -> Result:
        return simulate(trace, machines, chosen, rules=rules, **settings)

    name = trace.attrs.get("name", "trace")
    try:
        named = [(text, public.available(text)) for text in named_files(chosen)]
        digest = key(trace, name, machines, chosen, rules, settings, named, tables_hash())
    except NotCacheable:
        return compute()
    return remembered(digest, compute)


def resolved(policy: Any, rules: str) -> Any:
    """Return a policy for a registered name, anything else as it is."""
    from repro.core.policy import make

    return make(policy, rules) if isinstance(policy, str) else policy


def named_files(policy: Any) -> list[str]:
    """Return the public files that parameters of a policy name (a history), sorted."""
    from repro.files import public

    if not dataclasses.is_dataclass(policy):
        return []
    values = (getattr(policy, field.name) for field in dataclasses.fields(policy))
    return sorted({text for text in values if isinstance(text, str) and public.is_known(text)})
