"""Every folder and every environment override, in one place."""

from __future__ import annotations

import os
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


def mirror_dir() -> Path | None:
    """Return the off-line mirror ``$REPRO_TRACE_MIRROR`` (``<owner>+<repo>/<path>``) or None."""
    override = os.environ.get(ENV_MIRROR)
    return Path(override).expanduser() if override else None
