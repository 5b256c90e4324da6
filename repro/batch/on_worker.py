"""Notebooks on dask workers that share no files with the batch: results come back as bytes."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.base import paths
from repro.base.errors import ParamError
from repro.batch.kernel import execute
from repro.batch.plan import scratch_folder
from repro.batch.task import DONE, Outcome, Task
from repro.figures import data, remote, saved
from repro.figures.params import FigureEntry
from repro.figures.progress import ENV_SCHEDULER
from repro.files.whole import remove_file, write_whole

#: Environment variable with a TLS setting of a dask client -> attribute of the worker's security
#: object with the same setting.
_TLS_VARIABLES = {
    "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": "tls_ca_file",
    "DASK_DISTRIBUTED__COMM__TLS__CIPHERS": "tls_ciphers",
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": "tls_worker_cert",
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": "tls_worker_key",
}


@dataclass(frozen=True)
class Returned:
    """What a worker sends back of a notebook: its outcome, and the content of the files."""

    outcome: Outcome
    #: files of the result's folder by name
    files: Mapping[str, bytes]
    #: executed notebook and its page by suffix
    executed: Mapping[str, bytes]


def execute_on_worker(task: Task, session: remote.Session) -> Returned:
    """Run a notebook on a dask worker; its simulations may use all workers, also this one."""
    import distributed

    worker = distributed.get_worker()
    # Otherwise the worker's only thread would wait for simulations that need a thread.
    distributed.secede()
    with (
        remote.using_inputs(session) as inputs,
        tempfile.TemporaryDirectory(prefix=".run-", dir=inputs.parent) as name,
        # The worker's next notebook removes the scratch folders of killed workers.
        scratch_folder() as scratch,
    ):
        here = Path(name)
        # Several notebooks may use the unpacked inputs at the same time. Each runs in a copy of its
        # own, into which it writes. The copy consists of links, which cost no space.
        root = here / paths.SENT_PROJECT
        shutil.copytree(inputs / paths.SENT_PROJECT, root, copy_function=os.link)
        variables = {
            ENV_SCHEDULER: str(worker.scheduler.address),
            paths.ENV_SENT: str(inputs),
            remote.ENV_SESSION: session.as_text(),
            **_tls_variables(worker.security),
        }
        local_task = dataclasses.replace(
            task,
            entry=FigureEntry(task.id, root),
            parameters={**task.parameters, "out": str(root / "build" / "figures")},
            scratch=scratch,
            variables=variables,
        )
        # The worker's next task inherits the context of this call. A separate context keeps the
        # event loop of this notebook out of it.
        return contextvars.Context().run(_executed, local_task, here)


def _executed(task: Task, folder: Path) -> Returned:
    """Run a notebook with the inputs in a folder; read the files that it wrote."""
    with paths.using_sent_inputs(folder):
        outcome = execute(task)
        result_files = {
            path.name: path.read_bytes() for path in task.folder.glob("*") if path.is_file()
        }
        copies = [task.executed_notebook.with_suffix(suffix) for suffix in (".ipynb", ".html")]
        executed = {path.suffix: path.read_bytes() for path in copies if path.is_file()}
    # a variation has its executed notebook in the folder of the result
    for path in copies:
        if path.parent == task.folder:
            result_files.pop(path.name, None)
    return Returned(outcome, result_files, executed)


def _tls_variables(security: Any) -> dict[str, str]:
    """Environment variables with which a client trusts the scheduler that a worker trusts."""
    values = {name: getattr(security, field, None) for name, field in _TLS_VARIABLES.items()}
    return {name: _tls_value(str(value)) for name, value in values.items() if value}


def _tls_value(value: str) -> str:
    """Setting of TLS for a process in another folder: a path becomes absolute."""
    return os.path.abspath(value) if os.path.isfile(value) else value


def write_returned(task: Task, returned: Returned) -> Outcome:
    """Write the files that a worker sent into the folders of the batch; return the outcome."""
    for suffix, content in returned.executed.items():
        write_whole(task.executed_notebook.with_suffix(suffix), content)
    folder = task.folder
    files = dict(returned.files)
    if returned.outcome.status != DONE:
        if saved.ERROR in files:
            write_whole(folder / saved.ERROR, files[saved.ERROR])
        return returned.outcome
    result = json.loads(files.pop(saved.RESULT))
    written = {name: content for name, content in files.items() if name in result["files"]}
    saved.write_files(folder, task.entry.stem, written, result)
    if (picture := f"{task.entry.stem}.png") in files:
        write_whole(folder / picture, files[picture])
    remove_file(folder / saved.ERROR)
    return returned.outcome


def own_files(tasks: Collection[Task]) -> list[Path]:
    """User's files that the inputs of notebooks name, which must lie in the checkout."""
    texts: set[str] = set()
    for task in tasks:
        spec = task.entry.load()
        texts.update(_texts([spec.inputs, spec.profiles, task.parameters]))
    names = [text for text in sorted(texts) if _is_own_file(text)]
    for name in names:
        if paths.expanded(name).is_absolute():
            root = paths.project_root()
            raise ParamError(f"{name}: with --backend dask give a path from {root}, not from /")
    return [remote.checked_own_file(name) for name in names]


def _is_own_file(text: str) -> bool:
    """Whether an input is the path of a user's file."""
    # a text with a null character, or too long for a path, is no file
    with contextlib.suppress(OSError, ValueError):
        return data.is_own(text)
    return False


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in nested lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
