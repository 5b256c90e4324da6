"""Runs a notebook in its own kernel and writes its executed copy, result or error."""

import contextlib
import json
import logging
import math
import os
import queue
import re
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from repro.base import paths
from repro.base.interpreted import ENV_SECONDS
from repro.batch import warm
from repro.batch.check import INDEX
from repro.batch.notebook_libraries import (
    PapermillExecutionError,
    nbformat,
    papermill,
    papermill_log,
)
from repro.batch.notebook_page import as_page
from repro.batch.task import DONE, FAILED, Outcome, Task
from repro.figures import variation
from repro.figures.notebook import FIGURE_ID
from repro.figures.params import FigureEntry
from repro.figures.progress import ENV_PROGRESS
from repro.figures.saved import (
    ENV_PNG,
    ERROR,
    RESULT,
    checksum,
    confirm,
    read_json,
    to_json,
    verdict_counts,
)
from repro.files.whole import remove_file, write_whole

EXECUTED = "executed.ipynb"
KERNEL_LOG = "kernel.log"
_START_TIMEOUT_S = 60
#: Time to wait for each message about a kernel's state; then the kernel is asked again.
_IDLE_TIMEOUT_S = 0.05
#: Longest path of a connection file; systems allow 104 to 108 letters, a socket adds its number.
_LONGEST_SOCKET_PATH = 90
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
#: A warning of this package in the JSON of an executed notebook.
_WARNING = re.compile(r"(?:BrokenFile|Cache|StandIn)Warning: (.+?)(?:\\n|\",?$)", re.MULTILINE)
#: A warning on a kernel's stderr: its position in the code, its text, the line of code.
_POSITIONED = re.compile(r"^.+?:\d+: (\w+Warning: .*\n)(?:  .*\n)?", re.MULTILINE)
#: A committed picture below a notebook's title.
_PICTURE = re.compile(r"^!\[.*\]\(.*figures/.*\)\n*", re.MULTILINE)


def execute(task: Task) -> Outcome:
    """Run a notebook; write its executed copy and its result or traceback.

    A failure of the notebook or its kernel is an outcome, not an error. A file that cannot be
    written raises ReproError.
    """
    started = time.perf_counter()
    papermill_log.setLevel(logging.ERROR)
    folder = task.folder
    before = _stamp(folder / RESULT)
    digest = checksum((folder / RESULT).read_bytes()) if before else None
    # On another machine the batch's own scratch folder does not exist.
    base = task.scratch if task.scratch.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="nb-", dir=base, ignore_cleanup_errors=True) as name:
        failure = _run_notebook(task, Path(name))
        notebook = _tidied(read_json(Path(name) / EXECUTED), task.entry.root)
    task.progress_file.unlink(missing_ok=True)
    if base is not None and not base.is_dir():
        # The batch was stopped and has killed the kernel; the notebook did not fail.
        return Outcome(task.id, FAILED, error="stopped")
    warnings = _WARNING.findall(notebook.decode(errors="replace"))
    if notebook:
        write_whole(task.executed_notebook, notebook)
        warnings += _write_page(task, notebook)
    if failure is None and _stamp(folder / RESULT) == before:
        argument = FIGURE_ID if FIGURE_ID in task.parameters else repr(task.id)
        line = f"the notebook ended without saving {task.id}; it must call figure({argument})"
        failure = Failure(f"{line} and fig.save(...)", line)
    distinct = tuple(dict.fromkeys(warnings))
    wall = time.perf_counter() - started
    if failure is not None:
        record = {"id": task.id, "error": failure.summary, "cell": failure.cell}
        write_whole(folder / ERROR, to_json({**record, "traceback": failure.traceback}))
        return Outcome(task.id, FAILED, wall, "", failure.summary, failure.cell, distinct)
    result = read_json(folder / RESULT)
    if checksum((folder / RESULT).read_bytes()) == digest:
        # the same result as before, whose files stay as they are
        confirm(folder, task.fingerprint)
    else:
        write_whole(folder / RESULT, to_json({**result, "fingerprint": task.fingerprint}))
    remove_file(folder / ERROR)
    summary = "; ".join(verdict_counts(result.get("claims", [])))
    changed = variation.text(task.changed)
    return Outcome(task.id, DONE, wall, summary, warnings=distinct, variation=changed)


def _write_page(task: Task, notebook: bytes) -> list[str]:
    """Write the HTML page of an executed notebook; return a warning if it cannot be rendered."""
    path = task.executed_notebook.with_suffix(".html")
    try:
        write_whole(path, as_page(notebook, task.id, _gallery(task)))
    # Libraries that do not fit together raise anything; the result must not get lost with the page.
    except Exception as error:
        path.unlink(missing_ok=True)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return [f"no HTML page of {task.id}: nbconvert failed ({text}); its notebook is kept"]
    return []


def _gallery(task: Task) -> str | None:
    """Relative address of the gallery; None for a variation, which has no card."""
    if task.changed:
        return None
    page = Path(task.parameters["out"]) / INDEX
    return Path(os.path.relpath(page, task.executed_notebook.parent)).as_posix()


@dataclass(frozen=True)
class Failure:
    """Failure of a notebook: a line, the whole traceback, the number of the cell that raised."""

    summary: str
    traceback: str
    cell: int | None = None


class PromptClient(AsyncKernelClient):
    """Client that takes a kernel for ready as soon as it has answered and is idle.

    The client of jupyter_client waits another 0.2 s for further messages.
    """

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Wait until the kernel has answered and reported that it is idle.

        Raises
        ------
        RuntimeError
            If the kernel dies, or does not answer within ``timeout`` seconds.
        """
        ends_at = math.inf if timeout is None else time.monotonic() + timeout
        while not await self._answers():
            if not await self.is_alive():
                raise RuntimeError("the kernel died before it answered")
            if time.monotonic() > ends_at:
                raise RuntimeError(f"the kernel did not answer within {timeout} s")

    async def _answers(self) -> bool:
        """Whether the kernel answers a request within a second and then reports that it is idle."""
        request = self.kernel_info()
        try:
            reply = await self.get_shell_msg(timeout=1)
            while reply["parent_header"].get("msg_id") != request:
                reply = await self.get_shell_msg(timeout=1)
            # the idle message comes on the channel of outputs, and shows that it is connected
            state = ""
            while state != "idle":
                message = await self.get_iopub_msg(timeout=_IDLE_TIMEOUT_S)
                if message["parent_header"].get("msg_id") == request:
                    state = message["content"].get("execution_state", "")
        except queue.Empty:
            return False
        self._handle_kernel_info_reply(reply)
        return True


def _run_notebook(task: Task, scratch: Path) -> Failure | None:
    """Run a notebook; return its failure, or None.

    If its kernel dies before the first cell, the notebook runs a second time.
    """
    for attempt in (1, 2):
        try:
            _papermill(task, scratch)
            return None
        except PapermillExecutionError as error:
            lines = _ANSI.sub("", "\n".join(error.traceback))
            return Failure(_one_line(f"{error.ename}: {error.evalue}"), lines, error.exec_count)
        # A dead kernel, a full disk or a broken file fails this notebook, not the batch.
        except Exception as error:
            if attempt == 1 and not _any_cell_ran(scratch / EXECUTED):
                continue
            lines = _ANSI.sub("", "".join(traceback.format_exception_only(error)))
            log = (scratch / KERNEL_LOG).read_text(errors="replace")[-2000:]
            return Failure(_one_line(lines), f"{lines}\n{log}".strip())
    return None


def _papermill(task: Task, scratch: Path) -> None:
    """Run a notebook in its own kernel, whose files are below ``scratch``."""
    with (scratch / KERNEL_LOG).open("ab") as log:

        class Manager(AsyncKernelManager):
            """Kernels of this Python, with the sockets, environment and log of the task."""

            client_factory = PromptClient

            async def start_kernel(self, **kwargs: Any) -> None:  # type: ignore[override]
                self.connection_file = str(scratch / "k.json")
                # Kernels that start at the same time may choose the same TCP port.
                if os.name == "posix" and len(self.connection_file) < _LONGEST_SOCKET_PATH:
                    self.transport = "ipc"
                kwargs.update(env=_environment(task, scratch), stdout=log, stderr=log)
                if warm.available():
                    self.kernel_id = scratch.name
                    self.provisioner = warm.ForkedProvisioner(
                        kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
                    )
                await super().start_kernel(**kwargs)

            @property
            def kernel_spec(self) -> KernelSpec:
                command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
                return KernelSpec(argv=command, display_name="Python 3", language="python")

        papermill.execute_notebook(
            _without_picture(task.entry.notebook),
            scratch / EXECUTED,
            parameters={**task.parameters, "out": _relative(task.entry, task.parameters["out"])},
            kernel_name="python3",
            language="python",
            progress_bar=False,
            start_timeout=_START_TIMEOUT_S,
            kernel_manager_class=Manager,
            shutdown_kernel="immediate",
            # This sets the kernel's folder; papermill's cwd= would set that of this process.
            resources={"metadata": {"path": str(task.entry.notebook.parent)}},
        )


def _tidied(executed: dict[str, Any], root: Path) -> bytes:
    """Tidy an executed notebook: each warning once, no folders of this machine."""
    printed_warnings: set[str] = set()
    for name in ("input_path", "output_path"):
        executed.get("metadata", {}).get("papermill", {}).pop(name, None)
    for cell in executed.get("cells", []):
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                text = _POSITIONED.sub(r"\1", "".join(output["text"]))
                text = text.replace(f"{root}{os.sep}", "")
                output["text"] = []
                for line in text.splitlines(keepends=True):
                    if line not in printed_warnings:
                        output["text"].append(line)
                    if "Warning: " in line:
                        printed_warnings.add(line)
        if "outputs" in cell:
            cell["outputs"] = [output for output in cell["outputs"] if output.get("text") != []]
    if not executed:
        return b""
    return f"{json.dumps(executed, indent=1, ensure_ascii=False)}\n".encode()


def _relative(entry: FigureEntry, out: str) -> str:
    """Path of a results folder from the notebook's folder; absolute if outside the project."""
    inside = Path(out).is_relative_to(entry.root)
    return os.path.relpath(out, entry.notebook.parent) if inside else out


def _without_picture(path: Path) -> Any:
    """Read a notebook without committed pictures, since the run shows a new one."""
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _PICTURE.sub("", cell.source)
    return notebook


def _environment(task: Task, scratch: Path) -> dict[str, str]:
    """Environment variables of a notebook's kernel."""
    path = [str(paths.PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **task.variables,
        **({ENV_PNG: "1"} if task.png else {}),
        **({"LOKY_MAX_CPU_COUNT": str(task.cpus)} if task.cpus else {}),
        **({ENV_SECONDS: str(task.python_s)} if task.python_s is not None else {}),
        "MPLBACKEND": "Agg",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        # A user's start-up files must not change a figure, and parallel kernels must not race for
        # the profile folder.
        "IPYTHONDIR": str(scratch / "ipython"),
        "REPRO_HOME": str(task.entry.root),
        ENV_PROGRESS: str(task.progress_file),
        "PYTHONPATH": os.pathsep.join(path),
    }


def _any_cell_ran(path: Path) -> bool:
    """Whether papermill started a cell of an executed notebook."""
    metadata = [cell.get("metadata", {}) for cell in read_json(path).get("cells", [])]
    return any(entry.get("papermill", {}).get("start_time") for entry in metadata)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Time and inode of a file, which change when it is replaced; None without the file."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_ino
    return None


def _one_line(text: str) -> str:
    """First line of an error, without colours."""
    lines = [line.strip() for line in _ANSI.sub("", text).strip().splitlines()]
    return (lines[0] if lines else "unknown error")[:300]
