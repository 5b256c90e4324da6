"""Guesses about an unexpected file: compression, encoding, format, meaning of its columns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

#: First bytes of binary files.
_MAGIC = {
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PAR1": "a Parquet file",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel workbook (.xls)",
}
#: First bytes of text in UTF-16 and UTF-32. UTF-32 comes first: its bytes begin like UTF-16.
_BYTE_ORDER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_LFS = "version https://git-lfs.github.com/spec/"
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]+")
#: Meaning of a column -> its names in logs and public traces, letters and digits only.
_NAMES_BY_MEANING = {
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
#: Name of a column, letters and digits only -> its meaning.
MEANINGS = {name: meaning for meaning, names in _NAMES_BY_MEANING.items() for name in names.split()}
_NODE_IDS = ("sn", "machineid", "nodename", "node")
#: `MEANINGS` without the ids of nodes, for lists of jobs.
JOB_MEANINGS = {name: meaning for name, meaning in MEANINGS.items() if name not in _NODE_IDS}
#: Unit -> name in messages, spellings in the singular, length (s).
UNITS = {
    "s": ("seconds", ("s", "sec", "second"), 1.0),
    "ms": ("milliseconds", ("ms", "msec", "milli", "millisecond"), 1e-3),
    "us": ("microseconds", ("us", "usec", "micro", "microsecond"), 1e-6),
    "ns": ("nanoseconds", ("ns", "nsec", "nano", "nanosecond"), 1e-9),
    "min": ("minutes", ("min", "minute"), 60.0),
    "h": ("hours", ("h", "hr", "hrs", "hour"), 3600.0),
    "d": ("days", ("d", "day"), 86_400.0),
}
#: Range of numbers that are taken for dates, in seconds since 1970: September 2001 to 2099.
_EPOCH_S = (1e9, 4.1e9)
NO_UNITS: Mapping[str, str] = MappingProxyType({})
DATE_EXAMPLE = "2020-06-09 18:00:00"
_LONGEST_NAME = 60
#: Shortest word (letters) that loses its s; gps and sms keep theirs.
_SHORTEST_PLURAL = 4
#: Least similarity (0 to 1) of a word and its misspelling.
_MIN_SIMILARITY = 0.8
_PROCESSORS = re.compile("[a-z]?[a-z]pu")
#: Words with a meaning of their own, which are never taken for a misspelling.
_TECHNICAL = (
    "ps mem memory node core disk worker server task instance user group app job id name model "
    "type time date start end submit wait queue run duration iteration batch size num number "
    "count min max mean avg est estimated limit requested used free total raw state status share "
    "rate"
)
_TECHNICAL_WORDS = frozenset(_TECHNICAL.split())
_STATISTICS = frozenset({"max", "mean", "avg", "median"})
_SWF_FIELDS = 18
_GAVEL_FIELDS = (7, 10, 12)
_SLURM_IDS = ("JobID", "JobIDRaw")
#: Advice about missing columns: in any file, and in a trace.
ADD_COLUMNS = "add the missing columns"
ADD_OR_FORMAT = f"{ADD_COLUMNS}, or give --format (repro trace formats lists them)"


def binary_format(raw: bytes) -> str | None:
    """Name of a binary or compressed format, by the first bytes of a file; None for others."""
    return next((name for magic, name in _MAGIC.items() if raw.startswith(magic)), None)


def encoding_by_mark(raw: bytes) -> str | None:
    """Name of the encoding UTF-16 or UTF-32, by the byte order mark of a file; None for others."""
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if raw.startswith(mark)), None)


def is_lfs_pointer(text: str) -> bool:
    """Whether a text is the pointer that Git LFS stores in place of a file."""
    return text.startswith(_LFS)


def encoding_of(raw: bytes) -> str | None:
    """Likely encoding of bytes that are not UTF-8; None if they are binary data."""
    start = raw[:4096]
    odd = start[1::2]
    even = start[::2]
    # most text in UTF-32 has three zero bytes in four
    if start.count(0) > 0.7 * len(start):
        return "UTF-32"
    # in most text in UTF-16 every second byte is zero
    most_zeros = max(odd.count(0), even.count(0))
    if odd and most_zeros > 0.8 * len(odd):
        return "UTF-16"
    if _CONTROLS.search(raw):
        return None
    # A character of GBK takes two bytes. A character of Latin-1 often has ASCII neighbours. So the
    # encoding is GBK if the bytes decode as GBK and all runs outside ASCII have an even length.
    is_gbk = all(len(run) % 2 == 0 for run in _HIGH.findall(raw))
    try:
        raw.decode("gbk")
    except UnicodeDecodeError:
        is_gbk = False
    return "GBK" if is_gbk else "Latin-1"


def format_of_text(text: str) -> str | None:
    """Name of the format of a text that is not a table with commas; None for other texts.

    >>> format_of_text("JobID|Submit|State")
    'slurm'
    """
    stripped = _stripped(text)
    first = stripped.split("\n", 1)[0].strip("\r")
    if stripped[:1] in ("{", "["):
        head = stripped[:100_000]
        if '"jobid"' in head and '"attempts"' in head:
            return "philly-json"
        return "batsim" if '"nb_res"' in head and '"jobs"' in head else None
    if _is_swf(stripped):
        return "swf"
    if "|" in first and _has_slurm_id(first):
        return "slurm"
    return "gavel" if is_gavel(first) else None


def _stripped(text: str) -> str:
    """Text without a byte order mark and blank lines in front."""
    return text.lstrip("\ufeff \t\r\n")


def _has_slurm_id(header: str) -> bool:
    """Whether a column between bars has the name of Slurm's job ids."""
    return any(name.strip() in _SLURM_IDS for name in header.split("|"))


def foreign_format(text: str, required: Sequence[str]) -> str | None:
    """Name of the format of a text that is not a table, with a remedy; None for other texts."""
    columns = ", ".join(required)
    advice = f"write a table with the columns {columns}"
    stripped = _stripped(text)
    first = stripped.split("\n", 1)[0].strip()
    format_name = format_of_text(text)
    if stripped[:1] in ("{", "["):
        if format_name == "philly-json":
            return f"JSON, not a table; looks like the Philly job log: {add_format(format_name)}"
        if format_name == "batsim":
            return f"JSON, not a table (looks like a workload of Batsim); {add_format(format_name)}"
        lines = " lines" if is_json_lines(stripped) else ""
        return f"JSON{lines}, not a table; {advice}"
    if format_name == "swf":
        return f"looks like SWF (Standard Workload Format), not a table; {add_format(format_name)}"
    if format_name == "slurm":
        return f"looks like the output of sacct -P (Slurm), not a table; {add_format(format_name)}"
    if _is_aligned(stripped):
        return (
            "looks like the output of sacct (Slurm) in columns of fixed width, not a table; call "
            f"it with -P, and {advice}"
        )
    if re.search(r"^(apiVersion|kind):", stripped[:2000], re.MULTILINE):
        kind = re.search(r"^kind:\s*([A-Za-z]+)", stripped, re.MULTILINE)
        of_kind = f" of kind {kind[1]}" if kind else ""
        return f"looks like a Kubernetes object{of_kind} (YAML), not a table; {advice}"
    if re.match(r"(---\s*$|- |[A-Za-z_][\w.-]*:(\s|$))", first):
        return f"looks like YAML, not a table; {advice}"
    return None


def is_json_lines(text: str) -> bool:
    """Whether a text has at least two lines and each of the first two looks like a JSON object."""
    lines = [line.strip() for line in text[:100_000].split("\n") if line.strip()]
    return len(lines) > 1 and all(line[0] == "{" and line[-1] == "}" for line in lines[:2])


def add_format(*names: str) -> str:
    """Advice to add one of these formats to the command line."""
    return " or ".join(f"add --format {name}" for name in names)


def is_gavel(line: str) -> bool:
    """Whether a line is a job of Gavel: 7, 10 or 12 fields between tabs, the sixth a number."""
    fields = line.split("\t")
    return len(fields) in _GAVEL_FIELDS and bool(re.fullmatch(r"-?[0-9.]+", fields[5].strip()))


def _is_aligned(text: str) -> bool:
    """Whether a text begins with a header of sacct and a line of hyphens."""
    first, _, rest = text.partition("\n")
    hyphens = rest.partition("\n")[0].split()
    return (
        first.split()[:1] in (["JobID"], ["JobIDRaw"])
        and bool(hyphens)
        and not any(word.strip("-") for word in hyphens)
    )


def _is_swf(text: str) -> bool:
    """Whether the first line that is not a comment (``;``) has the 18 numbers of a job in SWF."""
    lines = (line.strip() for line in text[:100_000].split("\n"))
    first = next((line for line in lines if line and not line.startswith(";")), "")
    fields = first.split()
    numeric = all(re.fullmatch(r"-?[0-9.]+", field) for field in fields)
    return len(fields) == _SWF_FIELDS and numeric


def renames(
    absent: Sequence[str], present: Collection[str], meanings: Mapping[str, str] = JOB_MEANINGS
) -> dict[str, str]:
    """Missing column -> present column of the same meaning and unit.

    Two names match if they have the same letters and digits, the same meaning in ``meanings``, or
    differ by a misspelling. Names that differ in resource, unit or qualifier do not match.

    >>> renames(["num_gpus", "duration"], ["num_cpus", "duratoin"])
    {'duration': 'duratoin'}
    """
    renamed: dict[str, str] = {}
    for wanted in absent:
        free = [name for name in present if 0 < len(name.strip()) <= _LONGEST_NAME]
        free = [name for name in free if name not in renamed.values()]
        meaning = meanings.get(_letters(wanted))
        same_letters = [name for name in free if _letters(name) == _letters(wanted)]
        same_meaning = [
            name for name in free if meaning and meanings.get(_letters(name)) == meaning
        ]
        misspelt = [name for name in free if _is_misspelt(wanted, name)]
        if choices := same_letters or same_meaning or misspelt:
            renamed[wanted] = choices[0]
    return renamed


def rename_hint(
    absent: Sequence[str],
    present: Collection[str],
    advice: str = ADD_COLUMNS,
    units: Mapping[str, str] = NO_UNITS,
) -> str:
    """Advice on which present columns to rename, and what to do about other absent columns.

    Parameters
    ----------
    absent : sequence of str
        Columns that the file lacks.
    present : collection of str
        Columns of the file.
    advice : str
        What to do about absent columns that no present column resembles.
    units : mapping of str to str
        Units of absent columns that are not in seconds: ``ms`` or ``date``.
    """
    if any(name.lstrip().startswith("#") for name in present):
        return "line 1 is a comment: take it out"
    renamed = renames(absent, present)
    pairs = [f"{name} looks like {wanted}" for wanted, name in renamed.items()]
    pronoun = "it" if len(pairs) == 1 else "them"
    hints = [f"{', '.join(pairs)}: rename {pronoun}"] if pairs else []
    unmatched = [name for name in present if name not in renamed.values()]
    for wanted in absent:
        if wanted in renamed:
            continue
        match = _in_unit(wanted, unmatched)
        if match is None:
            continue
        name, unit = match
        renamed[wanted] = name
        unmatched.remove(name)
        change = _conversion(unit, units.get(wanted, "s"))
        if change is None:
            hints.append(f"{name} looks like {wanted}: rename it")
        else:
            unit_name = UNITS[unit][0]
            hints.append(f"{name} looks like {wanted} in {unit_name}: {change} and rename it")
    lacking = [name for name in absent if name not in renamed]
    if "a run time" in {MEANINGS.get(_letters(name)) for name in lacking}:
        hints.append("no column name looks like a run time")
    if lacking:
        hints.append(advice)
    return "; ".join(hints)


def renames_with_units(
    absent: Sequence[str], present: Collection[str]
) -> dict[str, tuple[str, str | None]]:
    """Missing column -> present column of the same meaning, and its unit if the name has one.

    >>> renames_with_units(["submit_time", "duration"], ["arrival", "run_time_h"])
    {'submit_time': ('arrival', None), 'duration': ('run_time_h', 'h')}
    """
    renamed: dict[str, tuple[str, str | None]] = {
        wanted: (name, None) for wanted, name in renames(absent, present).items()
    }
    for wanted in absent:
        used = {name for name, _ in renamed.values()}
        unmatched = [name for name in present if name not in used]
        if wanted not in renamed and (match := _in_unit(wanted, unmatched)):
            renamed[wanted] = match
    return renamed


def unit_words(names: Collection[str]) -> set[str]:
    """Units minute and hour that names of columns end with.

    A name with a word such as gpu is no time. Next to a maximum, ``min`` is a minimum.

    >>> sorted(unit_words(["hours", "wait_min", "gpu_hours"]))
    ['h', 'min']
    """
    units = set()
    for name in names:
        *before, last = _name_words(name) or [""]
        unit = next((unit for unit in ("h", "min") if last in UNITS[unit][1]), None)
        if unit is None or any(map(_PROCESSORS.fullmatch, before)) or len(last) == 1:
            continue
        if unit == "min" and _has_statistics(names):
            continue
        units.add(unit)
    return units


def _has_statistics(names: Collection[str]) -> bool:
    """Whether a name ends with a word such as max."""
    return bool(_STATISTICS & {words[-1] for name in names if (words := _name_words(name))})


def epoch_unit(value: object) -> str | None:
    """Name the unit in which a number, counted from 1970, is a date of 2001 to 2099.

    None if there is no such unit.

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
    """Present column named like the wanted time plus a unit (``duration_ms``), and this unit."""
    if not _is_time(wanted):
        return None
    stems = {name: _stem(name) for name in present}
    for name, (stem, unit) in stems.items():
        if unit is None or not renames([wanted], [stem]):
            continue
        # next to a maximum, min is a minimum and not minutes
        if unit == "min" and _has_statistics(present):
            continue
        return name, unit
    return None


def _is_time(name: str) -> bool:
    return MEANINGS.get(_letters(name), "").endswith("time") or "time" in _name_words(name)


def _stem(name: str) -> tuple[str, str | None]:
    """Split a name into its words before the unit, and the unit."""
    *words, last = _name_words(name) or [""]
    unit = next((unit for unit, (_, spellings, _) in UNITS.items() if last in spellings), None)
    return "_".join(words), unit if words else None


def _conversion(unit: str, wanted_unit: str) -> str | None:
    """Advice to convert numbers from one unit to another; None if the units are the same."""
    if wanted_unit == "date":
        return f"write dates as {DATE_EXAMPLE}"
    factor = UNITS[unit][2] / UNITS[wanted_unit][2]
    if factor == 1:
        return None
    return f"multiply by {factor:.10g}" if factor > 1 else f"divide by {1 / factor:.10g}"


def _is_misspelt(wanted: str, name: str) -> bool:
    """Whether a name is the wanted name with misspelt words."""
    missing = [word for word in _name_words(wanted) if word not in _name_words(name)]
    others = [word for word in _name_words(name) if word not in _name_words(wanted)]
    if len(missing) != len(others):
        return False
    return all(map(_is_misspelt_word, missing, others))


def _is_misspelt_word(wanted: str, word: str) -> bool:
    """Whether a word is the wanted word misspelt, and no other word of the field."""
    if word in _TECHNICAL_WORDS or _PROCESSORS.fullmatch(word):
        return False
    if not (wanted.isalpha() and word.isalpha()):
        return False
    return difflib.SequenceMatcher(None, wanted, word).ratio() >= _MIN_SIMILARITY


def _name_words(name: str) -> list[str]:
    """Words of letters or digits in a name, in lower case and in the singular."""
    snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    words = re.findall(r"[a-z]+|[0-9]+", snake_case.lower())
    return [word.removesuffix("s") if len(word) >= _SHORTEST_PLURAL else word for word in words]


def _letters(name: str) -> str:
    """Letters and digits of a name, in lower case."""
    return re.sub(r"[^0-9a-z]", "", name.lower())
