"""``repro measure pause``: seconds to launch, save, exit, restore, and to offload GPU memory."""

from __future__ import annotations

from typing import Any

from repro.measure.job_types import JobType
from repro.measure.session import Session
from repro.measure.worker import Worker, WorkerError

REPEATS = 1
_WINDOW_S = 0.5
#: Parts of a launch in pause.csv; the same with ``resume_`` for a resumption.
_LAUNCH = ("spawn_s", "import_s", "cuda_init_s", "build_s", "first_iter_s")


def measure(session: Session) -> int:
    """Append a row per job type to ``pause.csv``; number of new rows."""
    table = session.table("pause.csv")
    runs = [(job, repeat) for repeat in range(REPEATS) for job in session.jobs]
    todo = [(job, repeat) for job, repeat in runs if not table.has(job.name, repeat)]
    for done, (job, repeat) in enumerate(todo):
        if not session.begins(f"pause of {job.name}", done, len(todo)):
            return done
        table.add(_pause(session, job, repeat))
    return len(todo)


def _pause(session: Session, job: JobType, repeat: int) -> dict[str, Any]:
    """Row of a job type; one that cannot run has the error."""
    configuration = session.configuration(job)
    row: dict[str, Any] = {
        "job": job.name,
        "batch_size": configuration.batch_size,
        "optimizer": configuration.optimizer,
        "repeat": repeat,
    }
    checkpoint = session.inputs / f"{job.name}.checkpoint"
    try:
        with Worker(configuration) as worker:
            launch = worker.launch
            row["params_m"] = worker.ask("facts")["params_m"]
            rate = worker.ask("rate", seconds=session.window_s(_WINDOW_S))
            row |= worker.ask("offload")
            row |= worker.ask("save", path=checkpoint)
            row["exit_s"] = worker.stop()
        with Worker(configuration, checkpoint) as worker:
            resumption = worker.launch
    except WorkerError as error:
        return row | {"error": str(error)}
    finally:
        checkpoint.unlink(missing_ok=True)
    row |= {name: launch[name] for name in (*_LAUNCH, "pool_s", "launch_total_s")}
    row |= {f"resume_{name}": resumption[name] for name in _LAUNCH}
    row |= {name: resumption[name] for name in ("resume_read_s", "resume_restore_s")}
    pause_s = sum(row[name] for name in ("save_d2h_s", "save_write_s", "save_fsync_s", "exit_s"))
    return row | {
        "iter_s": 1 / rate["rate"],
        "resume_total_s": resumption["launch_total_s"],
        "pause_resume_total_s": pause_s + resumption["launch_total_s"],
    }
