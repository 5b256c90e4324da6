"""All folders that the package uses, and the environment variables that override them."""

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from repro.base.errors import ParamError

ENV_HOME = "REPRO_HOME"
ENV_CACHE = "REPRO_CACHE_DIR"
ENV_MIRROR = "REPRO_TRACE_MIRROR"
#: Variable with the folder of inputs that were sent to this machine; `repro run` sets it.
ENV_SENT = "REPRO_SENT_INPUTS"

#: Folder of the package ``repro``.
PACKAGE = Path(__file__).resolve().parent.parent

#: Folder of the inputs that were sent to this machine for the work of this thread.
_SENT: ContextVar[Path | None] = ContextVar("sent inputs", default=None)
#: Folders below it: the sent part of the checkout, and the public files.
SENT_PROJECT = "project"
SENT_MIRROR = "mirror"


@contextlib.contextmanager
def using_sent_inputs(folder: Path) -> Iterator[None]:
    """Take checkout, tables and public files from a folder of sent inputs, in this thread."""
    token = _SENT.set(folder)
    try:
        yield
    finally:
        _SENT.reset(token)


def sent_inputs() -> Path | None:
    """Folder of the inputs that were sent to this machine; None if nothing was sent."""
    override = os.environ.get(ENV_SENT)
    return _SENT.get() or (Path(override) if override else None)


def expanded(path: str | Path) -> Path:
    """Path with ``~`` or ``~user`` replaced by the home folder.

    Raises
    ------
    ParamError
        If this home folder is not known.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        home = Path(path).parts[0]
        raise ParamError(f"{path}: there is no home folder {home}; give another path") from None


def checkout() -> Path | None:
    """Project checkout: a folder with ``notebooks/`` and ``params/``; None if there is none.

    Inputs that were sent for the work of this thread come first (`using_sent_inputs`).
    ``$REPRO_HOME``, if set, must be a checkout. Without it, the nearest checkout at or above the
    working folder is taken, or else the parent folder of the package.
    """
    if sent := _SENT.get():
        return sent / SENT_PROJECT
    if override := os.environ.get(ENV_HOME):
        candidates = [expanded(override).resolve()]
    else:
        here = Path.cwd().resolve()
        candidates = [here, *here.parents, PACKAGE.parent]
    for folder in candidates:
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    if override:
        raise ParamError(_no_checkout_message(candidates[0]))
    return None


def project_root() -> Path:
    """Project checkout; ParamError with advice if there is none."""
    root = checkout()
    if root is None:
        raise ParamError(_no_checkout_message(Path.cwd()))
    return root


def _no_checkout_message(folder: Path) -> str:
    """Message for a missing checkout at or above a folder."""
    return (
        f"no project checkout (a folder with notebooks/ and params/) at or above {folder}; get one "
        f"with `git clone` and run inside it, or set {ENV_HOME} to it"
    )


def _table_folder(name: str) -> Path:
    """Folder of tables: in an installed package next to its code, else in the checkout.

    Tables that were sent to this machine come first.
    """
    installed = PACKAGE / "tables" / name
    if sent_inputs() is None and installed.is_dir():
        return installed
    return project_root() / name


def params_dir() -> Path:
    """Folder ``params/``: published numbers (YAML), and tables of models, prices and curves."""
    return _table_folder("params")


def figures_dir() -> Path:
    """Folder ``figures/``: committed results of the figures at the papers' own sizes."""
    return project_root() / "figures"


def traces_dir() -> Path:
    """Folder ``traces/``: registry of public traces, and tables for generated traces."""
    return _table_folder("traces")


def build_dir() -> Path:
    """Folder ``build/figures``, where results are written by default."""
    return project_root() / "build" / "figures"


def cache_dir() -> Path:
    """Cache folder: ``$REPRO_CACHE_DIR`` or ``~/.cache/repro``."""
    override = os.environ.get(ENV_CACHE)
    return expanded(override) if override else Path.home() / ".cache" / "repro"


def make_private_folder(folder: Path, top: Path | None = None, variable: str = ENV_CACHE) -> Path:
    """Make a folder for the files of this user only.

    Files loaded from a cache can run code. Another user with write access to the cache could
    therefore run programs under this user's account. All folders from ``top`` down to ``folder``
    are checked, except on Windows.

    Parameters
    ----------
    folder : Path
        Folder to make.
    top : Path, optional
        First folder to check, at or above ``folder``; by default ``folder``.
    variable : str
        Environment variable that sets the folder, for the advice of the message.

    Raises
    ------
    ParamError
        If another user owns one of the folders or may write to it.
    """
    top = top or folder
    parts_below_top = folder.relative_to(top).parts
    for depth in range(len(parts_below_top) + 1):
        checked = top.joinpath(*parts_below_top[:depth])
        checked.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not hasattr(os, "getuid"):
            continue
        status = checked.stat()
        mode = stat.S_IMODE(status.st_mode)
        is_foreign = status.st_uid not in (os.getuid(), 0)
        if is_foreign or mode & (stat.S_IWGRP | stat.S_IWOTH):
            reason = f"belongs to user {status.st_uid}" if is_foreign else f"has mode {mode:o}"
            remedy = "" if is_foreign else f"`chmod -R go-w {top}`, or "
            raise ParamError(
                f"cache folder {checked}: others can write to it (it {reason}), and files loaded "
                f"from it can run code; {remedy}set {variable} to a folder of your own"
            )
    return folder


def remove_unused_folders(parent: Path, kept_s: float, name: str = ".*") -> None:
    """Remove the folders in ``parent`` that were not used for ``kept_s`` seconds.

    ``name`` is a regular expression: folders whose whole name differs stay.
    """
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            idle_s = time.time() - folder.stat().st_mtime
            if re.fullmatch(name, folder.name) and idle_s > kept_s:
                shutil.rmtree(folder, ignore_errors=True)


def mirror_dir() -> Path | None:
    """Folder ``$REPRO_TRACE_MIRROR`` with copies of public files; None if it is not set.

    Sent inputs have a mirror of their own. A file is at ``<owner>+<repo>/<path>`` below the folder.
    """
    if sent := sent_inputs():
        return sent / SENT_MIRROR
    override = os.environ.get(ENV_MIRROR)
    return expanded(override) if override else None
