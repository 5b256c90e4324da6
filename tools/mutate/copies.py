"""Copies of the checkout, and the processes that run tests in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

#: Settings of processes in a copy. Sums in threads would not come out the same each time.
_SETTINGS = {
    "NUMBA_DISABLE_JIT": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
}


def copy_checkout(root: Path, target: Path) -> None:
    """Copy the files that git tracks or does not ignore, as they are now, and compile them.

    The bytecode files are valid for one content of their source, not for one time of change: a
    mutant may be as long as the source, and written in the same second.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
    words = ["-qq", "--invalidation-mode", "checked-hash", "repro", "tests", "tools", "course"]
    subprocess.run([sys.executable, "-m", "compileall", *words], cwd=target, check=False)


def environment(copy: Path) -> dict[str, str]:
    """Environment of processes in a copy, without the public traces."""
    paths = {
        "PYTHONPATH": os.pathsep.join([str(copy), str(copy / "course")]),
        "REPRO_HOME": str(copy),
        "REPRO_CACHE_DIR": str(copy.with_name(f"{copy.name}-cache")),
    }
    named = {"REPRO_TRACE_MIRROR", "NUMBA_CACHE_DIR", "PYTEST_ADDOPTS"}
    kept = {name: value for name, value in os.environ.items() if name not in named}
    return {**kept, **paths}


class Server:
    """A process of `tools.mutate.server` in a copy; leaving the context ends it.

    Parameters
    ----------
    copy : Path
        Copy of the checkout. No other server may use it.
    """

    def __init__(self, copy: Path) -> None:
        self.copy = copy

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.mutate.server"],
            cwd=self.copy,
            env=environment(self.copy) | _SETTINGS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.communicate()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that runs tests in {self.copy} ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
