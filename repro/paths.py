"""Every folder and every environment override, in one place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from repro.errors import ParamError

ENV_HOME = "REPRO_HOME"
ENV_CACHE = "REPRO_CACHE_DIR"
ENV_MIRROR = "REPRO_TRACE_MIRROR"


def project_root() -> Path:
    """Return the checkout that holds ``notebooks/`` and ``params/``.

    Looked for in ``$REPRO_HOME``, then upwards from the working folder, then beside the package.

    Returns
    -------
    Path
        Absolute path of the checkout.

    Raises
    ------
    ParamError
        If no folder with ``notebooks/`` and ``params/`` is found.

    Examples
    --------
    >>> (project_root() / "params").is_dir()
    True
    """
    override = os.environ.get(ENV_HOME)
    here = Path.cwd().resolve()
    beside = Path(__file__).resolve().parent.parent
    candidates = [here, *here.parents, beside]
    if override:
        candidates = [Path(override).expanduser().resolve()]
    for folder in candidates:
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    raise ParamError(
        f"no project checkout (a folder with notebooks/ and params/) at or above {here}; "
        f"run inside a checkout or set {ENV_HOME} to one"
    )


def notebooks_dir() -> Path:
    """Return ``notebooks/`` of the checkout."""
    return project_root() / "notebooks"


def params_dir() -> Path:
    """Return ``params/`` of the checkout."""
    return project_root() / "params"


def figures_dir() -> Path:
    """Return ``figures/``, the committed paper-profile results."""
    return project_root() / "figures"


def traces_dir() -> Path:
    """Return ``traces/``: the registry of public traces and the calibrated tables."""
    return project_root() / "traces"


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

    Parameters
    ----------
    folder : Path
        Where something is kept.
    top : Path, optional
        The first folder to look at, above ``folder``.
    variable : str
        The environment variable that names another one.

    Returns
    -------
    Path
        ``folder``.

    Raises
    ------
    ParamError
        If others may write to a folder from ``top`` down to ``folder``, or own it. Windows has
        no such permissions, and nothing is refused there.
    OSError
        If a folder cannot be made.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as top:
    ...     private(Path(top) / "mine", Path(top)).stat().st_mode & 0o777 in (0o700, 0o777)
    True
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
