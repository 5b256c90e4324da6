"""Notebooks that students submitted, under any name, and files that cannot be graded."""

import lzma
import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from repro.base.errors import ParamError
from repro.files.checks import shown
from repro_course.assignments import LARGEST, grade_mark, parse, read, sources, text_of

#: Largest numbers of files and of notebooks of a student that are considered.
MAX_FILES = 2_000
MAX_NOTEBOOKS = 50
#: Largest number of names in a list of a note.
_MAX_LISTED = 5
#: File name of a notebook. Some browsers append another suffix.
_NOTEBOOK = re.compile(r"(?P<stem>.+)\.ipynb(\.(txt|json))?", re.IGNORECASE)
_FEEDBACK = re.compile(r"feedback-\d+\.txt")
_ARCHIVES = frozenset({".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip"})
_HIDDEN_TESTS = re.compile(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", re.DOTALL)
#: Exceptions that a damaged zip archive can cause.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class Handed(NamedTuple):
    """A notebook of a student: a file, or an entry of a zip archive, which is never unpacked."""

    path: Path
    #: path below the student's folder, for notes
    shown: str
    #: name of the entry in the archive at ``path``; None for a file
    entry: str | None = None

    def data(self) -> bytes:
        """Bytes of the notebook; ParamError for a link and for a file too large or damaged."""
        if self.path.is_symlink():
            raise ParamError(f"{self.shown}: is a link and was not opened")
        if not self.path.is_file():
            raise ParamError(f"{self.shown}: is no file")
        try:
            content = self._beginning(LARGEST + 1)
        except _ZIP_ERRORS as error:
            raise ParamError(f"{self.shown}: cannot be unpacked ({error})") from None
        if len(content) > LARGEST:
            raise ParamError(f"{self.shown}: is larger than {LARGEST:,} bytes")
        return content

    def _beginning(self, max_bytes: int) -> bytes:
        """First bytes of the notebook; the size that an archive states is not trusted."""
        if self.entry is None:
            with self.path.open("rb") as stream:
                return stream.read(max_bytes)
        with zipfile.ZipFile(self.path) as archive, archive.open(self.entry) as member:
            return member.read(max_bytes)

    def notebook(self) -> dict[str, Any]:
        """Read the notebook; ParamError if the file is not a notebook."""
        return parse(self.data(), self.shown)


class Submission(NamedTuple):
    """A student's notebook, and the instructor's."""

    student: str
    assignment: str
    handed: Handed
    #: the instructor's notebook
    source: Path
    #: folder for the feedback
    folder: Path
    #: other name of the notebook, and copies that are not graded
    note: str = ""


class Ungraded(NamedTuple):
    """A submitted file that cannot be graded; ``assignment`` is empty if it is unknown."""

    student: str
    assignment: str
    note: str


def submissions(
    folder: Path, source: Path | None = None
) -> tuple[list[Submission], list[Ungraded]]:
    """Find the notebooks below a folder, and the files there that cannot be graded.

    A notebook belongs at ``STUDENT/NAME.ipynb`` or, as with nbgrader, ``STUDENT/NAME/NAME.ipynb``.
    A notebook elsewhere is graded if its name or its cells point to one assignment. Name and cells
    must not contradict each other.

    Parameters
    ----------
    folder : Path
        Holds a folder, or a zip archive, for each student.
    source : Path, optional
        The instructors' notebooks; None: the course's own.

    Returns
    -------
    list of Submission
        By student and assignment.
    list of Ungraded
        Assignments whose copies differ, and one row for all other files of a student.

    Raises
    ------
    ParamError
        There is no folder, or no student in it.
    """
    if not folder.is_dir():
        raise ParamError(f"{folder}: no such folder; give the one with a folder for each student")
    instructors = _InstructorNotebooks(source)
    top = folder / "submitted" if (folder / "submitted").is_dir() else folder
    students: dict[str, _Files] = {}
    loose: list[str] = []
    for path in sorted(top.iterdir()):
        if _is_hidden(path.name):
            continue
        if path.is_dir():
            students.setdefault(path.name, _Files(path)).add_folder(path)
        elif path.suffix.lower() == ".zip":
            student_folder = path.with_suffix("")
            files = students.setdefault(student_folder.name, _Files(student_folder))
            files.add_archive(path, path.name)
        elif _NOTEBOOK.fullmatch(path.name):
            loose.append(path.name)
    if not students:
        hint = f"; found {_listed(loose)} in no student's folder" if loose else ""
        name = next(iter(instructors.graded))
        raise ParamError(f"{folder}: no submissions; they are STUDENT/{name}.ipynb{hint}")
    graded: list[Submission] = []
    ungraded = [Ungraded(name, "", "is in no student's folder; move it into one") for name in loose]
    for student in sorted(students):
        student_graded, student_ungraded = _of_student(student, students[student], instructors)
        graded += student_graded
        ungraded += student_ungraded
    return graded, ungraded


class _Files:
    """Files of a student: notebooks, unopened files with reasons, and all others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebooks: list[Handed] = []
        self.unopened: list[str] = []
        self.others: list[str] = []

    def add_folder(self, top: Path) -> None:
        """Add the files below a folder. Links are not followed."""
        number = 0
        for place, folders, names in os.walk(top, onerror=self._cannot_list):
            here = Path(place)
            # `os.walk` goes on with the folders that are left in this list.
            folders[:] = sorted(name for name in folders if not _is_hidden(name))
            links = [here / name for name in folders if (here / name).is_symlink()]
            self.unopened += [f"{self._shown(link)} (is a link)" for link in links]
            for name in sorted(names):
                number += 1
                if number > MAX_FILES:
                    self.unopened.append(f"the rest of more than {MAX_FILES:,} files")
                    return
                if not _is_hidden(name):
                    self._add_file(here / name)

    def _cannot_list(self, error: OSError) -> None:
        """Note a folder that cannot be listed."""
        self.unopened.append(f"{self._shown(Path(error.filename))} ({error.strerror})")

    def _add_file(self, path: Path) -> None:
        """Add a file or the entries of a zip archive, but no feedback of the grader."""
        if path.suffix.lower() == ".zip":
            self.add_archive(path, self._shown(path))
        elif not _FEEDBACK.fullmatch(path.name):
            self._classify(Handed(path, self._shown(path)))

    def add_archive(self, path: Path, shown: str) -> None:
        """Add the entries of a zip archive."""
        try:
            entries = _entries(path)
        except (ParamError, OSError) as error:
            self.unopened.append(f"{shown} ({error})")
            return
        for entry in entries:
            inner = PurePosixPath(entry.filename.replace("\\", "/"))
            handed = Handed(path, f"{shown}/{inner}", entry.filename)
            if any(_is_hidden(part) for part in inner.parts if part != ".."):
                continue
            if reason := _refusal(entry, inner):
                self.unopened.append(f"{handed.shown} ({reason})")
            else:
                self._classify(handed)

    def _classify(self, handed: Handed) -> None:
        """Add a file to the notebooks, the unopened files or the others."""
        name = PurePosixPath(handed.shown)
        if not _NOTEBOOK.fullmatch(name.name):
            is_archive = name.suffix.lower() in _ARCHIVES
            names = self.unopened if is_archive else self.others
            names.append(handed.shown)
        elif len(self.notebooks) < MAX_NOTEBOOKS:
            self.notebooks.append(handed)
        else:
            self.unopened.append(handed.shown)

    def _shown(self, path: Path) -> str:
        """Path below the student's folder."""
        return path.relative_to(self.folder).as_posix()


def _is_hidden(name: str) -> bool:
    """Whether an editor or an operating system made a file or folder for its own use."""
    return name.startswith(".") or name in ("__MACOSX", "__pycache__")


def _entries(path: Path) -> list[zipfile.ZipInfo]:
    """Files in a zip archive; a ParamError has the reason if the archive is not opened."""
    if path.is_symlink():
        raise ParamError("is a link")
    if path.stat().st_size > LARGEST:
        raise ParamError(f"is larger than {LARGEST:,} bytes")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    except _ZIP_ERRORS:
        raise ParamError("is no zip archive") from None
    if len(entries) > MAX_FILES:
        raise ParamError(f"has more than {MAX_FILES:,} files")
    return entries


def _refusal(entry: zipfile.ZipInfo, inner: PurePosixPath) -> str | None:
    """Reason why an entry of an archive is not opened; None if it is opened."""
    if inner.is_absolute() or ".." in inner.parts:
        return "leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "is a link"
    return "is locked with a password" if entry.flag_bits & 1 else None


class _InstructorNotebooks:
    """The instructors' notebooks, and the words and marks by which a notebook is recognised.

    A mark is an id or the text of a cell, see `_marks`.
    """

    def __init__(self, source: Path | None) -> None:
        self.graded = sources(source)
        paths = sources(source, ungraded=True)
        self._words = {name: _words(name) for name in paths}
        marks = {name: set(_marks(read(path), _is_test)) for name, path in paths.items()}
        holders: dict[tuple[str, str], list[str]] = {}
        for name, notebook_marks in marks.items():
            for mark in notebook_marks:
                holders.setdefault(mark, []).append(name)
        #: name of the notebook that alone has a mark, by mark
        self._holder = {mark: names[0] for mark, names in holders.items() if len(names) == 1}

    def candidates(self, handed: Handed) -> set[str]:
        """Names of the assignments and pages that a notebook may be, by its name and its cells."""
        by_name = self._by_name(handed)
        try:
            marks = set(_marks(handed.notebook(), lambda cell: True))
        except (ParamError, OSError):
            # The name decides. The row of the notebook has the error as a note.
            marks = set()
        by_cells = {self._holder[mark] for mark in marks & self._holder.keys()}
        # Without a common name, both count.
        return (by_name & by_cells) or (by_name | by_cells)

    def _by_name(self, handed: Handed) -> set[str]:
        """Names of notebooks whose words occur in the file name."""
        match = _NOTEBOOK.fullmatch(PurePosixPath(handed.shown).name)
        file_words = _words(match["stem"]) if match else ()
        matching = {
            name: words for name, words in self._words.items() if _contains(file_words, words)
        }
        # Of 1_queues and 1_queues_again only the longer name counts.
        shorter = {
            name
            for name, words in matching.items()
            for other_words in matching.values()
            if words != other_words and _contains(other_words, words)
        }
        return matching.keys() - shorter


def _words(name: str) -> tuple[str, ...]:
    """Words and numbers of a name, without case: ``1_Queues (1)`` is 1, queues, 1."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return tuple(re.findall(r"\d+|[^\W\d_]+", plain))


def _contains(words: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    """Whether the words of a phrase stand side by side among others."""
    starts = range(len(words) - len(phrase) + 1)
    return any(words[start : start + len(phrase)] == phrase for start in starts)


def _is_test(cell: Mapping[str, Any]) -> bool:
    """Whether a cell is graded."""
    return bool(grade_mark(cell).get("grade"))


def _marks(
    notebook: Mapping[str, Any], has_text: Callable[[Mapping[str, Any]], bool]
) -> Iterator[tuple[str, str]]:
    """Yield nbgrader's ids of cells, and the texts of code cells without their hidden tests.

    ``has_text`` selects the cells whose texts count.
    """
    for cell in notebook["cells"]:
        name = grade_mark(cell).get("grade_id")
        if isinstance(name, str):
            yield "id", name
        if cell["cell_type"] == "code" and has_text(cell):
            visible = _HIDDEN_TESTS.sub("", text_of(cell))
            yield "text", " ".join(visible.split())


def _of_student(
    student: str, files: _Files, instructors: _InstructorNotebooks
) -> tuple[list[Submission], list[Ungraded]]:
    """Submissions of a student, and rows for the files that cannot be graded."""
    graded: list[Submission] = []
    ungraded: list[Ungraded] = []
    copies_of, pages, unclear = _by_assignment(files.notebooks, instructors)
    for name, copies in copies_of.items():
        chosen = _chosen(copies, name)
        if chosen is None:
            listed = _listed([handed.shown for handed in copies])
            ungraded.append(Ungraded(student, name, f"may be any of {listed}; keep one"))
            continue
        is_regular = _is_at_its_place(chosen, name)
        notes = [] if is_regular else [f"found as {chosen.shown}"]
        if different := [handed.shown for handed in copies if not _same(handed, chosen)]:
            notes.append(f"not graded: {_listed(different)}")
        folder = chosen.path.parent if is_regular else files.folder
        source = instructors.graded[name]
        graded.append(Submission(student, name, chosen, source, folder, "; ".join(notes)))
    remarks = []
    if unclear:
        remarks.append(f"of no known assignment: {_listed(unclear)}")
    if files.unopened:
        remarks.append(f"not opened: {_listed(files.unopened)}")
    if not graded and not ungraded:
        others = pages + files.others
        if others:
            remarks.append(f"found {_listed(others)}")
        remarks = ["no notebook of an assignment", *(remarks or ["the folder is empty"])]
    if remarks:
        ungraded.append(Ungraded(student, "", "; ".join(remarks)))
    return graded, ungraded


def _by_assignment(
    notebooks: list[Handed], instructors: _InstructorNotebooks
) -> tuple[dict[str, list[Handed]], list[str], list[str]]:
    """Copies of each assignment, pages to read, and notebooks of no or several assignments."""
    copies: dict[str, list[Handed]] = {}
    pages: list[str] = []
    unclear: list[str] = []
    for handed in notebooks:
        names = {name for name in instructors.graded if _is_at_its_place(handed, name)}
        names = names or instructors.candidates(handed)
        if len(names) > 1:
            unclear.append(f"{handed.shown} ({' or '.join(sorted(names))}?)")
        elif not names:
            unclear.append(handed.shown)
        elif (name := names.pop()) in instructors.graded:
            copies.setdefault(name, []).append(handed)
        else:
            pages.append(handed.shown)
    return {name: copies[name] for name in sorted(copies)}, pages, unclear


def _is_at_its_place(handed: Handed, name: str) -> bool:
    """Whether a notebook is where it is expected: by itself, or in nbgrader's folder for it."""
    places = (f"{name}.ipynb", f"{name}/{name}.ipynb")
    return handed.entry is None and handed.shown in places


def _chosen(copies: list[Handed], name: str) -> Handed | None:
    """Copy to grade: one at its place, else any if all are alike, else None."""
    regular = [handed for handed in copies if _is_at_its_place(handed, name)]
    if regular:
        return min(regular, key=lambda handed: handed.shown.count("/"))
    are_alike = all(_same(handed, copies[0]) for handed in copies)
    return copies[0] if are_alike else None


def _same(first: Handed, second: Handed) -> bool:
    """Whether two notebooks are one file, or equal to the last byte."""
    if first is second:
        return True
    try:
        return first.data() == second.data()
    except (ParamError, OSError):
        return False


def _listed(names: list[str]) -> str:
    """First names in one line, and the number of further names."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"{', '.join(map(shown, names[:_MAX_LISTED]))}{more}"
