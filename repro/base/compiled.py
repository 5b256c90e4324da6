"""`njit` for all compiled functions, with a cache of machine code that is never stale.

Numba compares cached code with the file of the outermost function only. Here the machine code of a
module lies in a folder named by a hash of the module and of all modules that it imports.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from repro.base import paths
from repro.base.errors import CacheWarning, ReproError
from repro.base.interpreted import THREAD_STATE, Interpretation, check_nested
from repro.base.release import edited_since_start
from repro.base.units import DAY_S

Function = TypeVar("Function", bound=Callable[..., Any])

ENV_FOLDER = "NUMBA_CACHE_DIR"
#: An import statement. The parser of Python would take twenty times as long.
_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^(\n]+))",
    re.M,
)
_TYPE_CHECKING = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n)+", re.M)
#: Days without use after which machine code is removed.
KEPT_DAYS = 30
_ALLOCATES = "declare it with njit(allocates=True)"
_NOT_CACHED = "compiled functions are not cached"


def njit(
    home: str | None = None, *, allocates: bool = False, exact: bool = True, **options: Any
) -> Callable[[Function], Function]:
    """Compile a function by Numba when it is worth it, and cache the machine code.

    The function is interpreted for its first seconds (see `repro.base.interpreted`). Numba is
    imported after that only, so modules with compiled functions import quickly. The code is cached
    in ``compiled`` below ``$NUMBA_CACHE_DIR``, or else below the cache folder. If the folder cannot
    be used, there is one `CacheWarning`.

    Parameters
    ----------
    home : str, optional
        Module whose sources decide whether cached code is stale; by default the module of the
        function. If the function closes over functions of another module, give that module.
    allocates : bool
        The function makes arrays or lists, or calls a compiled function that returns one. Functions
        that do not allocate are compiled without reference counts. An event loop that passes a
        tuple of ten arrays to small functions would otherwise spend most of its time on counting.
    exact : bool
        The interpreted function gives the same bits as its machine code. Give False for sums of
        arrays of floats, which NumPy adds in another order.
    **options
        Options of ``numba.njit``. Fast-math flags are refused: with them, the last digits would
        depend on the CPU.

    Raises
    ------
    TypeError
        On the first call that is not interpreted, if a function without ``allocates`` returns an
        array or receives one from another compiled function. Numba itself refuses a function that
        makes an array.
    ValueError
        If the options have fast-math flags.
    """
    if "fastmath" in options:
        raise ValueError("fastmath: the last digits of results would depend on the CPU")

    def decorate(function: Function) -> Function:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return function
        # The option _nrt switches reference counts on. An inlined function becomes part of its
        # callers, and the option of the callers decides. No compiled function is called from C, so
        # Numba need not build a C wrapper.
        has_reference_counts = allocates or "inline" in options
        all_options = {"no_cfunc_wrapper": True, "_nrt": has_reference_counts, **options}
        return CompiledFunction(  # type: ignore[return-value]
            function, home or function.__module__, all_options, is_exact=exact
        )

    return decorate


class CompiledFunction:
    """A function compiled when it is worth it; other compiled functions may call it, too."""

    def __init__(
        self, function: Callable[..., Any], home: str, options: dict[str, Any], *, is_exact: bool
    ) -> None:
        self.py_func = function
        self._home = home
        self._is_exact = is_exact
        #: options of ``numba.njit``; Numba reads here whether to inline the function
        self.targetoptions = options
        functools.update_wrapper(self, function)
        self.name = function.__qualname__

    def __reduce__(self) -> str:
        """Pickle by name, for cached code of functions that close over this function."""
        return self.name

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Call the function, interpreted or compiled."""
        if THREAD_STATE.deadline is not None:
            check_nested(self._is_exact)
            return self.py_func(*values, **named)
        if not self.is_compiled and self._is_exact:
            is_done, result = self._interpretation.try_once(values, named)
            if is_done:
                return result
        return self.kernel(*values, **named)

    @property
    def is_compiled(self) -> bool:
        """Whether calls run machine code, not the function in Python."""
        return "kernel" in self.__dict__

    @functools.cached_property
    def _interpretation(self) -> Interpretation:
        """Interpretation of the function while it has no machine code."""
        folder = self._folder
        code = self.py_func.__code__
        name = re.sub(r"\W", "_", f"{self.py_func.__module__}.{self.name}-{code.co_firstlineno}")
        return Interpretation(self.py_func, None if folder is None else folder / f"{name}.python")

    @functools.cached_property
    def _folder(self) -> Path | None:
        """Folder of the machine code; None: it is not cached."""
        has_source_file = Path(self.py_func.__code__.co_filename).is_file()
        return _code_folder(self._home) if has_source_file else None

    @functools.cached_property
    def kernel(self) -> Callable[..., Any]:
        """The compiled function."""
        with _timed_for_watches():
            numba = _numba()
            function = self.py_func
            kernel = numba.njit(**self.targetoptions)(function)
            if not self.targetoptions["_nrt"]:
                _refuse_owned_arrays(kernel, self.name)
            if self._folder is not None:
                kernel._cache = _cache_in(function, self._folder) or kernel._cache
            return cast(Callable[..., Any], kernel)


@functools.cache
def _numba() -> Any:
    """Import Numba and register `CompiledFunction`, so that compiled code calls its kernel."""
    import numba
    from numba.extending import typeof_impl

    typeof_impl.register(CompiledFunction)(
        lambda function, context: typeof_impl(function.kernel, context)
    )
    _listen()
    return numba


def load_numba() -> None:
    """Load what Numba needs for the first compiled function of a process (0.4 s of CPU time)."""
    _numba().njit(lambda: None)()


def _refuse_owned_arrays(kernel: Any, name: str) -> None:
    """Make the compilation of ``kernel`` fail if the function would own an array.

    A function owns an array that it returns, or that it receives from another compiled function.
    ``kernel`` is compiled without reference counts, which such an array needs.
    """
    compiler = kernel._compiler
    compile_core = compiler._compile_core

    def checked(args: Any, return_type: Any) -> Any:
        try:
            result = compile_core(args, return_type)
        except Exception as error:
            error.add_note(f"a compiled function that makes arrays or lists: {_ALLOCATES}")
            raise
        models = result.target_context.data_model_manager
        annotation = result.type_annotation
        received = [
            signature.return_type
            for call, signature in annotation.calltypes.items()
            if getattr(call, "op", "") == "call"
            and isinstance(annotation.typemap[call.func.name], _numba().types.Dispatcher)
        ]
        for owned_type in (result.signature.return_type, *received):
            if models[owned_type].contains_nrt_meminfo():
                raise TypeError(
                    f"compiled function {name} returns or receives an array that it owns "
                    f"({owned_type}); {_ALLOCATES}"
                )
        return result

    compiler._compile_core = checked


class CompileWatch:
    """Seconds that one thread spends on machine code, and the functions that it compiles.

    Attributes
    ----------
    seconds : float
        Time (s) to import Numba, and to compile, read and write machine code.
    names : list of str
        Compiled functions as ``module.function``, without the functions that these call.
    """

    def __init__(self, on_compile: Callable[[str], None] | None) -> None:
        self.seconds = 0.0
        self.names: list[str] = []
        self._on_compile = on_compile
        self._thread = threading.get_ident()
        self._depth = 0
        self._open_compilations = 0
        self._began = 0.0

    def enter(self) -> None:
        """Start the clock of the watched thread, unless it runs already."""
        if threading.get_ident() == self._thread:
            if self._depth == 0:
                self._began = time.perf_counter()
            self._depth += 1

    def leave(self) -> None:
        """Stop the clock that `enter` started."""
        if threading.get_ident() == self._thread and self._depth:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - self._began

    def compilation_started(self, name: str) -> None:
        """Note the start of the compilation of a function."""
        self.enter()
        if threading.get_ident() == self._thread:
            self._open_compilations += 1
            if self._open_compilations == 1:
                self.names.append(name)
                if self._on_compile is not None:
                    self._on_compile(name)

    def compilation_ended(self) -> None:
        """Note the end of a compilation."""
        if threading.get_ident() == self._thread and self._open_compilations:
            self._open_compilations -= 1
        self.leave()


_watches: list[CompileWatch] = []


@contextlib.contextmanager
def compile_watch(on_compile: Callable[[str], None] | None = None) -> Iterator[CompileWatch]:
    """Count the seconds spent on machine code, separately from the seconds of the work itself.

    Watches nest. Each counts for the thread that made it. The watch itself does not import Numba.

    Parameters
    ----------
    on_compile : callable, optional
        Called with ``module.function`` when the compilation of a function starts. It is not called
        when cached code is read.

    Yields
    ------
    CompileWatch
        Its counts are complete whenever no compiled function is running.

    Examples
    --------
    >>> with compile_watch() as watch:
    ...     _ = sum(range(10))
    >>> watch.seconds, watch.names
    (0.0, [])
    """
    if "numba" in sys.modules:
        _listen()
    watch = CompileWatch(on_compile)
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)


@contextlib.contextmanager
def _timed_for_watches() -> Iterator[None]:
    """Add the seconds of the ``with`` block to all watches."""
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
    """Report every further compilation to the watches; reading cached code is not reported."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc,unused-ignore]
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            for watch in _watches:
                watch.compilation_started(f"{function.__module__}.{function.__qualname__}")

        def on_end(self, event: Any) -> None:
            for watch in _watches:
                watch.compilation_ended()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call,unused-ignore]


def sources(module: str) -> dict[str, Path]:
    """Source file of a module and of every module that it imports, by module name.

    Indirect imports count as well. Modules outside the package of ``module`` and outside ``repro``
    do not count.
    """
    files: dict[str, Path] = {}
    packages = {"repro", module.partition(".")[0]}
    pending = [module]
    while pending:
        name = pending.pop()
        path = _module_file(name)
        # Skip repro.base.compiled itself: its imports cannot change machine code. `_code_folder`
        # adds its text.
        if path is None or name in files or name == __name__:
            continue
        files[name] = path
        imported = _imports(name, path)
        pending += [other for other in imported if other.partition(".")[0] in packages]
    return files


def _module_file(module: str) -> Path | None:
    """File of a module, found without an import; None if there is none."""
    top, *rest = module.split(".")
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None or not rest:
        return Path(file) if file else None
    path = Path(file).parent.joinpath(*rest)
    candidates = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _imports(module: str, path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, except below ``if TYPE_CHECKING``."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    code = _TYPE_CHECKING.sub("", path.read_text(encoding="utf-8"))
    for imported, from_module, names in _IMPORT.findall(code):
        yield from (name.split()[0] for name in imported.split(",") if name)
        if from_module:
            from_module = importlib.util.resolve_name(from_module, package)
            found = re.findall(r"(\w+)(?: +as +\w+)?", names)
            if not found:
                # `import *`, or names that a backslash puts on the next line
                yield from_module
            for name in found:
                submodule = f"{from_module}.{name}"
                yield submodule if _module_file(submodule) else from_module


@functools.cache
def _code_folder(module: str) -> Path | None:
    """Folder for the machine code of a module, or None after a warning."""
    files = {**sources(module), __name__: Path(__file__)}
    numba_version = importlib.metadata.version("numba")
    digest = hashlib.sha256(f"{numba_version} {np.__version__}".encode())
    for name in sorted(files):
        content = files[name].read_bytes()
        digest.update(f"{name}:{len(content)}:".encode() + content)
    if edited := edited_since_start(files.values()):
        _warn_once(f"{_NOT_CACHED}: {edited} changed since this process began; restart the process")
        return None
    override = os.environ.get(ENV_FOLDER)
    top = paths.expanded(override) if override else paths.cache_dir()
    folder = top / "compiled" / digest.hexdigest()[:16]
    is_new = not folder.is_dir()
    try:
        paths.make_private_folder(folder, top, ENV_FOLDER if override else paths.ENV_CACHE)
    except ReproError as error:
        _warn_once(f"{_NOT_CACHED}: {error}")
        return None
    except OSError as error:
        _warn_once(f"{_NOT_CACHED}: {top} ({error.strerror}); {_remedy()}")
        return None
    if is_new:
        paths.remove_unused_folders(folder.parent, KEPT_DAYS * DAY_S, "[0-9a-f]{16}")
    with contextlib.suppress(OSError):
        os.utime(folder)
    return folder


@functools.cache
def _cache_class() -> Any:
    """Cache class of Numba that survives a damaged entry and a full disk.

    A function with a damaged entry is compiled again. An entry that cannot be written is a warning.
    """
    from numba.core.caching import FunctionCache

    class TolerantCache(FunctionCache):  # type: ignore[misc,unused-ignore]
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                with _timed_for_watches():
                    return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call,unused-ignore]
            # Unpickling damaged bytes may raise any exception.
            except Exception:
                with contextlib.suppress(OSError):
                    self.flush()  # type: ignore[no-untyped-call,unused-ignore]
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                with _timed_for_watches():
                    super().save_overload(sig, data)  # type: ignore[no-untyped-call,unused-ignore]
            except OSError as error:
                base = Path(self.cache_path).parent.parent
                _warn_once(f"{_NOT_CACHED}: {base} ({error.strerror}); {_remedy()}")

    return TolerantCache


def _cache_in(function: Callable[..., Any], folder: Path) -> Any:
    """Cache of a function in a folder, or None after a warning."""
    config: Any = _numba().config
    # Numba reads the folder only while it makes the cache.
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        cache = _cache_class()(function)
    except RuntimeError:
        cache = None
    finally:
        config.CACHE_DIR = before
    # Without write access Numba silently uses another folder, where code can be stale.
    if cache is not None and Path(cache.cache_path).is_relative_to(folder):
        return cache
    _warn_once(f"{_NOT_CACHED}: no write access to {folder.parent}; {_remedy()}")
    return None


def _remedy() -> str:
    variable = ENV_FOLDER if os.environ.get(ENV_FOLDER) else paths.ENV_CACHE
    return f"set {variable} to another folder"


@functools.cache
def _warn_once(line: str) -> None:
    """Warn once per message, not once per function."""
    warnings.warn(line, CacheWarning, stacklevel=2)
