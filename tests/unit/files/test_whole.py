"""One writer of files: whole or not at all, nothing replaced that is no regular file.

No test writes to a device of the machine: each works on its own copies in a mount of its own.
"""

import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from repro.base.errors import ParamError, ReproError
from repro.files.whole import refuse_binary_name, remove_file, touch, write_whole

HERE = Path(__file__).resolve().parents[3]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.csv"
    write_whole(path, b"old")
    old_umask = os.umask(0)
    os.umask(old_umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~old_umask
    path.chmod(0o600)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == ["a.csv"]


@pytest.mark.parametrize(
    ("name", "text_name"),
    [("a/b.parquet", "a/b.csv"), ("x.XLSX", "x.csv"), ("x.csv.zip", "x.csv")],
)
def test_a_binary_name_is_refused_for_text(name, text_name):
    with pytest.raises(ParamError) as error:
        refuse_binary_name(Path(name), "CSV or SWF")
    ending = Path(name).suffix
    assert str(error.value) == (
        f"{name}: the file will be text (CSV or SWF), not {ending}; choose another ending, such as "
        ".csv"
    )
    refuse_binary_name(Path(text_name))


def test_a_file_named_gz_is_compressed_to_the_same_bytes_each_time(tmp_path):
    first = tmp_path / "a.csv.gz"
    second = tmp_path / "b.csv.GZ"
    write_whole(first, b"1,2\n")
    write_whole(second, b"1,2\n")
    assert gzip.decompress(first.read_bytes()) == b"1,2\n"
    assert first.read_bytes() == second.read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    write_whole(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.files.whole.os.replace", full)
    with pytest.raises(ReproError, match=r"a\.csv: cannot be written \(No space left on device\)"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old" and names(tmp_path) == ["a.csv"]


def test_what_a_killed_write_left_is_removed_by_the_next(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    write_whole(path, b"old")
    child = os.fork()
    if not child:
        monkeypatch.setattr(
            "repro.files.whole.os.replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        )
        write_whole(path, b"new")
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert path.read_bytes() == b"old" and len(names(tmp_path)) == 2
    (tmp_path / ".b.csv-0123456789abcdef").touch()
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == [".b.csv-0123456789abcdef", "a.csv"]


def test_a_write_goes_on_though_another_process_took_its_file_for_a_leftover(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    replace = os.replace
    removed = []

    def without(unfinished, target):
        if len(removed) < 3:
            removed.append(unfinished)
            os.unlink(unfinished)
        replace(unfinished, target)

    monkeypatch.setattr("repro.files.whole.os.replace", without)
    write_whole(path, b"new")
    assert len(set(removed)) == 3
    assert path.read_bytes() == b"new" and names(tmp_path) == ["a.csv"]


def test_a_file_that_cannot_be_removed_or_touched_is_an_error_in_one_line(tmp_path):
    remove_file(tmp_path / "missing")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ReproError, match="folder: cannot be removed"):
        remove_file(tmp_path / "folder")
    with pytest.raises(ReproError, match="missing: cannot be written"):
        touch(tmp_path / "missing")
    (tmp_path / "file").touch()
    remove_file(tmp_path / "file")
    assert names(tmp_path) == ["folder"]


def test_missing_folders_are_made_or_refused(tmp_path):
    path = tmp_path / "new" / "a.csv"
    with pytest.raises(ReproError, match=r"a\.csv: no folder .*new; make it first"):
        write_whole(path, b"x", parents=False)
    assert not path.parent.exists()
    write_whole(path, b"x")
    write_whole(path, b"y", parents=False)
    assert path.read_bytes() == b"y"


def test_a_link_stays_and_the_file_it_leads_to_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "a.csv"
    link = tmp_path / "link.csv"
    link.symlink_to("far/a.csv")
    for content in (b"first", b"second"):  # it leads nowhere at first
        write_whole(link, content, parents=False)
        assert link.is_symlink() and target.read_bytes() == content
    assert names(tmp_path / "far") == ["a.csv"]


def test_a_link_that_leads_back_to_itself_is_an_error_and_stays(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(ReproError, match="loop: cannot be written"):
        write_whole(loop, b"x")
    assert loop.is_symlink() and names(tmp_path) == ["loop"]


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ReproError, match="is a folder; give a file inside it"):
        write_whole(tmp_path, b"x")


def test_a_pipe_gets_everything_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    got = []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    data = b"0123456789" * 50_000
    write_whole(pipe, data)
    reader.join(10)
    assert got == [data] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_this_process_has_open_is_written_where_it_stands(tmp_path):
    log = tmp_path / "log"
    with log.open("wb", buffering=0) as stream:
        stream.write(b"before, ")
        write_whole(Path(f"/dev/fd/{stream.fileno()}"), b"between")
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        write_whole(link, b", too")
        stream.write(b", after")
    assert log.read_bytes() == b"before, between, too, after" and link.is_symlink()


IN_OWN_MOUNT = r"""
mount -t tmpfs none {folder} && cd {folder} || exit 99
printf 'job_id,submit_time,duration,num_gpus\n0,0,60,4\n' >jobs.csv
mknod null c 1 3 && mknod full c 1 7 && mknod disk b 7 250 || exit 99
ln -s null link
for name in null link full disk; do
  {python} -m repro.cli trace convert jobs.csv --format repro --out $name >/dev/null 2>$name.said
  echo "$name $? $(stat -c %F $name) $(tr -d '\n' <$name.said)"
done
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="makes devices, as root only")
def test_the_command_line_replaces_no_device(tmp_path):
    script = IN_OWN_MOUNT.format(folder=tmp_path, python=sys.executable)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env={**os.environ, "REPRO_HOME": str(HERE), "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no mount of its own here: {done.stderr.strip()}")
    assert done.stdout.splitlines() == [
        "null 0 character special file ",
        "link 0 symbolic link ",
        "full 2 character special file "
        "repro: full: cannot be written (No space left on device); check the path",
        "disk 2 block special file repro: disk: is a block device; give a file on it",
    ]
