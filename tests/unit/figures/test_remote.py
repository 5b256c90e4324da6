"""What travels to dask workers, and what a worker does with it; no cluster is started."""

import hashlib

import pytest

from repro.base import paths
from repro.base.errors import DataMissingError, ParamError, ReproError
from repro.batch.on_worker import own_files
from repro.batch.task import Task
from repro.figures import remote, sweep
from repro.figures.params import FigureEntry
from repro.files import public
from repro.testing import small_trace

FIGURE = "tiresias/fig01_one"
JOBS = "job_id,submit_time,duration,num_gpus\n1,0,10,1\n"


@pytest.fixture
def client(project, monkeypatch):
    """Project of a client, used by this process."""
    project.add(FIGURE)
    monkeypatch.setenv(paths.ENV_HOME, str(project.root))
    monkeypatch.setenv(paths.ENV_CACHE, str(project.root / "cache"))
    monkeypatch.delenv(paths.ENV_MIRROR, raising=False)
    return project


def sent(content):
    """Folder with unpacked inputs, in the cache of this process."""
    return remote.unpacked(hashlib.sha256(content).hexdigest(), lambda: content)


def task(client, **parameters):
    return Task(FigureEntry(FIGURE, client.root), parameters, "", client.root)


def test_a_worker_unpacks_what_the_client_packed_and_reads_only_that(client):
    content = remote.archive()
    assert content == remote.archive()
    folder = sent(content)
    parts = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {f"project/notebooks/{FIGURE}.ipynb", f"project/params/{FIGURE}.yaml"} <= parts
    assert paths.project_root() == client.root
    with paths.using_sent_inputs(folder):
        assert paths.project_root() == folder / "project"
        assert paths.traces_dir() == folder / "project" / "traces"
    assert paths.project_root() == client.root
    # a second worker of this machine downloads nothing
    assert remote.unpacked(folder.name, lambda: pytest.fail("downloaded again")) == folder


def test_a_damaged_archive_is_refused(client):
    with pytest.raises(ReproError, match="arrived damaged"):
        remote.unpacked("0" * 64, lambda: b"something else")
    assert not list((client.root / "cache" / remote.UNPACKED).glob("[!.]*"))


def test_available_public_files_travel_and_others_are_not_taken_from_a_workers_cache(
    client, mirror, monkeypatch
):
    name = "gavel-throughputs"
    without = sent(remote.archive())
    monkeypatch.setenv(paths.ENV_MIRROR, str(mirror))
    with_files = sent(remote.archive())
    assert public.available(name)
    with paths.using_sent_inputs(without):
        assert not public.available(name)
        with pytest.raises(DataMissingError, match="not available where the batch was started"):
            public.fetch(name)
    monkeypatch.delenv(paths.ENV_MIRROR)
    with paths.using_sent_inputs(with_files):
        assert public.available(name)
        assert public.fetch(name).is_relative_to(with_files)


def test_a_users_file_travels_if_it_lies_in_the_checkout(client, tmp_path):
    (client.root / "data").mkdir()
    (client.root / "data" / "jobs.csv").write_text(JOBS)
    (file,) = own_files([task(client, trace="data/jobs.csv", profile="quick")])
    folder = sent(remote.archive([file]))
    assert (folder / "project" / "data" / "jobs.csv").read_text() == JOBS
    with paths.using_sent_inputs(folder):
        moved = remote.local_path(str(file), str(client.root))
    assert moved == str(folder / "project" / "data" / "jobs.csv")
    with pytest.raises(ParamError, match="give a path from"):
        own_files([task(client, trace=str(file))])
    outside = tmp_path / "jobs.csv"
    outside.write_text(JOBS)
    with pytest.raises(ParamError, match="copy the file there"):
        own_files([task(client, trace="../jobs.csv")])


def test_a_users_file_below_a_hidden_folder_travels_and_other_hidden_files_do_not(client):
    for folder in (client.root / ".data", client.root / "params" / ".hidden"):
        folder.mkdir()
        (folder / "jobs.csv").write_text(JOBS)
    (file,) = own_files([task(client, trace=".data/jobs.csv", profile="quick")])
    folder = sent(remote.archive([file]))
    assert (folder / "project" / ".data" / "jobs.csv").read_text() == JOBS
    assert not (folder / "project" / "params" / ".hidden").exists()


def test_an_address_without_a_scheduler_is_one_line(client, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setenv("REPRO_SCHEDULER", "foo")
    case = sweep.Case(small_trace(), "1x4", "srtf").resolved()
    with pytest.raises(ParamError, match=r"^REPRO_SCHEDULER=foo: no dask scheduler ") as caught:
        sweep.run([case], workers=1)
    assert "\n" not in str(caught.value)


def test_a_worker_with_other_libraries_or_code_is_named():
    here = remote.release()
    assert remote.release_fault(here, here) == ""
    other = {**here, "numpy": "1.0"}
    assert remote.release_fault(other, here) == f"it has numpy 1.0, this client {here['numpy']}"
    assert "its code of repro" in remote.release_fault({**here, "code": "?"}, here)
    session = remote.Session("repro-1", "0" * 64, "another")
    refused = pytest.raises(remote.OtherRelease, match="other code of repro or other libraries")
    with refused, remote.using_inputs(session):
        pass


@pytest.mark.parametrize(
    ("tasks", "expected", "line"),
    [
        (["simulation-a", "simulation-b"], False, "was lost: 2 simulations begin again"),
        (["simulation-a"], True, "left: 1 simulation begins again"),
        (["notebook-gavel/fig08"], False, "was lost: gavel/fig08 begins again"),
        (
            ["notebook-gavel/fig09", "simulation-a", "notebook-gavel/fig08"],
            False,
            "was lost: 1 simulation and gavel/fig08 and gavel/fig09 begin again",
        ),
    ],
)
def test_the_line_on_a_lost_worker_counts_what_begins_again(tasks, expected, line):
    session = remote.Session("repro-1", "", "")
    event = {
        "action": "remove-worker",
        "worker": "tcp://a:1",
        "expected": expected,
        "processing-tasks": [f"repro-1-{name}" for name in tasks],
        "lost-computed-tasks": ["repro-2-simulation-x"],
    }
    assert remote.loss_line(session, event) == f"worker tcp://a:1 {line}"
    assert remote.loss_line(remote.Session("repro-3", "", ""), event) is None
    assert remote.loss_line(session, {**event, "action": "add-worker"}) is None
