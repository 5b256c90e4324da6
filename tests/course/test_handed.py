"""What students handed in is found whatever it is called, or told; nothing is left out silently."""

from __future__ import annotations

import io
import json
import stat
import zipfile

import pytest
from sheets import answered, cell, notebook, page, tiny, write

from repro.base.errors import ParamError
from repro_course.assignments import LARGEST
from repro_course.handed import submissions

RIGHT = "def service(seconds, gpus):\n    return gpus * seconds\n"


def other():
    """Return a second assignment, whose test is its own."""
    return notebook(
        cell("def half(number):\n    ...", "task-1", solution=True),
        cell("assert half(4) == 2", "test-1", points=1),
    )


@pytest.fixture
def source(tmp_path):
    write(tmp_path / "source/1_tiny.ipynb", tiny())
    write(tmp_path / "source/2_other.ipynb", other())
    write(tmp_path / "source/3_page.ipynb", page())
    return tmp_path / "source"


@pytest.fixture
def found(tmp_path, source):
    """Return a function that writes the files of one student and returns what is found."""

    def find(**files):
        for name, content in files.items():
            path = tmp_path / "in" / "ann" / name
            if isinstance(content, bytes):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            else:
                write(path, content)
        return submissions(tmp_path / "in", source)

    return find


def zipped(**files):
    """Return a zip archive of notebooks by name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return stream.getvalue()


def released():
    """Return the tiny assignment as students get it: without the hidden tests."""
    return answered(
        tiny(),
        task_1=RIGHT,
        test_1=tiny()["cells"][1]["source"].partition("### BEGIN HIDDEN")[0],
    )


@pytest.mark.parametrize(
    "name",
    [
        "1_tiny (1).ipynb",
        "1_tiny_mueller.ipynb",
        "Müller 1-Tiny FINAL.ipynb",
        "mueller_4711_1_tiny-Copy1.ipynb",
        "1_Tiny.IPYNB",
        "1tiny.ipynb",
        "1_tiny.ipynb.txt",
        "week 1/1_tiny.ipynb",
        "a/b/c/1_TINY(2).ipynb",
    ],
)
def test_a_name_that_is_nearly_right(name, found):
    (one,), rest = found(**{name: answered(tiny(), task_1=RIGHT)})
    assert (one.student, one.assignment, one.note) == ("ann", "1_tiny", f"found as {name}")
    assert one.folder.name == "ann" and rest == []


def test_a_right_name_has_no_note(found):
    (one,), rest = found(**{"1_tiny.ipynb": tiny()})
    assert one.note == "" and rest == []


@pytest.mark.parametrize("name", ["homework.ipynb", "Untitled1.ipynb", "11_tiny.ipynb"])
def test_the_cells_of_tests_tell_what_a_name_does_not(name, found):
    (one,), rest = found(**{name: released()})
    assert (one.assignment, one.note) == ("1_tiny", f"found as {name}")
    assert rest == []


def test_an_id_that_one_assignment_alone_has_tells_it(found):
    own = notebook(cell("def twice(number):\n    return 2 * number", "task-2", solution=True))
    (one,), _ = found(**{"homework.ipynb": own})
    assert one.assignment == "1_tiny"


def test_name_and_cells_that_disagree_are_not_graded(found):
    graded, (row,) = found(**{"1_tiny_mueller.ipynb": other()})
    assert graded == [] and row.student == "ann"
    assert "1_tiny_mueller.ipynb" in row.note and "2_other" in row.note


def test_of_two_copies_none_is_guessed(found):
    copies = {"1_tiny (1).ipynb": tiny(), "1_tiny (2).ipynb": answered(tiny(), task_1=RIGHT)}
    graded, (row,) = found(**copies)
    assert graded == [] and (row.student, row.assignment) == ("ann", "1_tiny")
    assert "1_tiny (1).ipynb, 1_tiny (2).ipynb" in row.note


def test_two_equal_copies_are_one(found):
    (one,), rest = found(**{"1_tiny (1).ipynb": tiny(), "1_tiny (2).ipynb": tiny()})
    assert one.assignment == "1_tiny" and rest == []


def test_the_right_name_goes_before_copies_which_are_told(found):
    right = answered(tiny(), task_1=RIGHT)
    (one,), rest = found(**{"1_tiny.ipynb": tiny(), "1_tiny (1).ipynb": right})
    assert one.handed.path.name == "1_tiny.ipynb" and rest == []
    assert one.note == "not graded: 1_tiny (1).ipynb"


def test_what_an_editor_leaves_and_pages_to_read_are_no_submission(found):
    (one,), rest = found(
        **{
            "1_tiny.ipynb": tiny(),
            "3_page.ipynb": page(),
            "3_page (1).ipynb": page(),
            ".ipynb_checkpoints/1_tiny-checkpoint.ipynb": tiny(),
            "__MACOSX/._1_tiny.ipynb": "x",
            "feedback-1.txt": "test-1: fine",
        }
    )
    assert one.assignment == "1_tiny" and one.note == "" and rest == []


def test_nothing_usable_is_told_with_what_there_is(found, tmp_path):
    (tmp_path / "in" / "bob").mkdir(parents=True)
    graded, (ann, bob) = found(**{"notes.pdf": "x", "scratch.ipynb": notebook()})
    assert graded == []
    assert (ann.student, ann.assignment) == ("ann", "")
    assert "scratch.ipynb" in ann.note and "notes.pdf" in ann.note
    assert bob.student == "bob" and "empty" in bob.note


def test_a_page_to_read_alone_is_told(found):
    _, (row,) = found(**{"3_page.ipynb": page()})
    assert row.note == "no notebook of an assignment; found 3_page.ipynb"


def test_many_files_are_told_in_one_short_line(found):
    _, (row,) = found(**{f"{number}.pdf": "x" for number in range(30)})
    assert len(row.note) < 300 and "25 more" in row.note


def test_an_archive_of_a_notebook(found):
    archive = zipped(**{"hand in/1_Tiny.ipynb": tiny(), "__MACOSX/hand in/._1_Tiny.ipynb": "x"})
    (one,), rest = found(**{"Abgabe.ZIP": archive})
    assert (one.assignment, one.note) == ("1_tiny", "found as Abgabe.ZIP/hand in/1_Tiny.ipynb")
    assert one.handed.notebook()["cells"] == tiny()["cells"] and rest == []


def test_an_archive_in_place_of_a_students_folder(found, tmp_path, source):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/bob.zip").write_bytes(zipped(**{"1_tiny.ipynb": tiny()}))
    (one,), rest = submissions(tmp_path / "in", source)
    assert (one.student, one.assignment, rest) == ("bob", "1_tiny", [])
    assert one.folder == tmp_path / "in/bob"


def _locked():
    """Return an archive whose entry is marked as encrypted."""
    plain = bytearray(zipped(**{"1_tiny.ipynb": "{}"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        plain[plain.index(mark) + offset] |= 1
    return bytes(plain)


def _link():
    """Return an archive whose entry is a symbolic link."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        info = zipfile.ZipInfo("1_tiny.ipynb")
        info.create_system = 3
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("archive", "told"),
    [
        (b"no archive", "is no zip archive"),
        (zipped(**{"../../1_tiny.ipynb": tiny()}), "leads out of the archive"),
        (zipped(**{"/1_tiny.ipynb": tiny()}), "leads out of the archive"),
        (zipped(**{"..\\1_tiny.ipynb": tiny()}), "leads out of the archive"),
        (zipped(**{f"{number}.ipynb": "x" for number in range(3000)}), "more than 2,000"),
        (zipped(**{"inner.zip": "x"}), "inner.zip"),
        (_link(), "is a link"),
        (_locked(), "is locked with a password"),
    ],
)
def test_an_archive_that_is_not_opened_is_told(archive, told, found):
    graded, (row,) = found(**{"in.zip": archive})
    assert graded == [] and row.student == "ann"
    assert told in row.note and "in.zip" in row.note


def test_an_archive_that_swells_is_read_no_further_than_a_notebook_may_be_long(found):
    (one,), _ = found(**{"in.zip": zipped(**{"1_tiny.ipynb": " " * (LARGEST + 1)})})
    with pytest.raises(ParamError, match="larger than 20,000,000 bytes"):
        one.handed.notebook()


def test_other_archives_are_named(found):
    _, (row,) = found(**{"mine.rar": "x"})
    assert "mine.rar" in row.note


def test_a_link_is_not_followed(found, tmp_path, source):
    (tmp_path / "in/ann").mkdir(parents=True)
    (tmp_path / "in/ann/week1").symlink_to(source)
    graded, (row,) = found()
    assert graded == [] and "week1 (is a link)" in row.note


def test_a_notebook_outside_of_a_students_folder_is_told(found, tmp_path):
    write(tmp_path / "in/1_tiny_bob.ipynb", tiny())
    (one,), (row,) = found(**{"1_tiny.ipynb": tiny()})
    assert one.student == "ann" and row.student == "1_tiny_bob.ipynb"
    assert "in no student's folder" in row.note


def test_the_layout_of_nbgrader_keeps_its_place_of_feedback(tmp_path, source):
    write(tmp_path / "in/submitted/ann/1_tiny/1_tiny.ipynb", tiny())
    (one,), rest = submissions(tmp_path / "in", source)
    assert one.folder == tmp_path / "in/submitted/ann/1_tiny"
    assert one.note == "" and rest == []


def test_a_folder_without_students(tmp_path, source):
    (tmp_path / "in").mkdir()
    with pytest.raises(ParamError, match=r"no submissions; they are STUDENT/1_tiny.ipynb"):
        submissions(tmp_path / "in", source)
