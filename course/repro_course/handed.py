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
from repro_course.assignments import LARGEST, grade_mark, parse, read, sources, text_of

#: What is looked at of one student.
MOST_FILES = 2_000
MOST_NOTEBOOKS = 50
#: Names in one line.
_SHOWN = 5
#: Some browsers put a suffix of their own behind that of a notebook.
_NOTEBOOK = re.compile(r"(?P<stem>.+)\.ipynb(\.(txt|json))?", re.IGNORECASE)
_FEEDBACK = re.compile(r"feedback-\d+\.txt")
_ARCHIVES = frozenset({".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip"})
_HIDDEN_TESTS = re.compile(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", re.DOTALL)
#: What reading a damaged zip archive may raise.
_DAMAGED = (
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
    #: its name seen from the student's folder
    shown: str
    entry: str | None = None

    def data(self) -> bytes:
        """Read its bytes; ParamError for a link and for what is too large or damaged."""
        if self.path.is_symlink():
            raise ParamError(f"{self.shown}: is a link and was not opened")
        if not self.path.is_file():
            raise ParamError(f"{self.shown}: is no file")
        try:
            content = self._beginning(LARGEST + 1)
        except _DAMAGED as error:
            raise ParamError(f"{self.shown}: cannot be unpacked ({error})") from None
        if len(content) > LARGEST:
            raise ParamError(f"{self.shown}: is larger than {LARGEST:,} bytes")
        return content

    def _beginning(self, most: int) -> bytes:
        """Read no more than ``most`` bytes, however many the archive promises."""
        if self.entry is None:
            with self.path.open("rb") as stream:
                return stream.read(most)
        with zipfile.ZipFile(self.path) as archive, archive.open(self.entry) as member:
            return member.read(most)

    def notebook(self) -> dict[str, Any]:
        """Read the notebook; ParamError if it is none."""
        return parse(self.data(), self.shown)


class Submission(NamedTuple):
    """A student's notebook, and the instructor's."""

    student: str
    assignment: str
    handed: Handed
    #: the instructor's notebook
    source: Path
    #: where feedback is written
    folder: Path
    #: under which other name it was found, and which copies were left out
    note: str = ""


class Ungraded(NamedTuple):
    """A submitted file that cannot be graded; ``assignment`` is empty where it is not known."""

    student: str
    assignment: str
    note: str


def submissions(
    folder: Path, source: Path | None = None
) -> tuple[list[Submission], list[Ungraded]]:
    """Find the notebooks below a folder, and the files there that cannot be graded.

    A notebook at its place is ``STUDENT/NAME.ipynb``, or as nbgrader keeps it. A notebook elsewhere
    is graded if its name or its cells point to one assignment and the other does not contradict.

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
    known = _Known(source)
    top = folder / "submitted" if (folder / "submitted").is_dir() else folder
    students: dict[str, _Files] = {}
    loose: list[str] = []
    for path in sorted(top.iterdir()):
        if _is_hidden(path.name):
            continue
        if path.is_dir():
            students.setdefault(path.name, _Files(path)).add_folder(path)
        elif path.suffix.lower() == ".zip":
            own = path.with_suffix("")
            students.setdefault(own.name, _Files(own)).add_archive(path, path.name)
        elif _NOTEBOOK.fullmatch(path.name):
            loose.append(path.name)
    if not students:
        beside = f"; found {_listed(loose)} in no student's folder" if loose else ""
        name = next(iter(known.graded))
        raise ParamError(f"{folder}: no submissions; they are STUDENT/{name}.ipynb{beside}")
    graded: list[Submission] = []
    ungraded = [Ungraded(name, "", "is in no student's folder; move it into one") for name in loose]
    for student in sorted(students):
        own_graded, own_ungraded = _of_student(student, students[student], known)
        graded += own_graded
        ungraded += own_ungraded
    return graded, ungraded


class _Files:
    """The files of one student: notebooks, what was not opened and why, and all others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebooks: list[Handed] = []
        self.unopened: list[str] = []
        self.others: list[str] = []

    def add_folder(self, top: Path) -> None:
        """Look at the files below a folder, but not behind links."""
        number = 0
        for place, folders, names in os.walk(top, onerror=self._cannot_list):
            here = Path(place)
            folders[:] = sorted(name for name in folders if not _is_hidden(name))
            links = [here / name for name in folders if (here / name).is_symlink()]
            self.unopened += [f"{self._shown(link)} (is a link)" for link in links]
            for name in sorted(names):
                number += 1
                if number > MOST_FILES:
                    self.unopened.append(f"the rest of more than {MOST_FILES:,} files")
                    return
                if not _is_hidden(name):
                    self._add_file(here / name)

    def _cannot_list(self, error: OSError) -> None:
        self.unopened.append(f"{self._shown(Path(error.filename))} ({error.strerror})")

    def _add_file(self, path: Path) -> None:
        if path.suffix.lower() == ".zip":
            self.add_archive(path, self._shown(path))
        elif not _FEEDBACK.fullmatch(path.name):
            self._sort(Handed(path, self._shown(path)))

    def add_archive(self, path: Path, shown: str) -> None:
        """Look at the names in a zip archive."""
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
                self._sort(handed)

    def _sort(self, handed: Handed) -> None:
        """File a notebook, an archive within an archive or anything else where it belongs."""
        name = PurePosixPath(handed.shown)
        if not _NOTEBOOK.fullmatch(name.name):
            is_archive = name.suffix.lower() in _ARCHIVES
            (self.unopened if is_archive else self.others).append(handed.shown)
        elif len(self.notebooks) < MOST_NOTEBOOKS:
            self.notebooks.append(handed)
        else:
            self.unopened.append(handed.shown)

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def _is_hidden(name: str) -> bool:
    """Whether an editor or a system made a file or a folder for itself."""
    return name.startswith(".") or name in ("__MACOSX", "__pycache__")


def _entries(path: Path) -> list[zipfile.ZipInfo]:
    """List the files in a zip archive; ParamError says why it is not opened."""
    if path.is_symlink():
        raise ParamError("is a link")
    if path.stat().st_size > LARGEST:
        raise ParamError(f"is larger than {LARGEST:,} bytes")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    except _DAMAGED:
        raise ParamError("is no zip archive") from None
    if len(entries) > MOST_FILES:
        raise ParamError(f"has more than {MOST_FILES:,} files")
    return entries


def _refusal(entry: zipfile.ZipInfo, inner: PurePosixPath) -> str | None:
    """Say why an entry of an archive is not opened, if it is not."""
    if inner.is_absolute() or ".." in inner.parts:
        return "leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "is a link"
    return "is locked with a password" if entry.flag_bits & 1 else None


class _Known:
    """The instructors' notebooks, and what tells them apart."""

    def __init__(self, source: Path | None) -> None:
        self.graded = sources(source)
        everything = sources(source, ungraded=True)
        self._words = {name: _words(name) for name in everything}
        marks = {name: set(_marks(read(path), _is_test)) for name, path in everything.items()}
        holders: dict[tuple[str, str], list[str]] = {}
        for name, own in marks.items():
            for mark in own:
                holders.setdefault(mark, []).append(name)
        #: marks that one notebook alone has -> its name
        self._holder = {mark: names[0] for mark, names in holders.items() if len(names) == 1}

    def candidates(self, handed: Handed) -> set[str]:
        """Name the assignments and pages that a notebook may be, by its name and its cells."""
        by_name = self._by_name(handed)
        try:
            marks = set(_marks(handed.notebook(), lambda cell: True))
        except (ParamError, OSError):
            # graded under its name, it gets a note that says why it cannot be read
            marks = set()
        by_cells = {self._holder[mark] for mark in marks & self._holder.keys()}
        return by_name & by_cells or by_name | by_cells

    def _by_name(self, handed: Handed) -> set[str]:
        match = _NOTEBOOK.fullmatch(PurePosixPath(handed.shown).name)
        given = _words(match["stem"]) if match else ()
        inside = {name: own for name, own in self._words.items() if _contains(given, own)}
        # of 1_queues and 1_queues_again the longer
        shorter = {
            name
            for name, own in inside.items()
            for longer in inside.values()
            if own != longer and _contains(longer, own)
        }
        return inside.keys() - shorter


def _words(name: str) -> tuple[str, ...]:
    """Split a name into words and numbers, without case: ``1_Queues (1)`` is 1, queues, 1."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return tuple(re.findall(r"\d+|[^\W\d_]+", plain))


def _contains(words: tuple[str, ...], part: tuple[str, ...]) -> bool:
    """Whether some words stand together among others."""
    starts = range(len(words) - len(part) + 1)
    return any(words[start : start + len(part)] == part for start in starts)


def _is_test(cell: Mapping[str, Any]) -> bool:
    return bool(grade_mark(cell).get("grade"))


def _marks(
    notebook: Mapping[str, Any], counts: Callable[[Mapping[str, Any]], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the ids that nbgrader gave to cells, and what students see of cells that count."""
    for cell in notebook["cells"]:
        name = grade_mark(cell).get("grade_id")
        if isinstance(name, str):
            yield "id", name
        if cell["cell_type"] == "code" and counts(cell):
            visible = _HIDDEN_TESTS.sub("", text_of(cell))
            yield "text", " ".join(visible.split())


def _of_student(
    student: str, files: _Files, known: _Known
) -> tuple[list[Submission], list[Ungraded]]:
    """Tell the submissions of one student from all else."""
    graded: list[Submission] = []
    ungraded: list[Ungraded] = []
    copies, pages, unclear = _by_assignment(files.notebooks, known)
    for name, found in copies.items():
        chosen = _chosen(found, name)
        left = [handed.shown for handed in found if handed is not chosen]
        if chosen is None:
            ungraded.append(Ungraded(student, name, f"may be any of {_listed(left)}; keep one"))
            continue
        regular = _is_at_its_place(chosen, name)
        notes = [] if regular else [f"found as {chosen.shown}"]
        if different := [handed.shown for handed in found if not _same(handed, chosen)]:
            notes.append(f"not graded: {_listed(different)}")
        folder = chosen.path.parent if regular else files.folder
        source = known.graded[name]
        graded.append(Submission(student, name, chosen, source, folder, "; ".join(notes)))
    pieces = []
    if unclear:
        pieces.append(f"of no known assignment: {_listed(unclear)}")
    if files.unopened:
        pieces.append(f"not opened: {_listed(files.unopened)}")
    if not graded and not ungraded:
        others = pages + files.others
        if others:
            pieces.append(f"found {_listed(others)}")
        pieces = ["no notebook of an assignment", *(pieces or ["the folder is empty"])]
    if pieces:
        ungraded.append(Ungraded(student, "", "; ".join(pieces)))
    return graded, ungraded


def _by_assignment(
    notebooks: list[Handed], known: _Known
) -> tuple[dict[str, list[Handed]], list[str], list[str]]:
    """Sort notebooks by assignment; name pages to read, and what may be none or several."""
    copies: dict[str, list[Handed]] = {}
    pages: list[str] = []
    unclear: list[str] = []
    for handed in notebooks:
        names = {name for name in known.graded if _is_at_its_place(handed, name)}
        names = names or known.candidates(handed)
        if len(names) > 1:
            unclear.append(f"{handed.shown} ({' or '.join(sorted(names))}?)")
        elif not names:
            unclear.append(handed.shown)
        elif (name := names.pop()) in known.graded:
            copies.setdefault(name, []).append(handed)
        else:
            pages.append(handed.shown)
    return {name: copies[name] for name in sorted(copies)}, pages, unclear


def _is_at_its_place(handed: Handed, name: str) -> bool:
    """Whether a notebook is where it is expected: by itself, or as nbgrader keeps it."""
    places = (f"{name}.ipynb", f"{name}/{name}.ipynb")
    return handed.entry is None and handed.shown in places


def _chosen(copies: list[Handed], name: str) -> Handed | None:
    """Copy to grade: one at its place, else any if all are alike, else None."""
    regular = [handed for handed in copies if _is_at_its_place(handed, name)]
    if regular:
        return min(regular, key=lambda handed: handed.shown.count("/"))
    alike = all(_same(handed, copies[0]) for handed in copies)
    return copies[0] if alike else None


def _same(one: Handed, other: Handed) -> bool:
    """Whether two notebooks are the same, or equal to the last byte."""
    if one is other:
        return True
    try:
        return one.data() == other.data()
    except (ParamError, OSError):
        return False


def _listed(names: list[str]) -> str:
    """List the first names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
