"""Guesses of what a file is that is not the expected table: compression, encoding, format."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

#: First bytes of files that are no text.
_MAGIC = {
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PAR1": "a Parquet file",
}
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
    "numreplicas scalefactor gpucapacitynum gpurequest gpusperjob reqgpus numjobs",
    "a start time": "starttime start started scheduledtime begintime",
    "an end time": "endtime end ended finishtime deletiontime completiontime",
}
#: Name of a column -> its meaning.
SENSES = {word: sense for sense, words in _MEANINGS.items() for word in words.split()}
_SWF_FIELDS = 18
_SACCT = ("JobID", "JobIDRaw")
#: Advice about missing columns, in any file and in a trace.
ADD_COLUMNS = "add the missing columns"
ADD_OR_FORMAT = f"{ADD_COLUMNS}, or name the format (--format)"


def packed_as(raw: bytes) -> str | None:
    """Name the packed or binary form of a file by its first bytes."""
    return next((name for magic, name in _MAGIC.items() if raw.startswith(magic)), None)


def encoding_of(raw: bytes) -> str | None:
    """Name the encoding of bytes that are no UTF-8; None if they are no text."""
    start = raw[:4096]
    odd = start[1::2]
    even = start[::2]
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
            return "JSON, not a table; looks like the Philly job log: read it as format philly-json"
        batsim = '"nb_res"' in head and '"jobs"' in head
        named = " (looks like a workload of Batsim)" if batsim else ""
        return f"JSON, not a table{named}; {write}"
    if _is_swf(stripped):
        return (
            "looks like SWF (Standard Workload Format), not a table; from its fields 1, 2, 4 and 8 "
            f"(job, submit, run time, processors) {write}"
        )
    if "|" in first and first.split("|")[0].strip() in _SACCT:
        return f"looks like the output of sacct -P (Slurm), not a table; {write}"
    if re.search(r"^(apiVersion|kind):", stripped[:2000], re.MULTILINE):
        kind = re.search(r"^kind:\s*([A-Za-z]+)", stripped, re.MULTILINE)
        named = f" of kind {kind[1]}" if kind else ""
        return f"looks like a Kubernetes object{named} (YAML), not a table; {write}"
    if re.match(r"(---\s*$|- |[A-Za-z_][\w.-]*:(\s|$))", first):
        return f"looks like YAML, not a table; {write}"
    return None


def _is_swf(text: str) -> bool:
    """Tell whether lines hold the 18 numbers of a job of SWF, below comments with a semicolon."""
    lines = (line.strip() for line in text[:100_000].split("\n"))
    first = next((line for line in lines if line and not line.startswith(";")), "")
    fields = first.split()
    numeric = all(re.fullmatch(r"-?[0-9.]+", field) for field in fields)
    return len(fields) == _SWF_FIELDS and numeric


def renames(
    absent: Sequence[str], present: Collection[str], senses: Mapping[str, str] = SENSES
) -> dict[str, str]:
    """Map missing columns to the present ones that seem to mean the same."""
    free = [name for name in present if name.strip()]
    found: dict[str, str] = {}
    for wanted in absent:
        plain = {name: _plain(name) for name in free if name not in found.values()}
        same = [name for name, word in plain.items() if word == _plain(wanted)]
        sense = senses.get(_plain(wanted))
        alike = [name for name, word in plain.items() if sense and senses.get(word) == sense]
        choices = same or alike or difflib.get_close_matches(wanted, plain, cutoff=0.8)
        if choices:
            found[wanted] = choices[0]
    return found


def rename_hint(absent: Sequence[str], present: Collection[str], advice: str = ADD_COLUMNS) -> str:
    """Say which present columns to rename, and what to do about the other absent ones.

    Parameters
    ----------
    absent : sequence of str
        Columns that the file lacks.
    present : collection of str
        Columns of the file.
    advice : str
        What to do about absent columns that no present column resembles.
    """
    if any(name.lstrip().startswith("#") for name in present):
        return "line 1 is a comment: take it out"
    found = renames(absent, present)
    pairs = [f"{name} looks like {wanted}" for wanted, name in found.items()]
    parts = [f"{', '.join(pairs)}: rename {'it' if len(pairs) == 1 else 'them'}"] if pairs else []
    lacking = {SENSES.get(_plain(name)) for name in absent if name not in found}
    if "a run time" in lacking:
        parts.append("no column of a run time")
    rest = [name for name in absent if name not in found]
    if rest:
        parts.append(advice)
    return "; ".join(parts)


def _plain(name: str) -> str:
    return re.sub(r"[^0-9a-z]", "", name.lower())
