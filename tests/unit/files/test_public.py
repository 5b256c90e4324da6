from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile

import pytest

from repro.base.errors import DataMissingError, TraceError
from repro.files import public

NAME = "pcs-toy"
DATA = b"app_id,submit_time,service,num_jobs,sleep_time\n0,0,120,4,0\n1,0,80,4,0"


@pytest.fixture
def item():
    return public.entry(NAME)


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No mirror, an empty cache, and a network that answers with ``answer``."""
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))

    class Network:
        answer: bytes | Exception = ConnectionError("no route to host")
        calls = 0

        def __call__(self, url, path):
            self.calls += 1
            if isinstance(self.answer, Exception):
                path.write_bytes(b"half a fi")
                raise self.answer
            path.write_bytes(self.answer)

    network = Network()
    monkeypatch.setattr(public, "_retrieve", network)
    return network


def left_over(folder):
    return [path for path in folder.rglob("*") if path.is_file() or "unfinished" in path.name]


def test_the_registry_is_well_formed():
    assert len(public.entries()) > 150
    for item in public.entries().values():
        assert re.fullmatch(r"[0-9a-f]{40}", item.commit)
        assert re.fullmatch(r"[0-9a-f]{64}", item.sha256)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", item.repository)
        assert re.fullmatch(r"[a-z0-9-]+", item.name)
        assert item.bytes > 0
        assert item.licence
        assert item.description


def test_url_names_commit_and_quotes_the_path():
    item = public.entry("gavel-msr-0e4a51")
    assert item.url.startswith(f"{public.HOST}/stanford-futuredata/gavel/{item.commit}/scheduler/")
    assert item.url.endswith("msr/seed%3D0/0e4a51.trace")


def test_fixture_data_is_the_registered_file(item):
    assert hashlib.sha256(DATA).hexdigest() == item.sha256


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of files")
def test_a_download_leaves_a_cache_folder_that_is_not_refused_later(offline, tmp_path):
    offline.answer = DATA
    before = os.umask(0)
    try:
        public.fetch(NAME)
    finally:
        os.umask(before)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_download_once_then_cache(offline, item, tmp_path):
    offline.answer = DATA
    assert not public.available(NAME)
    path = public.fetch(NAME)
    assert path == tmp_path / "cache" / "traces" / "abdullahfsm+PCS" / item.path
    assert path.read_bytes() == DATA
    assert public.available(NAME)
    assert public.fetch(NAME) == path
    assert offline.calls == 1
    assert left_over(tmp_path) == [path]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (DATA[:-9], f": truncated: {len(DATA) - 9} of {len(DATA)} bytes; check the network"),
        (DATA.replace(b"120", b"121"), ": wrong checksum: sha256 "),
        (DATA + b"\n2,0,1,1,0", ": wrong checksum"),
        (b"<!DOCTYPE html><html><body>Not Found</body></html>", ": an HTML page instead"),
        (b"", ": empty file (expected 69 bytes)"),
        (ConnectionError("no route to host"), "failed (no route to host); check the network"),
        (TimeoutError("timed out\nafter 30 s"), "failed (timed out after 30 s)"),
    ],
)
def test_a_bad_download_leaves_nothing(offline, tmp_path, answer, message):
    offline.answer = answer
    with pytest.raises(DataMissingError) as caught:
        public.fetch(NAME)
    text = str(caught.value)
    assert text.startswith(f"{NAME}: {public.HOST}/abdullahfsm/PCS/")
    assert message in text
    assert "REPRO_TRACE_MIRROR" in text
    assert "\n" not in text
    assert left_over(tmp_path) == []
    assert not public.available(NAME)


def test_network_errors_of_the_downloader_are_caught(offline, tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch")
    requests = pytest.importorskip("requests")
    monkeypatch.undo()
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))

    def refuse(self, url, output_file, pooch, check_only=False):
        raise requests.exceptions.HTTPError("404 Client Error")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", refuse)
    with pytest.raises(DataMissingError, match=r"failed \(404 Client Error\)"):
        public.fetch(NAME)
    assert left_over(tmp_path) == []


def test_damaged_cache_is_downloaded_again(offline):
    offline.answer = DATA
    path = public.fetch(NAME)
    path.write_bytes(DATA[:20])
    assert not public.available(NAME)
    assert public.fetch(NAME).read_bytes() == DATA
    assert offline.calls == 2


def test_folder_in_the_cache(offline, item, tmp_path):
    (tmp_path / "cache" / "traces" / item.relative_path).mkdir(parents=True)
    with pytest.raises(DataMissingError, match="a folder where 'pcs-toy' should be cached"):
        public.fetch(NAME)
    assert not public.available(NAME)


def test_cache_that_cannot_be_made(offline, tmp_path):
    (tmp_path / "cache").write_text("in the way")
    offline.answer = DATA
    with pytest.raises(DataMissingError, match=r"pcs-toy: .* failed"):
        public.fetch(NAME)


def test_mirror_is_first_and_needs_no_network(offline, item, tmp_path, monkeypatch):
    path = tmp_path / "mirror" / "abdullahfsm+PCS" / item.path
    path.parent.mkdir(parents=True)
    path.write_bytes(DATA)
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path / "mirror"))
    assert public.available(NAME)
    assert public.fetch(NAME) == path
    assert offline.calls == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty file"),
        (DATA[:9], "truncated: 9 of 69 bytes"),
        (DATA[::-1], "wrong checksum"),
        (b"<html></html>", "an HTML page"),
        (None, "is a folder, not the file testbed/traces/trace_toy.csv"),
    ],
)
def test_damaged_mirror_is_an_error(offline, item, tmp_path, monkeypatch, content, message):
    path = tmp_path / "mirror" / item.relative_path
    if content is None:
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path / "mirror"))
    assert not public.available(NAME)
    with pytest.raises(DataMissingError, match=message) as caught:
        public.fetch(NAME)
    assert str(path) in str(caught.value)
    assert offline.calls == 0


def test_file_missing_from_the_mirror_is_downloaded(offline, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path / "no mirror"))
    offline.answer = DATA
    assert public.fetch(NAME).read_bytes() == DATA


@pytest.mark.parametrize("call", [public.fetch, public.available, public.entry])
def test_unknown_name(call):
    with pytest.raises(DataMissingError, match=r"'muri-trace5' is not .*did you mean 'muri-trace"):
        call("muri-trace5")


def test_broken_registry(tmp_path, monkeypatch):
    for folder in ("notebooks", "params", "traces"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    with pytest.raises(TraceError, match=r"registry\.csv: the trace registry is missing"):
        public.entries()
    (tmp_path / "traces" / "registry.csv").write_text("name,path\na,b\n")
    with pytest.raises(
        TraceError, match=r"registry\.csv:1: the trace registry has the columns name"
    ):
        public.entries()


REGISTRY = """\
name,repository,commit,path,member,sha256,bytes,format,licence,description
a,o/r,c,p,,s,12,philly,MIT,what
b,o/r,c,p,,s,12,philly,MIT,"what, too"
"""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            REGISTRY.replace("s,12,philly", "s,many,philly", 1),
            ":2: not a valid row",
        ),
        (REGISTRY.replace("s,12,philly", "s,１２,philly", 1), ":2: not a valid row"),
        (REGISTRY.replace("s,12,philly", "s,12,philly,x", 1), ":2: not a valid row"),
        (REGISTRY.rsplit(",", 3)[0] + "\n", ":3: not a valid row"),
        (REGISTRY.replace("b,o/r", "a,o/r"), ":3: not a valid row; give a unique name"),
        (REGISTRY.replace("sha256", "sum"), ":1: the trace registry has the columns name, "),
        ("", ":1: the trace registry has the columns"),
        (REGISTRY + "x" * 200_000 + "\n", ":4: not a readable row (field larger"),
        (REGISTRY.encode() + b"\xff\n", ":4: byte "),
    ],
)
def test_a_damaged_registry_is_one_line(tmp_path, monkeypatch, content, message):
    path = tmp_path / "registry.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    monkeypatch.setattr(public.paths, "traces_dir", lambda: tmp_path)
    with pytest.raises(TraceError) as caught:
        public.entries()
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_a_registry_is_a_regular_file(tmp_path, monkeypatch):
    path = tmp_path / "registry.csv"
    monkeypatch.setattr(public.paths, "traces_dir", lambda: tmp_path)
    path.write_text(REGISTRY + "\n")
    assert public.entries()["b"].description == "what, too"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(TraceError, match="cannot be read"):
        public.entries()


def test_a_pipe_in_the_mirror_is_not_opened(item, tmp_path, monkeypatch):
    path = tmp_path / item.relative_path
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path))
    with pytest.raises(DataMissingError, match="is a pipe or device, not a file; repair"):
        public.fetch(NAME)


@pytest.fixture
def archived(offline, tmp_path, monkeypatch):
    """Registry with a member of an archive, the archive, and a network that has it."""
    raw = b"job_id\n1\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        header = tarfile.TarInfo("one.csv")
        header.size = len(raw)
        archive.addfile(header, io.BytesIO(raw))
    offline.answer = packed.getvalue()
    sums = [hashlib.sha256(content).hexdigest() for content in (packed.getvalue(), raw, b"?")]
    (tmp_path / "registry.csv").write_text(
        REGISTRY.splitlines()[0]
        + f"\nall,o/r,c,d/a.tar.gz,,{sums[0]},{len(packed.getvalue())},archive,MIT,all"
        + f"\none,o/r,c,d/a.tar.gz,one.csv,{sums[1]},{len(raw)},swf,MIT,one"
        + f"\nchanged,o/r,c,d/a.tar.gz,one.csv,{sums[2]},{len(raw)},swf,MIT,one"
        + f"\ntwo,o/r,c,d/a.tar.gz,two.csv,{sums[1]},{len(raw)},swf,MIT,two"
        + f"\nlost,o/r,c,d/b.tar.gz,two.csv,{sums[1]},{len(raw)},swf,MIT,two\n"
    )
    monkeypatch.setattr(public.paths, "traces_dir", lambda: tmp_path)
    return raw


def test_a_member_is_taken_out_of_its_archive_once(archived, offline, tmp_path):
    assert not public.available("one")
    path = public.fetch("one")
    folder = tmp_path / "cache" / "traces" / "o+r" / "d"
    assert path == folder / "a.tar.gz.members" / "one.csv"
    assert path.read_bytes() == archived
    assert public.available("one")
    changed_ns = path.stat().st_mtime_ns
    assert public.fetch("one") == path
    assert path.stat().st_mtime_ns == changed_ns
    assert offline.calls == 1
    assert sorted(left_over(tmp_path / "cache")) == [folder / "a.tar.gz", path]


def test_a_member_comes_from_an_archive_in_the_mirror(archived, offline, tmp_path, monkeypatch):
    mirrored = tmp_path / "mirror" / "o+r" / "d" / "a.tar.gz"
    mirrored.parent.mkdir(parents=True)
    mirrored.write_bytes(offline.answer)
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path / "mirror"))
    assert public.available("one")
    assert public.fetch("one").read_bytes() == archived
    assert offline.calls == 0


def test_a_damaged_member_in_the_mirror_is_not_available(archived, offline, tmp_path, monkeypatch):
    public.fetch("all")
    member = tmp_path / "mirror" / "o+r" / "d" / "a.tar.gz.members" / "one.csv"
    member.parent.mkdir(parents=True)
    member.write_bytes(archived[:3])
    assert public.available("one")
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(tmp_path / "mirror"))
    assert not public.available("one")
    with pytest.raises(DataMissingError, match="truncated: 3 of 9 bytes; repair the mirror"):
        public.fetch("one")


def test_a_folder_in_place_of_a_cached_member_is_not_available(archived, tmp_path):
    archive = public.fetch("all")
    (archive.parent / "a.tar.gz.members" / "one.csv").mkdir(parents=True)
    assert not public.available("one")
    with pytest.raises(DataMissingError, match="a folder where 'one' should be cached"):
        public.fetch("one")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("changed", DataMissingError, "one.csv: wrong checksum"),
        ("two", DataMissingError, "two.csv cannot be taken out"),
        ("lost", TraceError, "no row for d/b.tar.gz"),
    ],
)
def test_a_bad_member_is_one_line_and_leaves_nothing(archived, tmp_path, name, error, message):
    with pytest.raises(error, match=message):
        public.fetch(name)
    assert not list(tmp_path.rglob("*.csv.members/*"))
    assert [path.name for path in left_over(tmp_path / "cache")] in ([], ["a.tar.gz"])
