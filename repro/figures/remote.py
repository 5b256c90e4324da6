"""Dask workers that share no files with the client: all inputs travel through the scheduler.

A *session* is one batch, or one sweep that was started by hand. The client packs the checkout's
notebooks, tables and available public files into one archive. Each worker unpacks it once, into its
own cache. All names that a session leaves on the scheduler begin with the session's name.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import pickle
import secrets
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from repro.base import paths
from repro.base.errors import ParamError, ReproError
from repro.base.release import edited_since_start
from repro.base.units import DAY_S
from repro.figures.cache import files_hash, key, versions
from repro.files import public

#: Variable with the session of the batch that runs this notebook.
ENV_SESSION = "REPRO_SESSION"
#: Folder of the cache with unpacked inputs.
UNPACKED = "sent"
#: Parts of a checkout that notebooks and simulations read.
_FOLDERS = ("notebooks", "params", "traces")
_FILES = ("constraints.txt",)
#: Unpacked inputs that were not used for this time are removed.
_KEPT_S = 7 * DAY_S
#: Number of traces that a worker keeps unpickled.
_KEPT_TRACES = 4
_unpacking = threading.Lock()


class OtherRelease(ReproError):
    """A worker with other code or libraries than the client."""


def connected(address: str, source: str) -> Any:
    """Client of the dask scheduler at an address; messages begin with ``source``, its option."""
    import distributed

    try:
        return distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise ParamError(
            f"{source}: no dask scheduler answers ({type(error).__name__}); give its address, such "
            "as tcp://host:8786"
        ) from None


def release() -> dict[str, str]:
    """Hash of this package's code, and versions of Python and of the libraries of results."""
    return {"code": _code_hash(), **versions()}


@functools.cache
def _code_hash() -> str:
    """Hash of all Python files of the package."""
    return files_hash(sorted(paths.PACKAGE.rglob("*.py")))


def release_fault(worker: Mapping[str, str], client: Mapping[str, str]) -> str:
    """How the release of a worker differs from the client's, in words; empty if it does not."""
    for name, version in client.items():
        if worker.get(name) != version:
            if name == "code":
                return "its code of repro is not this one"
            return f"it has {name} {worker.get(name, '(none)')}, this client {version}"
    return ""


@dataclass(frozen=True)
class Session:
    """A batch or a sweep on dask workers."""

    #: beginning of all names on the scheduler
    name: str
    #: hash of the archive of inputs
    inputs: str
    #: hash of the client's `release`
    release: str

    def key(self, kind: str, label: str) -> str:
        """Name of a task or a data set on the scheduler."""
        return f"{self.name}-{kind}-{label}"

    def label(self, name: str, kind: str) -> str | None:
        """Label of a name that `key` made for a kind; None for other names."""
        start = self.key(kind, "")
        return name.removeprefix(start) if name.startswith(start) else None

    def as_text(self) -> str:
        """Text for an environment variable."""
        return f"{self.name}/{self.inputs}/{self.release}"


def inherited() -> Session | None:
    """Session of the batch that runs this notebook; None outside such a batch."""
    text = os.environ.get(ENV_SESSION, "")
    return Session(*text.split("/")) if text.count("/") == 2 else None


def checked_own_file(text: str) -> Path:
    """User's file that is to be sent to dask workers.

    Raises
    ------
    ParamError
        If the file is outside the checkout, because only files of the checkout are sent.
    """
    root = paths.project_root()
    # `..` may lead out of the checkout; a link in the checkout is a file of it
    path = Path(os.path.normpath(root / paths.expanded(text)))
    if not path.is_relative_to(root):
        raise ParamError(f"{text}: files for dask workers lie inside {root}; copy the file there")
    return path


def archive(own_files: Iterable[Path] = ()) -> bytes:
    """Archive of everything that notebooks and simulations read; the same inputs, the same bytes.

    Parameters
    ----------
    own_files : iterable of Path
        User's files inside the checkout, also those in hidden folders.
    """
    root = paths.checkout()
    members: dict[str, Path] = {}
    if root is not None:
        found = [path for name in _FOLDERS for path in (root / name).rglob("*")]
        visible = [path for path in found if not _is_hidden(path.relative_to(root))]
        for path in [*visible, *(root / name for name in _FILES), *own_files]:
            if path.is_file():
                members[f"{paths.SENT_PROJECT}/{path.relative_to(root).as_posix()}"] = path
    for name, file in public.entries().items():
        if public.available(name):
            member = f"{paths.SENT_MIRROR}/{file.relative_path.as_posix()}"
            members[member] = public.fetch(name)
    files = []
    for member in sorted(members):
        status = members[member].stat()
        files.append((member, members[member], status.st_mtime_ns, status.st_size))
    return _packed(tuple(files))


def _is_hidden(inside: Path) -> bool:
    """Whether a part of a path inside the checkout begins with a dot."""
    return any(part.startswith(".") for part in inside.parts)


@functools.lru_cache(1)
def _packed(files: tuple[tuple[str, Path, int, int], ...]) -> bytes:
    """Archive of files, given as name in the archive, path, time of the last change and size."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
        for member, path, _, _ in files:
            # an entry made from its name alone has no date
            info = zipfile.ZipInfo(member)
            info.compress_type = zipfile.ZIP_DEFLATED
            zipped.writestr(info, path.read_bytes())
    return content.getvalue()


@contextlib.contextmanager
def opened_session(client: Any, own_files: Iterable[Path] = ()) -> Iterator[Session]:
    """Send the inputs to the scheduler; at the end remove all that the session left there."""
    content = archive(own_files)
    digest = hashlib.sha256(content).hexdigest()
    session = Session(f"repro-{secrets.token_hex(4)}", digest, key(release()))
    client.publish_dataset(content, name=session.key("inputs", digest))
    try:
        yield session
    finally:
        # a scheduler that has ended holds nothing
        with contextlib.suppress(Exception):
            for name in client.list_datasets():
                if str(name).startswith(f"{session.name}-"):
                    client.unpublish_dataset(name)


def publish_trace(client: Any, session: Session, trace: pd.DataFrame) -> str:
    """Send a trace to the scheduler, once for a session; return its name there."""
    content = zlib.compress(pickle.dumps(trace, pickle.HIGHEST_PROTOCOL), 1)
    name = session.key("trace", hashlib.sha256(content).hexdigest())
    # two notebooks that send the same trace at the same time send the same bytes
    if name not in client.list_datasets():
        client.publish_dataset(content, name=name, override=True)
    return name


@functools.lru_cache(_KEPT_TRACES)
def received_trace(name: str) -> pd.DataFrame:
    """Trace that `publish_trace` sent, on a worker."""
    trace: pd.DataFrame = pickle.loads(zlib.decompress(_received(name)))
    return trace


def _received(name: str) -> bytes:
    """Bytes that a client has sent under a name, on a worker."""
    import distributed

    content: bytes = distributed.get_client().get_dataset(name)
    return content


@contextlib.contextmanager
def using_inputs(session: Session) -> Iterator[Path]:
    """Use the inputs of a session in this thread of a worker; yield their folder.

    Raises
    ------
    OtherRelease
        If this worker has other code or libraries than the client.
    """
    edited = edited_since_start(paths.PACKAGE.rglob("*.py"))
    if edited:
        raise OtherRelease(f"{edited} changed since this dask worker began; restart the worker")
    if key(release()) != session.release:
        raise OtherRelease(
            "this dask worker has other code of repro or other libraries than the client; install "
            "the same there and restart it"
        )
    folder = unpacked(session.inputs, lambda: _received(session.key("inputs", session.inputs)))
    with paths.using_sent_inputs(folder):
        yield folder


def unpacked(digest: str, download: Callable[[], bytes]) -> Path:
    """Folder of this machine's cache with the inputs of a hash; unpacks them if it is missing."""
    top = paths.make_private_folder(paths.cache_dir() / UNPACKED, paths.cache_dir())
    folder = top / digest
    with _unpacking:
        if not folder.is_dir():
            content = download()
            if hashlib.sha256(content).hexdigest() != digest:
                raise ReproError(f"the inputs {digest[:12]} arrived damaged; run the batch again")
            with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=top) as name:
                unfinished = Path(name) / digest
                for part in (paths.SENT_PROJECT, paths.SENT_MIRROR):
                    (unfinished / part).mkdir(parents=True)
                with zipfile.ZipFile(io.BytesIO(content)) as zipped:
                    zipped.extractall(unfinished)
                # another worker of this machine may have been faster
                with contextlib.suppress(OSError):
                    os.replace(unfinished, folder)
            paths.remove_unused_folders(top, _KEPT_S)
        os.utime(folder)
        _forget_other_tables(digest)
    return folder


#: Hash of the inputs whose tables this process has read.
_read_inputs: list[str] = []


def _forget_other_tables(digest: str) -> None:
    """Empty the caches of this package's functions if they read tables of other inputs."""
    if _read_inputs and _read_inputs[-1] != digest:
        modules = [module for name, module in sys.modules.items() if name.startswith("repro.")]
        for value in [value for module in modules for value in vars(module).values()]:
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    _read_inputs[:] = [digest]


def local_path(value: Any, root: str) -> Any:
    """A path below the client's checkout ``root`` as the path below this worker's copy of it.

    Other values are returned unchanged.
    """
    here = paths.checkout()
    if here is not None and isinstance(value, str) and value.startswith(f"{root}{os.sep}"):
        return str(here / Path(value).relative_to(root))
    return value


def loss_line(session: Session, event: Mapping[str, Any]) -> str | None:
    """Line on a worker that has left and on what begins again; None if nothing does.

    Parameters
    ----------
    session : Session
        Session whose tasks count.
    event : mapping
        Event of the scheduler's topic ``all``.

    Examples
    --------
    >>> session = Session("repro-1", "", "")
    >>> event = {"action": "remove-worker", "worker": "tcp://a:1", "expected": False}
    >>> event["processing-tasks"] = ["repro-1-simulation-x", "repro-1-notebook-gavel/fig08"]
    >>> loss_line(session, event)
    'worker tcp://a:1 was lost: 1 simulation and gavel/fig08 begin again'
    """
    if event.get("action") != "remove-worker":
        return None
    affected = [*event.get("processing-tasks", ()), *event.get("lost-computed-tasks", ())]
    names = [str(name) for name in affected]
    num_simulations = sum(session.label(name, "simulation") is not None for name in names)
    parts = [f"{num_simulations} simulation{'s' * (num_simulations != 1)}"]
    parts += sorted(filter(None, (session.label(name, "notebook") for name in names)))
    if not num_simulations:
        del parts[0]
    if not parts:
        return None
    verb = "begins" if len(parts) == 1 and num_simulations < 2 else "begin"
    how = "left" if event.get("expected") else "was lost"
    return f"worker {event.get('worker')} {how}: {' and '.join(parts)} {verb} again"
