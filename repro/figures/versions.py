"""Versions of Python, the package and the libraries that can move a result."""

from __future__ import annotations

import functools
import importlib.metadata
import platform

from repro.release import VERSION

#: Libraries whose version can move a number or a line of a picture, those that are installed.
RECORDED = (
    *("ecos", "kiwisolver", "matplotlib", "networkx", "numba", "numpy", "pandas", "pillow"),
    *("rustworkx", "scipy", "simpy"),
)


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries results depend on."""
    found = {"python": platform.python_version(), "repro": VERSION}
    for name in RECORDED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
