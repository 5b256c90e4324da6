"""Fill a registry: import every module of a package, and what installed packages announce."""

from __future__ import annotations

import importlib
import pkgutil
import re
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

from repro.core.registry import Registry

_MACHINERY = ("<frozen importlib", str(Path(importlib.__file__).parent), __file__)


def fill(registry: Registry[Any], package: str, group: str | None = None) -> None:
    """Import the modules of a package, to any depth, and the entry points of a group.

    One that fails is left out with a `BrokenFileWarning`, and the rest goes on.
    """
    faults: dict[str, list[str]] = {}
    _walk(registry, package, faults)
    for point in metadata.entry_points(group=group) if group else ():
        _load(registry, point, faults)
    for fault, names in faults.items():
        registry.leave_out(fault, names)


def _walk(registry: Registry[Any], package: str, faults: dict[str, list[str]]) -> None:
    for folder in importlib.import_module(package).__path__:
        for module in pkgutil.iter_modules([folder]):
            name = f"{package}.{module.name}"
            try:
                if module.ispkg:
                    _walk(registry, name, faults)
                else:
                    importlib.import_module(name)
            # A file may fail in any way, even by leaving the interpreter.
            except (Exception, SystemExit) as error:
                registry.forget(name)
                path = Path(folder) / f"{module.name}.py"
                text = path.read_text(errors="replace") if path.is_file() else ""
                names = re.findall(r"""\bregister\(\s*["']([^"']+)["']""", text)
                faults.setdefault(_place(error, name), []).extend(names)


def _load(
    registry: Registry[Any], point: metadata.EntryPoint, faults: dict[str, list[str]]
) -> None:
    owner = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
    try:
        point.load()
        fault = None if point.name in registry else f"{point.value} registers no {point.name!r}"
    except (Exception, SystemExit) as error:
        registry.forget(point.module)
        fault = _place(error, point.module)
    if fault:
        faults.setdefault(f"{owner}: {fault}", []).append(point.name)


def _place(error: BaseException, module: str) -> str:
    """Return ``file:line: error``, the line being the last one in the folder of the module."""
    frames = [
        (Path(frame.filename), frame.lineno or 1)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_MACHINERY)
        # the backport of importlib.metadata loads entry points where it is installed
        and Path(frame.filename).parent.name != "importlib_metadata"
    ]
    file, line = Path(*module.split(".")).with_suffix(".py"), 1
    for place in frames:
        if place[0].parent == frames[0][0].parent:
            file, line = place
    if isinstance(error, SyntaxError) and error.filename:
        file, line = Path(error.filename), error.lineno or 1
    message = str(error.msg if isinstance(error, SyntaxError) else error).strip().splitlines()
    depth = module.count(".") + (2 if file.stem == "__init__" else 1)
    shown = Path(*file.parts[-depth:])
    return f"{shown}:{line}: {type(error).__name__}: {message[0] if message else ''}".rstrip(": ")
