"""Cards of the gallery: short name, kinds, data, seeds and numbers of each figure."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from repro.batch.check import StoredFigure
from repro.batch.papers import Paper, papers
from repro.figures import data
from repro.figures.claims import OUTCOMES
from repro.figures.points import FLAGS, NOTES, is_counted
from repro.figures.saved import paper_name, seeds_text
from repro.figures.tolerance import flat, is_number

#: Part of a paper at the start of a reference: ``Fig 8``, ``sections 5.2 and 5.3``.
_PAPER_PART = re.compile(
    r"(Fig|Table|Eq|Pseudocode|Algorithm|Appendix|[Ss]ection)s? [\w.]+"
    r"(?:(?:,| and| to) \d[\w.]*)*"
)
_KINDS = {"Fig": "figure", "Table": "table", "Pseudocode": "algorithm", "Algorithm": "algorithm"}
_BEYOND = "beyond the paper"
_NO_PAPER = "no figure of a paper"
_MEASURED = "measured"
#: Folder of our own measurements.
_MEASUREMENTS = "traces/measured/"
#: Words in the reference of a figure of ours. The paper has no such figure.
_NOT_PRINTED = re.compile(rf"no figure|{_BEYOND}")
_DATA = {data.PUBLIC: "public", data.OWN: "own file", data.STAND_IN: "stand-in"}
#: Size of an SVG of matplotlib, typographic points.
_SVG_SIZE = re.compile(rb'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"')
#: Pixels per typographic point of a picture's stated size.
_PIXELS_PER_POINT = 200 / 72
#: Font size in an SVG of matplotlib, typographic points.
_FONT_SIZE = re.compile(rb"font(?:-size)?: [^;\"']*?([\d.]+)px")
#: Smallest font size of a legible picture, pixels.
_LEGIBLE_PIXELS = 9
#: Fields that all points of a table share.
_COMMON = ("quantity", "unit", "certainty", "data", "rules", *FLAGS, *NOTES)


@dataclass(frozen=True)
class Card:
    """Content of a figure's card in the gallery, from its stored result."""

    stored: StoredFigure

    @property
    def id(self) -> str:
        """Id of the figure, which is also the card's name in links."""
        return self.stored.entry.id

    @property
    def earlier_name(self) -> str:
        """Name of the card in links of earlier galleries."""
        return self.id.replace("/", "-")

    @property
    def paper(self) -> str:
        """Name of the paper's system."""
        return paper_name(self.stored.entry.paper)

    @property
    def works(self) -> list[Paper]:
        """Papers of the figure's published results.

        A figure outside the papers' folders has the papers that its reference names, or all papers
        if it names none.
        """
        table = papers()
        reference = str(self.stored.result.get("reference", ""))
        own = [paper for paper in table if paper.paper == self.stored.entry.paper]
        named = [paper for paper in table if paper_name(paper.paper) in reference]
        return own or named or table

    @property
    def title(self) -> str:
        """Title of the figure, or its id without a result."""
        return str(self.stored.result.get("title") or self.stored.entry.id)

    @property
    def short(self) -> str:
        """Short reference: ``Fig 8``, ``Section 5.2.4``.

        ``On Fig 4`` is a figure of ours about the paper's Fig 4. The paper does not have it.
        """
        reference = str(self.stored.result.get("reference", ""))
        part = _PAPER_PART.match(reference)
        if part and _NOT_PRINTED.search(reference):
            return f"On {part[0]}"
        if _NO_PAPER in reference:
            return "Beyond the papers"
        text = part[0] if part else re.split(r"[;,(]", reference)[0].strip()
        if "of the artifact" in reference and not part:
            is_acronym = text[:2].isupper()
            return f"Artifact, {text if is_acronym else text[:1].lower() + text[1:]}"
        # A reference with two or more semicolons names several papers, of which only the first is
        # shown.
        several = reference.count(";") > 1 and not part
        return text[:1].upper() + text[1:] + " and others" * several

    @property
    def verdict(self) -> str:
        """Worst verdict, or ``failed``, ``damaged`` or ``no claims``."""
        if self.stored.error or not self.stored.result:
            return "failed" if self.stored.error else "damaged"
        return str(self.stored.result["verdict"] or "no claims")

    @property
    def kinds(self) -> list[str]:
        """Labels for the filter of the gallery; the first decides the order of figures."""
        result = self.stored.result
        reference = str(result.get("reference", ""))
        part = _PAPER_PART.match(reference)
        if _NOT_PRINTED.search(reference):
            labels = [_BEYOND]
        else:
            labels = [_KINDS.get(part[1] if part else "", "text")]
        claim_kinds = {row["kind"] for row in self.stored.claims}
        if result.get("kind") == "diagram":
            labels.append("diagram")
        elif "example" in claim_kinds and claim_kinds <= {"example", "check"}:
            labels.append("worked example")
        data_names = [str(used["name"]) for used in result.get("data", [])]
        reads_measurements = any(name.startswith(_MEASUREMENTS) for name in data_names)
        if result.get("kind") == _MEASURED or reads_measurements:
            labels.append(_MEASURED)
        return labels

    @property
    def rank(self) -> int:
        """Rank in the order of a paper: figures, tables, all others."""
        return {"figure": 0, "table": 1}.get(self.kinds[0], 2)

    @property
    def data(self) -> list[str]:
        """Sources of the figure's data."""
        result = self.stored.result
        sources = {point["data"] for point in result.get("points", [])}
        sources |= {_DATA[used["kind"]] for used in result.get("data", []) if used["kind"] in _DATA}
        if result.get("stand_in"):
            sources.add("stand-in")
        return sorted(sources)

    @property
    def seeds(self) -> str:
        """Seeds of the run: ``seeds 0 to 11``, ``200 seeds``, ``seed 0``."""
        result = self.stored.result
        return seeds_text(result["params"].get("seeds") or [result["seed"]])

    @property
    def command(self) -> str:
        """Command that runs the figure again."""
        seed = self.stored.result["seed"]
        words = f"repro run {self.stored.entry.id} --profile {self.stored.result['profile']}"
        return words + (f" -p seed {seed}" if seed else "")

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the picture (pixels), by which a page reserves room for it."""
        found = _SVG_SIZE.search(self._svg[:1000])
        if found is None:
            return None
        width, height = (round(_PIXELS_PER_POINT * float(points)) for points in found.groups())
        return width, height

    @property
    def legible_width(self) -> int | None:
        """Width (pixels) at which the smallest text has 9 pixels; None if there is no text."""
        size = _SVG_SIZE.search(self._svg[:1000])
        font_sizes = [float(points) for points in _FONT_SIZE.findall(self._svg)]
        if size is None or not font_sizes:
            return None
        return math.ceil(float(size[1]) * _LEGIBLE_PIXELS / min(font_sizes))

    @cached_property
    def _svg(self) -> bytes:
        """The picture; empty without one."""
        try:
            return (self.stored.folder / f"{self.stored.entry.stem}.svg").read_bytes()
        except OSError:
            return b""

    @property
    def worst(self) -> float | None:
        """Distance of the counted point that is farthest from its published number."""
        distances = [
            float(point["distance"])
            for point in self.stored.result.get("points", [])
            if is_counted(point)
        ]
        return max(distances, key=abs, default=None)

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Rows of claims, the worst verdict first."""
        return sorted(self.stored.claims, key=lambda row: -OUTCOMES.index(row["verdict"]))

    @property
    def tables(self) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Tables of points, each with the fields that its points share."""
        tables: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for point in self.stored.result.get("points", []):
            tables.setdefault(tuple(map(point.get, _COMMON)), []).append(point)
        return [(dict(zip(_COMMON, key, strict=True)), rows) for key, rows in tables.items()]


def in_order(figures: Iterable[StoredFigure]) -> list[Card]:
    """Cards paper by paper, first figures, then tables; last those outside the papers' folders."""
    names = {paper.paper for paper in papers()}

    def order_key(card: Card) -> tuple[bool, str, int]:
        return card.stored.entry.paper not in names, card.stored.entry.paper, card.rank

    return sorted(map(Card, figures), key=order_key)


def lead(cards: Sequence[Card]) -> Card | None:
    """Card whose picture stands for a paper: a plot with the most published numbers."""

    def order_key(card: Card) -> tuple[bool, int]:
        is_plot = card.kinds[0] == "figure" and "diagram" not in card.kinds
        points = card.stored.result.get("points", [])
        return is_plot, sum(map(is_counted, points))

    return max((card for card in cards if card.stored.result), key=order_key, default=None)


def farthest(cards: Iterable[Card], max_points: int = 12) -> list[tuple[Card, dict[str, Any]]]:
    """Counted points farthest from their published value, each by more than 10 %."""
    far = [
        (card, point)
        for card in cards
        for point in card.stored.result.get("points", [])
        if is_counted(point) and abs(point["distance"]) > 0.1
    ]
    return sorted(far, key=lambda pair: -abs(pair[1]["distance"]))[:max_points]


def distance_text(published: Any, ours: Any) -> str:
    """Distance of ours from published: ``+0.3 %``.

    For several values it is ``≤`` and the largest distance: ``≤ 9.6 %``. It is empty without
    values, if a value is no number, and if a published value is 0.

    >>> distance_text(3.46, 3.47), distance_text([2.0, 4.0], [2.0, 4.4])
    ('+0.3 %', '≤ 10.0 %')
    >>> distance_text(0.0, 0.1), distance_text("below", 0.7)
    ('', '')
    """
    published_values = list(flat(published))
    our_values = list(flat(ours))
    if len(published_values) == 1:
        published_values *= len(our_values)
    pairs = list(zip(published_values, our_values, strict=False))
    have_distance = [
        is_number(published_value) and is_number(our_value) and published_value
        for published_value, our_value in pairs
    ]
    if not pairs or not all(have_distance):
        return ""
    distances = [our_value / published_value - 1 for published_value, our_value in pairs]
    if len(distances) == 1:
        return percent(distances[0])
    largest = percent(max(map(abs, distances))).lstrip("+")
    return largest if largest == "0.0 %" else f"≤ {largest}"


def percent(distance: float) -> str:
    """Relative distance in per cent, signed, to one decimal."""
    text = f"{100 * distance:+,.1f} %".replace("-", "−")
    return text[1:] if text[1:] == "0.0 %" else text
