"""The one ``njit`` of every compiled loop: machine code is never older than the source it is from.

Numba looks only at the file of the outermost function to see whether kept code is stale. Here the
code of a module lies in a folder named by a hash of that module and of all it imports.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from repro.base import paths
from repro.base.errors import CacheWarning, ReproError
from repro.base.release import STARTED

Function = TypeVar("Function", bound=Callable[..., Any])

ENV_FOLDER = "NUMBA_CACHE_DIR"
#: What the compiler may assume of sums where their order does not matter.
SUMS = {"contract", "reassoc", "arcp"}
#: An import statement; a parser for Python takes twenty times as long.
_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^(\n]+))",
    re.M,
)
_ANNOTATING = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n)+", re.M)
#: Days without use after which machine code of other sources is removed.
KEPT_DAYS = 30


def njit(home: str | None = None, **options: Any) -> Callable[[Function], Function]:
    """Compile a function by Numba on its first call, and keep the machine code.

    Numba itself is imported by that call, so that modules with compiled loops cost no time to
    import. The code is kept in ``compiled`` below ``$NUMBA_CACHE_DIR``, or else below the cache
    folder; if there can be no folder, one `CacheWarning` says so. ``options`` are those of
    ``numba.njit``. The code is as old as the sources of the module ``home``, by default that of the
    function; a function that closes over others names the module that these come from.
    """

    def decorate(function: Function) -> Function:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return function
        # nobody calls the loops from C
        options_all = {"no_cfunc_wrapper": True, **options}
        return Loop(function, home or function.__module__, options_all)  # type: ignore[return-value]

    return decorate


class Loop:
    """A function that compiles itself; compiled loops call it by name."""

    def __init__(self, function: Callable[..., Any], home: str, options: dict[str, Any]) -> None:
        self.py_func = function
        self._home = home
        self._options = options
        functools.update_wrapper(self, function)
        self.name = function.__qualname__

    def __reduce__(self) -> str:
        """Return the name by which kept code of a function that closes over this one knows it."""
        return self.name

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Call the compiled function."""
        return self.kernel(*values, **named)

    @functools.cached_property
    def kernel(self) -> Callable[..., Any]:
        """What Numba made of the function."""
        with _preparing():
            numba = _numba()
            function = self.py_func
            kernel = numba.njit(**self._options)(function)
            in_file = Path(function.__code__.co_filename).is_file()
            folder = _folder(self._home) if in_file else None
            if folder is not None:
                kernel._cache = _kept(function, folder) or kernel._cache
            return cast(Callable[..., Any], kernel)


@functools.cache
def _numba() -> Any:
    """Return Numba, which now takes a `Loop` for its kernel wherever it meets one."""
    import numba
    from numba.extending import typeof_impl

    typeof_impl.register(Loop)(lambda loop, about: typeof_impl(loop.kernel, about))
    _listen()
    return numba


class CompileWatch:
    """Seconds that one thread spends on getting machine code, and what it compiles.

    Attributes
    ----------
    seconds : float
        Time (s) to import Numba, to read machine code that was kept, to compile and to keep it.
    names : list of str
        Loops compiled, ``module.function``, without those that these call.
    """

    def __init__(self, tell: Callable[[str], None] | None) -> None:
        self.seconds = 0.0
        self.names: list[str] = []
        self._tell = tell
        self._thread = threading.get_ident()
        self._depth = 0
        self._compiling = 0
        self._began = 0.0

    def enter(self) -> None:
        """Begin to count, unless it is counted already or another thread's."""
        if threading.get_ident() == self._thread:
            if self._depth == 0:
                self._began = time.perf_counter()
            self._depth += 1

    def leave(self) -> None:
        """End what `enter` began."""
        if threading.get_ident() == self._thread and self._depth:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - self._began

    def compile(self, name: str) -> None:
        """Note a loop that begins to be compiled."""
        self.enter()
        if threading.get_ident() == self._thread:
            self._compiling += 1
            if self._compiling == 1:
                self.names.append(name)
                if self._tell is not None:
                    self._tell(name)

    def compiled(self) -> None:
        """Note its end."""
        if threading.get_ident() == self._thread and self._compiling:
            self._compiling -= 1
        self.leave()


_watches: list[CompileWatch] = []


@contextlib.contextmanager
def compile_watch(tell: Callable[[str], None] | None = None) -> Iterator[CompileWatch]:
    """Count the seconds that go into machine code, apart from those of the work itself.

    Watches nest, and each counts for the thread it was made in. Without a compiled loop inside,
    Numba is not imported.

    Parameters
    ----------
    tell : callable, optional
        Called with ``module.function`` when a loop begins to be compiled, not when kept machine
        code is read.

    Yields
    ------
    CompileWatch
        Up to date at any time between two calls of compiled loops.

    Examples
    --------
    >>> with compile_watch() as watch:
    ...     _ = sum(range(10))
    >>> watch.seconds, watch.names
    (0.0, [])
    """
    if "numba" in sys.modules:
        _listen()
    watch = CompileWatch(tell)
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)


@contextlib.contextmanager
def _preparing() -> Iterator[None]:
    """Count what happens inside as time for machine code."""
    watches = list(_watches)
    for watch in watches:
        watch.enter()
    try:
        yield
    finally:
        for watch in watches:
            watch.leave()


@functools.cache
def _listen() -> None:
    """Hear of every compilation from now on; kept code that is read is no compilation."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc,unused-ignore]
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            for watch in _watches:
                watch.compile(f"{function.__module__}.{function.__qualname__}")

        def on_end(self, event: Any) -> None:
            for watch in _watches:
                watch.compiled()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call,unused-ignore]


def sources(module: str) -> dict[str, Path]:
    """Return the files of a module and of those it imports of its package and of ours, by name."""
    found: dict[str, Path] = {}
    ahead = [module]
    while ahead:
        name = ahead.pop()
        path = _file(name)
        # What this module imports only finds the folder.
        if path is None or name in found or name == __name__:
            continue
        found[name] = path
        own = {"repro", module.partition(".")[0]}
        ahead += [one for one in _imports(name, path) if one.partition(".")[0] in own]
    return found


def _file(module: str) -> Path | None:
    """Return the file of a module, without importing it; None for what is none."""
    top, *rest = module.split(".")
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None or not rest:
        return Path(file) if file else None
    path = Path(file).parent.joinpath(*rest)
    places = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    return next((place for place in places if place.is_file()), None)


def _imports(module: str, path: Path) -> Iterator[str]:
    """Yield the modules a file names in import statements but those for annotations alone."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    code = _ANNOTATING.sub("", path.read_text(encoding="utf-8"))
    for plain, home, names in _IMPORT.findall(code):
        yield from (name.split()[0] for name in plain.split(",") if name)
        if home:
            home = importlib.util.resolve_name(home, package)
            for name in re.findall(r"(\w+)(?: +as +\w+)?", names):
                inner = f"{home}.{name}"
                yield inner if _file(inner) else home


def changed(files: Iterable[Path]) -> Path | None:
    """Return a file that changed since this process began, whose code may be older; else None."""
    return next((file for file in files if file.stat().st_ctime > STARTED), None)


@functools.cache
def _folder(module: str) -> Path | None:
    """Return the folder for the machine code of a module, or None after a warning."""
    files = {**sources(module), __name__: Path(__file__)}
    digest = hashlib.sha256(f"{_numba().__version__} {np.__version__}".encode())
    for name in sorted(files):
        content = files[name].read_bytes()
        digest.update(f"{name}:{len(content)}:".encode() + content)
    if edited := changed(files.values()):
        _warn_once(f"compiled loops are not kept: {edited} changed since this process began")
        return None
    given = os.environ.get(ENV_FOLDER)
    top = Path(given).expanduser() if given else paths.cache_dir()
    folder = top / "compiled" / digest.hexdigest()[:16]
    new = not folder.is_dir()
    try:
        paths.private(folder, top, ENV_FOLDER if given else paths.ENV_CACHE)
    except ReproError as error:
        _warn_once(f"compiled loops are not kept: {error}")
        return None
    except OSError as error:
        _warn_once(f"compiled loops are not kept: {top} ({error.strerror})")
        return None
    if new:
        _remove_unused(folder.parent)
    with contextlib.suppress(OSError):
        os.utime(folder)
    return folder


def _remove_unused(base: Path) -> None:
    """Remove the folders of other sources that nobody has used for a month."""
    for folder in base.iterdir():
        with contextlib.suppress(OSError):
            idle_s = time.time() - folder.stat().st_mtime
            if re.fullmatch("[0-9a-f]{16}", folder.name) and idle_s > KEPT_DAYS * 24 * 3600:
                shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _cache_class() -> Any:
    """Return Numba's cache, but a damaged entry or a full disk costs a compilation, not the run."""
    from numba.core.caching import FunctionCache

    class Kept(FunctionCache):  # type: ignore[misc,unused-ignore]
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                with _preparing():
                    return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call,unused-ignore]
            # Unpickling damaged bytes may raise anything.
            except Exception:
                with contextlib.suppress(OSError):
                    self.flush()  # type: ignore[no-untyped-call,unused-ignore]
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                with _preparing():
                    super().save_overload(sig, data)  # type: ignore[no-untyped-call,unused-ignore]
            except OSError as error:
                base = Path(self.cache_path).parent.parent
                _warn_once(f"compiled loops are not kept: {base} ({error.strerror})")

    return Kept


def _kept(function: Callable[..., Any], folder: Path) -> Any:
    """Return a function's cache in a folder, or None after a warning."""
    config: Any = _numba().config
    # Numba asks for the folder at this moment only.
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        cache = _cache_class()(function)
    except RuntimeError:
        cache = None
    finally:
        config.CACHE_DIR = before
    # Without write access Numba takes, silently, a folder that does not depend on the sources.
    if cache is not None and Path(cache.cache_path).is_relative_to(folder):
        return cache
    _warn_once(f"compiled loops are not kept: no write access to {folder.parent}")
    return None


@functools.cache
def _warn_once(line: str) -> None:
    """Warn, but not once per function."""
    warnings.warn(line, CacheWarning, stacklevel=2)
