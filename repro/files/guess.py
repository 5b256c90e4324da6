"""Guesses of what a file is that is not the expected table: compression, encoding, format."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

#: First bytes of files that are no text.
_MAGIC = {
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PAR1": "a Parquet file",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel workbook (.xls)",
}
#: First bytes of text that is no UTF-8; those of UTF-32 begin with those of UTF-16.
_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_LFS = "version https://git-lfs.github.com/spec/"
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]+")
#: Names that columns of the same meaning have in logs and public traces, letters and digits only.
_MEANINGS = {
    "an id": "jobid id job jobname name appid uuid jobidraw jobkey sn machineid nodename node",
    "a submit time": "submittime submissiontime submittedtime submit submitted arrivaltime arrival "
    "timestamp time creationtime createtime created queuedtime",
    "a run time": "duration runtime running runningtime elapsed elapsedraw servicetime runtimes "
    "durations durationsec walltimeused jobduration",
    "a number of GPUs": "numgpus numgpu gpunum gpus gpu ngpus ngpu gpucount numberofgpus "
    "numreplicas scalefactor gpucapacitynum gpurequest gpusperjob reqgpus",
    "a start time": "starttime start started scheduledtime begintime",
    "an end time": "endtime end ended finishtime deletiontime completiontime",
}
#: Name of a column -> its meaning.
SENSES = {word: sense for sense, words in _MEANINGS.items() for word in words.split()}
_OF_NODES = ("sn", "machineid", "nodename", "node")
#: The same in lists of jobs, where the id of a node is no id of a job.
JOB_SENSES = {word: sense for word, sense in SENSES.items() if word not in _OF_NODES}
#: Unit -> its name in messages, its spellings without the s of a plural, its seconds.
UNITS = {
    "s": ("seconds", ("s", "sec", "second"), 1.0),
    "ms": ("milliseconds", ("ms", "msec", "milli", "millisecond"), 1e-3),
    "us": ("microseconds", ("us", "usec", "micro", "microsecond"), 1e-6),
    "ns": ("nanoseconds", ("ns", "nsec", "nano", "nanosecond"), 1e-9),
    "min": ("minutes", ("min", "minute"), 60.0),
    "h": ("hours", ("h", "hr", "hrs", "hour"), 3600.0),
    "d": ("days", ("d", "day"), 86_400.0),
}
#: Seconds from 1970 to 2001 and to 2100.
_EPOCH_S = (1e9, 4.1e9)
NO_UNITS: Mapping[str, str] = MappingProxyType({})
DATE_EXAMPLE = "2020-06-09 18:00:00"
_LONGEST_NAME = 60
_SHORTEST_PLURAL = 3
#: Least similarity of two words of which one is a slip of the pen.
_ALIKE = 0.8
_PROCESSORS = re.compile("[a-z]?[a-z]pu")
#: Words that mean something of their own, and are no slip of the pen for another.
_OWN = (
    "ps mem memory node core disk worker server task instance user group app job id name model "
    "type time date start end submit wait queue run duration iteration batch size num number "
    "count min max mean avg est estimated limit requested used free total raw state status share "
    "rate"
)
_OWN_WORDS = frozenset(_OWN.split())
_SWF_FIELDS = 18
_GAVEL_FIELDS = (7, 10)
_SACCT = ("JobID", "JobIDRaw")
#: Advice about missing columns, in any file and in a trace.
ADD_COLUMNS = "add the missing columns"
ADD_OR_FORMAT = f"{ADD_COLUMNS}, or name the format (--format; repro trace formats lists them)"


def packed_as(raw: bytes) -> str | None:
    """Name the packed or binary form of a file by its first bytes."""
    return next((name for magic, name in _MAGIC.items() if raw.startswith(magic)), None)


def marked_as(raw: bytes) -> str | None:
    """Name the encoding that the first bytes of a file announce, if it is not UTF-8."""
    return next((name for mark, name in _MARKS.items() if raw.startswith(mark)), None)


def is_lfs_pointer(text: str) -> bool:
    """Tell whether a file is what Git LFS keeps in a repository in place of it."""
    return text.startswith(_LFS)


def encoding_of(raw: bytes) -> str | None:
    """Name the encoding of bytes that are no UTF-8; None if they are no text."""
    start = raw[:4096]
    odd = start[1::2]
    even = start[::2]
    # text of few scripts has three zero bytes in four
    if start.count(0) > 0.7 * len(start):
        return "UTF-32"
    if max(odd.count(0), even.count(0)) > 0.8 * len(odd) > 0:
        return "UTF-16"
    if _CONTROLS.search(raw):
        return None
    # a character of GBK takes two bytes, one of Latin-1 often stands between ASCII letters
    paired = all(len(run) % 2 == 0 for run in _HIGH.findall(raw))
    try:
        raw.decode("gbk")
    except UnicodeDecodeError:
        paired = False
    return "GBK" if paired else "Latin-1"


def other_kind(text: str, required: Sequence[str]) -> str | None:
    """Say what a text that is no table looks like, and what to do with it; None if it is one."""
    columns = ", ".join(required)
    write = f"write a table with the columns {columns}"
    stripped = text.lstrip("\ufeff \t\r\n")
    first = stripped.split("\n", 1)[0].strip()
    if stripped[:1] in ("{", "["):
        head = stripped[:100_000]
        if '"jobid"' in head and '"attempts"' in head:
            return f"JSON, not a table; looks like the Philly job log: {add_format('philly-json')}"
        batsim = '"nb_res"' in head and '"jobs"' in head
        named = " (looks like a workload of Batsim)" if batsim else ""
        lines = " lines" if is_json_lines(stripped) else ""
        return f"JSON{lines}, not a table{named}; {write}"
    if _is_swf(stripped):
        return (
            "looks like SWF (Standard Workload Format), not a table; from its fields 1, 2, 4 and 8 "
            f"(job, submit, run time, processors) {write}"
        )
    if "|" in first and first.split("|")[0].strip() in _SACCT:
        return f"looks like the output of sacct -P (Slurm), not a table; {write}"
    if _is_aligned(stripped):
        return (
            "looks like the output of sacct (Slurm) in columns of fixed width, not a table; call "
            f"it with -P, and {write}"
        )
    if re.search(r"^(apiVersion|kind):", stripped[:2000], re.MULTILINE):
        kind = re.search(r"^kind:\s*([A-Za-z]+)", stripped, re.MULTILINE)
        named = f" of kind {kind[1]}" if kind else ""
        return f"looks like a Kubernetes object{named} (YAML), not a table; {write}"
    if re.match(r"(---\s*$|- |[A-Za-z_][\w.-]*:(\s|$))", first):
        return f"looks like YAML, not a table; {write}"
    return None


def is_json_lines(text: str) -> bool:
    """Tell whether two lines or more hold an object of JSON each."""
    lines = [line.strip() for line in text[:100_000].split("\n") if line.strip()]
    return len(lines) > 1 and all(line[0] == "{" and line[-1] == "}" for line in lines[:2])


def add_format(*names: str) -> str:
    """Say how to name the format of a trace."""
    return " or ".join(f"add --format {name}" for name in names)


def is_gavel(line: str) -> bool:
    """Tell whether a line is a job of Gavel's: 7 or 10 fields between tabs, the sixth a number."""
    fields = line.split("\t")
    return len(fields) in _GAVEL_FIELDS and bool(re.fullmatch(r"-?[0-9.]+", fields[5].strip()))


def _is_aligned(text: str) -> bool:
    """Tell whether a header of sacct stands above lines of hyphens."""
    first, _, rest = text.partition("\n")
    hyphens = rest.partition("\n")[0].split()
    return (
        first.split()[:1] in (["JobID"], ["JobIDRaw"])
        and bool(hyphens)
        and not any(word.strip("-") for word in hyphens)
    )


def _is_swf(text: str) -> bool:
    """Tell whether lines hold the 18 numbers of a job of SWF, below comments with a semicolon."""
    lines = (line.strip() for line in text[:100_000].split("\n"))
    first = next((line for line in lines if line and not line.startswith(";")), "")
    fields = first.split()
    numeric = all(re.fullmatch(r"-?[0-9.]+", field) for field in fields)
    return len(fields) == _SWF_FIELDS and numeric


def renames(
    absent: Sequence[str], present: Collection[str], senses: Mapping[str, str] = JOB_SENSES
) -> dict[str, str]:
    """Map missing columns to the present ones that mean the same, in the same unit.

    Names are alike if they have the same letters and digits, or one meaning in ``senses``, or
    differ by slips of the pen. Other resources, units and qualifiers make another column.

    >>> renames(["num_gpus", "duration"], ["num_cpus", "duratoin"])
    {'duration': 'duratoin'}
    """
    found: dict[str, str] = {}
    for wanted in absent:
        free = [name for name in present if 0 < len(name.strip()) <= _LONGEST_NAME]
        free = [name for name in free if name not in found.values()]
        sense = senses.get(_plain(wanted))
        same = [name for name in free if _plain(name) == _plain(wanted)]
        alike = [name for name in free if sense and senses.get(_plain(name)) == sense]
        slips = [name for name in free if _is_slip(wanted, name)]
        if choices := same or alike or slips:
            found[wanted] = choices[0]
    return found


def rename_hint(
    absent: Sequence[str],
    present: Collection[str],
    advice: str = ADD_COLUMNS,
    units: Mapping[str, str] = NO_UNITS,
) -> str:
    """Say which present columns to rename, and what to do about the other absent ones.

    Parameters
    ----------
    absent : sequence of str
        Columns that the file lacks.
    present : collection of str
        Columns of the file.
    advice : str
        What to do about absent columns that no present column resembles.
    units : mapping of str to str
        Absent columns whose unit is not seconds: ``ms``, or ``date``.
    """
    if any(name.lstrip().startswith("#") for name in present):
        return "line 1 is a comment: take it out"
    found = renames(absent, present)
    pairs = [f"{name} looks like {wanted}" for wanted, name in found.items()]
    parts = [f"{', '.join(pairs)}: rename {'it' if len(pairs) == 1 else 'them'}"] if pairs else []
    left = [name for name in present if name not in found.values()]
    for wanted in absent:
        if wanted in found:
            continue
        measured = _in_unit(wanted, left)
        if measured is None:
            continue
        name, unit = measured
        found[wanted] = name
        left.remove(name)
        change = _conversion(unit, units.get(wanted, "s"))
        if change is None:
            parts.append(f"{name} looks like {wanted}: rename it")
        else:
            named = UNITS[unit][0]
            parts.append(f"{name} looks like {wanted} in {named}: {change} and rename it")
    lacking = {SENSES.get(_plain(name)) for name in absent if name not in found}
    if "a run time" in lacking:
        parts.append("no column of a run time")
    rest = [name for name in absent if name not in found]
    if rest:
        parts.append(advice)
    return "; ".join(parts)


def epoch_unit(value: object) -> str | None:
    """Name the unit in which a number counts from 1970 to a time of the years 2001 to 2100.

    >>> epoch_unit("1600000000000"), epoch_unit(1.6e9), epoch_unit(60)
    ('milliseconds', 'seconds', None)
    """
    try:
        number = float(str(value))
    except ValueError:
        return None
    for name, _, seconds in (UNITS[unit] for unit in ("s", "ms", "us", "ns")):
        if _EPOCH_S[0] <= number * seconds <= _EPOCH_S[1]:
            return name
    return None


def _in_unit(wanted: str, present: Sequence[str]) -> tuple[str, str] | None:
    """Find the column that is a wanted time in a unit that its name ends with."""
    if not _is_time(wanted):
        return None
    stems = {name: _stem(name) for name in present}
    several = {"max", "mean", "avg", "median"}
    for name, (stem, unit) in stems.items():
        if unit is None or not renames([wanted], [stem]):
            continue
        # beside a maximum, min is a minimum
        beside = {words[-1] for other in present if (words := _words(other))}
        if unit == "min" and beside & several:
            continue
        return name, unit
    return None


def _is_time(name: str) -> bool:
    return SENSES.get(_plain(name), "").endswith("time") or "time" in _words(name)


def _stem(name: str) -> tuple[str, str | None]:
    """Split a name into what comes before its unit, and the unit."""
    *words, last = _words(name) or [""]
    unit = next((unit for unit, (_, spellings, _) in UNITS.items() if last in spellings), None)
    return "_".join(words), unit if words else None


def _conversion(unit: str, wanted: str) -> str | None:
    """Say how numbers of one unit become those of another; None if they are the same."""
    if wanted == "date":
        return f"write dates as {DATE_EXAMPLE}"
    factor = UNITS[unit][2] / UNITS[wanted][2]
    if factor == 1:
        return None
    return f"multiply by {factor:.10g}" if factor > 1 else f"divide by {1 / factor:.10g}"


def _is_slip(wanted: str, name: str) -> bool:
    """Tell whether a name is another one with slips of the pen in some of its words."""
    missing = [word for word in _words(wanted) if word not in _words(name)]
    others = [word for word in _words(name) if word not in _words(wanted)]
    if len(missing) != len(others):
        return False
    return all(
        other not in _OWN_WORDS
        and not _PROCESSORS.fullmatch(other)
        and word.isalpha()
        and other.isalpha()
        and difflib.SequenceMatcher(None, word, other).ratio() >= _ALIKE
        for word, other in zip(missing, others, strict=True)
    )


def _words(name: str) -> list[str]:
    """Split a name into words of letters or digits, in lower case, without the s of a plural."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    words = re.findall(r"[a-z]+|[0-9]+", parted.lower())
    return [word.removesuffix("s") if len(word) > _SHORTEST_PLURAL else word for word in words]


def _plain(name: str) -> str:
    return re.sub(r"[^0-9a-z]", "", name.lower())
