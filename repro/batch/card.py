"""A figure as the gallery tells of it: short name, kinds, data, seeds, its numbers by quantity."""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from repro.batch.check import Stored
from repro.figures import data
from repro.figures.claims import OUTCOMES
from repro.figures.saved import paper_name, told_seeds
from repro.figures.tolerance import flat, is_number

#: How a reference begins that names a place in a paper: ``Fig 8``, ``sections 5.2 and 5.3``.
_PLACE = re.compile(
    r"(Fig|Table|Eq|Pseudocode|Algorithm|Appendix|[Ss]ection)s? [\w.]+"
    r"(?:(?:,| and| to) \d[\w.]*)*"
)
_KINDS = {"Fig": "figure", "Table": "table", "Pseudocode": "algorithm", "Algorithm": "algorithm"}
_BEYOND = "beyond the paper"
_NOT_PRINTED = re.compile(rf"no figure|{_BEYOND}")
_DATA = {data.PUBLIC: "public", data.OWN: "own file", data.STAND_IN: "stand-in"}
_PNG = b"\x89PNG\r\n\x1a\n"
#: What all numbers in one table have in common.
_COMMON = ("quantity", "unit", "certainty", "data", "rules", "aside")


@dataclass(frozen=True)
class Card:
    """What stands in the gallery of one figure, read off its result."""

    one: Stored

    @property
    def anchor(self) -> str:
        """Name by which a link finds the card."""
        return self.one.entry.id.replace("/", "-")

    @property
    def paper(self) -> str:
        """Name of the paper's system."""
        return paper_name(self.one.entry.paper)

    @property
    def title(self) -> str:
        """Title of the figure, its id where there is no result."""
        return str(self.one.result.get("title") or self.one.entry.id)

    @property
    def short(self) -> str:
        """Return ``Fig 8``, ``Table 3``, ``Section 5.2.4``; ``On Fig 4`` of what is not printed."""
        whole = str(self.one.result.get("reference", ""))
        place = _PLACE.match(whole)
        if place and _NOT_PRINTED.search(whole):
            return f"On {place[0]}"
        parts = re.split(r"[;,(]", whole)
        text = place[0] if place else parts[0].strip()
        if "of the artifact" in whole and not place:
            return f"Artifact, {text if text[:2].isupper() else text[:1].lower() + text[1:]}"
        # an example of several papers
        return text[:1].upper() + text[1:] + " and others" * (whole.count(";") > 1 and not place)

    @property
    def verdict(self) -> str:
        """Worst verdict, or why there is none."""
        if self.one.error or not self.one.result:
            return "failed" if self.one.error else "damaged"
        return str(self.one.result["verdict"] or "no claims")

    @property
    def kinds(self) -> list[str]:
        """What the figure is; the first says where it stands."""
        result = self.one.result
        reference = str(result.get("reference", ""))
        place = _PLACE.match(reference)
        first = _BEYOND if _NOT_PRINTED.search(reference) else _KINDS.get(place[1] if place else "")
        found = [first or "text"]
        judged = {row["kind"] for row in self.one.claims}
        if result.get("kind") == "diagram":
            found.append("diagram")
        elif "example" in judged and judged <= {"example", "check"}:
            found.append("worked example")
        return found

    @property
    def rank(self) -> int:
        """Figures stand first, then tables."""
        return {"figure": 0, "table": 1}.get(self.kinds[0], 2)

    @property
    def data(self) -> list[str]:
        """Whose data the figure rests on."""
        result = self.one.result
        found = {point["data"] for point in result.get("points", [])}
        found |= {_DATA[used["kind"]] for used in result.get("data", []) if used["kind"] in _DATA}
        return sorted(found | {"stand-in"} if result.get("stand_in") else found)

    @property
    def seeds(self) -> str:
        """Return the seeds that were run: ``seeds 0 to 11``, ``200 seeds``, ``seed 0``."""
        result = self.one.result
        return told_seeds(result["params"].get("seeds") or [result["seed"]])

    @property
    def command(self) -> str:
        """Command that runs the figure again."""
        seed = self.one.result["seed"]
        words = f"repro run {self.one.entry.id} --profile {self.one.result['profile']}"
        return words + (f" -p seed {seed}" if seed else "")

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the picture in pixels."""
        try:
            with (self.one.folder / f"{self.one.entry.stem}.png").open("rb") as stream:
                head = stream.read(24)
        except OSError:
            return None
        found = head.startswith(_PNG) and len(head) == 24
        return struct.unpack(">II", head[16:]) if found else None

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Verdict rows, the worst first."""
        return sorted(self.one.claims, key=lambda row: -OUTCOMES.index(row["verdict"]))

    @property
    def tables(self) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Points in tables, each with what its points have in common."""
        found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for point in self.one.result.get("points", []):
            found.setdefault(tuple(map(point.get, _COMMON)), []).append(point)
        return [(dict(zip(_COMMON, key, strict=True)), rows) for key, rows in found.items()]


def in_order(found: Iterable[Stored]) -> list[Card]:
    """Return the cards of papers in turn; in each figures first, then tables."""
    return sorted(map(Card, found), key=lambda card: (card.one.entry.paper, card.rank))


def farthest(cards: Iterable[Card], most: int = 12) -> list[tuple[Card, dict[str, Any]]]:
    """Return the judged points farthest from the published, each more than 10 % apart."""
    found = [
        (card, point)
        for card in cards
        for point in card.one.result.get("points", [])
        if not point.get("aside") and abs(point["distance"] or 0) > 0.1
    ]
    return sorted(found, key=lambda one: -abs(one[1]["distance"]))[:most]


def off(published: Any, ours: Any) -> str:
    """Return how far ours is from published: ``+0.3 %``, of several ``≤ 9.6 %``; or nothing.

    >>> off(3.46, 3.47), off([2.0, 4.0], [2.0, 4.4]), off(0.0, 0.1), off("below", 0.7)
    ('+0.3 %', '≤ 10.0 %', '', '')
    """
    wanted = list(flat(published))
    found = list(flat(ours))
    pairs = list(zip(wanted * len(found) if len(wanted) == 1 else wanted, found, strict=False))
    if not all(is_number(one) and is_number(other) and one for one, other in pairs):
        return ""
    apart = [other / one - 1 for one, other in pairs]
    if len(apart) == 1:
        return percent(apart[0])
    largest = percent(max(map(abs, apart))).lstrip("+")
    return largest if largest == "0.0 %" else f"≤ {largest}"


def percent(distance: float) -> str:
    """Return a signed distance in per cent with one digit behind the point."""
    text = f"{100 * distance:+,.1f} %".replace("-", "−")
    return text[1:] if text[1:] == "0.0 %" else text
