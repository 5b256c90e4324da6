"""The five papers as works to cite: a row of ``papers.csv`` each."""

import csv
import io
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from repro.base.errors import ParamError
from repro.files.whole import read_small

#: Table of the papers, next to this file.
TABLE = Path(__file__).with_name("papers.csv")
_MOST_BYTES = 2**20


@dataclass(frozen=True)
class Paper:
    """A paper as a work to cite; fields that its publisher does not state are empty."""

    #: folder name of the paper in ``notebooks/``
    paper: str
    #: ``article`` or ``conference-paper``
    type: str
    title: str
    #: ``family, given`` of each author, separated by semicolons
    authors: str
    #: journal, or name of the conference
    venue: str
    volume: str
    issue: str
    #: first page
    start: str
    #: last page
    end: str
    year: str
    doi: str
    url: str

    @property
    def people(self) -> list[tuple[str, str]]:
        """Family name and given names of each author."""
        pairs = (person.split(",", 1) for person in self.authors.split(";"))
        return [(family.strip(), given.strip()) for family, given in pairs]

    @property
    def address(self) -> str:
        """Address of the paper, by DOI where it has one."""
        return f"https://doi.org/{self.doi}" if self.doi else self.url

    @property
    def link_text(self) -> str:
        """Text of a link to the paper: its DOI, or the host of its page."""
        host = urlsplit(self.url).netloc.removeprefix("www.")
        return f"doi:{self.doi}" if self.doi else f"paper at {host}"


def papers() -> list[Paper]:
    """Papers of the table, in its order.

    Raises
    ------
    ParamError
        If the table has other columns than `Paper`, or a row of another length.
    """
    reader = csv.reader(io.StringIO(read_small(TABLE, _MOST_BYTES, ParamError), newline=""))
    columns = [field.name for field in fields(Paper)]
    if next(reader, []) != columns:
        raise ParamError(f"{TABLE}:1: the table of papers has the columns {', '.join(columns)}")
    rows = []
    for row in reader:
        if len(row) != len(columns):
            raise ParamError(f"{TABLE}:{reader.line_num}: {len(row)} cells, not {len(columns)}")
        rows.append(Paper(*row))
    return rows
