"""File systems that a forked process mounts for itself: a small disk, a read-only folder."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from processes import fork

_NEW_MOUNTS = 0x20000
_NEW_USER = 0x10000000
_READ_ONLY = 1
_REMOUNT = 32
_BIND = 4096
_PRIVATE = 1 << 14 | 1 << 18


def own_mounts() -> None:
    """Give this process, which has one thread, mounts of its own.

    Raises
    ------
    OSError
        If the system does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    try:
        _call("unshare", _NEW_MOUNTS | _NEW_USER)
    except OSError:
        # without user namespaces, root can have mounts of its own
        _call("unshare", _NEW_MOUNTS)
    else:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount("none", "/", None, _PRIVATE)


def mount_disk(folder: Path, size: int) -> None:
    """Mount an empty file system of ``size`` bytes."""
    _mount("none", str(folder), "tmpfs", 0, f"size={size},mode=700")


def make_read_only(folder: Path) -> None:
    """Let a folder be read-only for this process, also for root."""
    _mount(str(folder), str(folder), None, _BIND)
    _mount(str(folder), str(folder), None, _BIND | _REMOUNT | _READ_ONLY)


@functools.cache
def missing() -> str:
    """Reason why no process can have mounts of its own here; empty if one can."""
    if not hasattr(os, "fork") or not Path("/proc/self/uid_map").exists():
        return "needs mounts of Linux"
    child = fork(own_mounts, Path(os.devnull))
    return "this system gives processes no mounts of their own" if child.wait() else ""


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library; raise its error."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Call mount(2)."""
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    _call("mount", *texts, ctypes.c_ulong(flags), options.encode())
