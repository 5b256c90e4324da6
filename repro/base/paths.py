"""Every folder and every environment override, in one place."""

import os
import stat
from pathlib import Path

from repro.base.errors import ParamError

ENV_HOME = "REPRO_HOME"
ENV_CACHE = "REPRO_CACHE_DIR"
ENV_MIRROR = "REPRO_TRACE_MIRROR"

#: Where the code is.
PACKAGE = Path(__file__).resolve().parent.parent


def checkout() -> Path | None:
    """Return the project's checkout, a folder with ``notebooks/`` and ``params/``, if there is one.

    ``$REPRO_HOME``, which must be one, or the first at or above the working folder, or the one
    that the package lies in.
    """
    if override := os.environ.get(ENV_HOME):
        candidates = [Path(override).expanduser().resolve()]
    else:
        here = Path.cwd().resolve()
        candidates = [here, *here.parents, PACKAGE.parent]
    for folder in candidates:
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    if override:
        raise ParamError(_missing(candidates[0]))
    return None


def project_root() -> Path:
    """Return the checkout, or raise a ParamError that tells how to get one."""
    root = checkout()
    if root is None:
        raise ParamError(_missing(Path.cwd()))
    return root


def _missing(folder: Path) -> str:
    return (
        f"no project checkout (a folder with notebooks/ and params/) at or above {folder}; get one "
        f"with `git clone` and run inside it, or set {ENV_HOME} to it"
    )


def _tables(name: str) -> Path:
    """Return where tables are: in an installed package beside its code, else in the checkout."""
    packed = PACKAGE / "tables" / name
    return packed if packed.is_dir() else project_root() / name


def params_dir() -> Path:
    """Return ``params/``: tables of models, prices and curves."""
    return _tables("params")


def figures_dir() -> Path:
    """Return ``figures/``, the committed paper-profile results."""
    return project_root() / "figures"


def traces_dir() -> Path:
    """Return ``traces/``: the registry of public traces and the calibrated tables."""
    return _tables("traces")


def build_dir() -> Path:
    """Return ``build/figures``, where results go unless told otherwise."""
    return project_root() / "build" / "figures"


def cache_dir() -> Path:
    """Return the cache folder: ``$REPRO_CACHE_DIR`` or ``~/.cache/repro``."""
    override = os.environ.get(ENV_CACHE)
    return Path(override).expanduser() if override else Path.home() / ".cache" / "repro"


def private(folder: Path, top: Path | None = None, variable: str = ENV_CACHE) -> Path:
    """Make a folder that only this user may write to, and refuse one that others may write to.

    What is loaded from a cache can run code: whoever may write there runs programs as this user.
    Looked at are the folders from ``top`` down; ``variable`` is the one that names another place.
    Windows has no such permissions, and nothing is refused there.
    """
    top = top or folder
    between = folder.relative_to(top).parts
    for depth in range(len(between) + 1):
        step = top.joinpath(*between[:depth])
        step.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not hasattr(os, "getuid"):
            continue
        status = step.stat()
        mode = stat.S_IMODE(status.st_mode)
        theirs = status.st_uid not in (os.getuid(), 0)
        if theirs or mode & (stat.S_IWGRP | stat.S_IWOTH):
            reason = f"belongs to user {status.st_uid}" if theirs else f"has mode {mode:o}"
            mend = "" if theirs else f"`chmod -R go-w {top}`, or "
            raise ParamError(
                f"cache folder {step}: others can write to it (it {reason}), and what is loaded "
                f"from it can run code; {mend}set {variable} to a folder of your own"
            )
    return folder


def mirror_dir() -> Path | None:
    """Return the off-line mirror ``$REPRO_TRACE_MIRROR`` (``<owner>+<repo>/<path>``) or None."""
    override = os.environ.get(ENV_MIRROR)
    return Path(override).expanduser() if override else None
