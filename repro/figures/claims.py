"""Published value against regenerated value: the verdict, which reads nothing but this run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from repro.base.errors import ClaimError
from repro.figures.points import Point
from repro.figures.tolerance import (
    Accept,
    Relation,
    Strict,
    Text,
    check_number,
    flat,
    is_number,
    not_blank,
    plain,
    within,
)

REPRODUCED = "reproduced"
PARTIAL = "partial"
NOT_COMPARABLE = "not comparable"
MISSED = "missed"
#: From best to worst.
OUTCOMES = (REPRODUCED, NOT_COMPARABLE, PARTIAL, MISSED)
#: ``number``: published values within a tolerance; ``order``: a relation or trend; ``example``: a
#: worked example or arithmetic; ``check``: a requirement of this package, an input or a calibration
#: target, or true by construction: shown, and never counted as reproduced.
Kind = Literal["number", "order", "example", "check"]
KINDS: tuple[Kind, ...] = ("number", "order", "example", "check")

#: Lists in lists that a published value may be made of: times of jobs on types in rounds.
_LEVELS = 3
_CERTAINTY = re.compile(r"(paper|artifact|derived|calibrated)\b.*|plot ±\s*\d.*")


class Said(Strict):
    """What a parameter file and a result both say of a claim."""

    id: Text
    kind: Kind
    what: Text
    published: Any = None
    series: Text | None = None
    source: Text
    certainty: Text
    stand_in: bool = False
    deviation: Text | None = None


class Claim(Said):
    """One thing a paper says about a figure, with its source and how sure we are of it.

    A claim about a ``series`` of points has no ``published`` of its own: it judges every point.
    """

    accept: Accept | None = None
    relation: Relation | None = None

    @field_validator("certainty")
    @classmethod
    def _known_certainty(cls, text: str) -> str:
        if not _CERTAINTY.fullmatch(text):
            raise ValueError("must be paper, plot ±e, artifact, derived or calibrated")
        return text

    @field_validator("published")
    @classmethod
    def _number_list_or_text(cls, published: Any) -> Any:
        if published is None:
            return None
        items = list(flat(published))
        for item in items:
            if item is not None and not isinstance(item, bool | int | float | str):
                raise ValueError("must be a number, a list of numbers or a text relation")
            not_blank(item) if isinstance(item, str) else check_number(item)
        if not _is_table(published, _LEVELS):
            raise ValueError(f"has a list beside a single value or more than {_LEVELS} levels")
        if all(item is None for item in items):
            raise ValueError(
                "holds no value, so nothing could fail the claim; give a number, a list of numbers "
                "or what the paper says as a text"
            )
        return published

    @field_validator("accept")
    @classmethod
    def _fits_published(cls, accept: Accept | None, info: ValidationInfo) -> Accept | None:
        published = info.data.get("published")
        if accept is None or accept.exact or published is None:
            return accept
        items = [item for item in flat(published) if item is not None]
        if (accept.rel, accept.abs) != (None, None) or not isinstance(published, str):
            for item in items:
                if not is_number(item):
                    raise ValueError(f"needs a published number where {item!r:.40} stands")
        # One value has one bound: a list of them could not be compared with it.
        wanted = len(list(flat(published))) if isinstance(published, list) else None
        if accept.bounds() not in (None, wanted):
            raise ValueError(
                f"{accept.bounds()} bounds for {wanted or 1} published; give one for all, or "
                "a list with one for each of a published list"
            )
        return accept

    @field_validator("relation")
    @classmethod
    def _orders_numbers(cls, relation: Relation | None, info: ValidationInfo) -> Relation | None:
        kinds = map(type, flat(info.data.get("published")))
        if relation is not None and bool in kinds:
            raise ValueError("orders numbers; a published true or false needs accept: exact")
        return relation

    @model_validator(mode="after")
    def _can_be_judged(self) -> Claim:
        if (self.published is None) is (self.series is None):
            raise ValueError(
                "needs either published, what the paper says, or series, the points it judges"
            )
        if self.series is not None and self.kind not in ("number", "order"):
            raise ValueError(f"kind {self.kind} judges no series; number and order do")
        if self.accept is None and self.relation is None:
            raise ValueError("needs accept or relation, or nothing could fail it")
        return self

    def tolerance(self) -> str:
        """Return accept and relation as a reader sees them."""
        parts = (rule.text() for rule in (self.accept, self.relation) if rule is not None)
        return "; ".join(parts)


def _is_table(value: Any, levels: int) -> bool:
    """Tell whether lists are of at most so many levels and none stands beside a single value."""
    if not isinstance(value, list):
        return True
    kinds = {isinstance(item, list) for item in value}
    return levels > 0 and len(kinds) < 2 and all(_is_table(item, levels - 1) for item in value)


@dataclass(frozen=True)
class Verdict:
    """A claim beside the value of this run and what follows from the two."""

    claim: Claim
    ours: Any
    outcome: str

    def row(self) -> dict[str, Any]:
        """Return the entry of ``result.json``: plain values, NaN as None."""
        claim = self.claim
        row = {name: getattr(claim, name) for name in ("id", "kind", "what", "published")}
        row |= {"ours": plain(self.ours), "tolerance": claim.tolerance()}
        row |= {"source": claim.source, "certainty": claim.certainty}
        row |= {"verdict": self.outcome, "stand_in": claim.stand_in}
        rare = {"series": claim.series, "deviation": claim.deviation}
        return row | {name: text for name, text in rare.items() if text is not None}


def judge(claim: Claim, value: Any) -> Verdict:
    """Return what a value says of a claim; None and NaN are ``not comparable``.

    ``reproduced`` if the tolerance holds (or there is only a relation and that holds), ``partial``
    if only the relation holds.
    """
    try:
        value = plain(value)
        items = list(flat(value))
        if all(item is None for item in items):
            return Verdict(claim, value, NOT_COMPARABLE)
        accepted = claim.accept is None or within(claim.accept, claim.published, value)
    except ClaimError as error:
        raise ClaimError(f"claim {claim.id}: {error}") from None
    relation = claim.relation
    if relation is None:
        return Verdict(claim, value, REPRODUCED if accepted else MISSED)
    if not all(is_number(item) and relation.holds(item) for item in items):
        return Verdict(claim, value, MISSED)
    return Verdict(claim, value, REPRODUCED if accepted else PARTIAL)


def judge_all(
    claims: Sequence[Claim], values: Mapping[str, Any], points: Sequence[Point] = ()
) -> list[Verdict]:
    """Judge claims about a series by its points, the others by ``values``, one for each."""
    known = [claim.id for claim in claims if claim.series is None]
    missing = [name for name in known if name not in values]
    extra = [name for name in values if name not in known]
    if missing or extra:
        parts = [f"no value for claim {', '.join(missing)}"] if missing else []
        parts += [f"value for unknown claim {', '.join(map(str, extra))}"] if extra else []
        raise ClaimError(
            f"{'; '.join(parts)} (claims: {', '.join(known) or 'none'}); the values passed to "
            "save() must match the claims of the parameter file, None where not comparable"
        )
    return [
        judge(claim, values[claim.id]) if claim.series is None else _judge_series(claim, points)
        for claim in claims
    ]


def _judge_series(claim: Claim, points: Sequence[Point]) -> Verdict:
    """Judge a claim by every point of its series but those aside; the largest distance decides."""
    chosen = [point for point in points if point.series == claim.series and not point.aside]
    if not chosen:
        known = ", ".join(sorted({point.series for point in points})) or "none"
        raise ClaimError(f"claim {claim.id}: no point of series {claim.series!r} (series: {known})")
    published = [point.published for point in chosen]
    ours = [point.ours for point in chosen]
    return judge(claim.model_copy(update={"published": published}), ours)


def points_of(
    verdicts: Sequence[Verdict], given: Sequence[Point] = (), *, data: str, rules: str
) -> list[Point]:
    """Return the published numbers of claims as points, where no series of points holds them.

    Beside points that are ``given``, derived claims hold no further published numbers.
    """
    points = []
    for verdict in verdicts:
        claim = verdict.claim
        again = bool(given) and claim.certainty.startswith("derived")
        if claim.kind != "number" or claim.series is not None or again:
            continue
        published = list(flat(claim.published))
        ours = list(flat(verdict.ours))
        numbers = all(is_number(one) for one in published if one is not None)
        if not numbers or len(published) != len(ours):
            continue
        certainty = claim.certainty.split()[0]
        certainty = certainty if certainty in ("paper", "artifact", "plot") else "text"
        facts: dict[str, Any] = {"series": claim.id, "quantity": claim.what, "rules": rules}
        facts |= {"certainty": certainty, "data": "stand-in" if claim.stand_in else data}
        for place, (one, other) in enumerate(zip(published, ours, strict=True)):
            # A distance whose published value is 0 is no number of the paper.
            if one:
                x = float(place) if len(published) > 1 else None
                found = float(other) if is_number(other) else None
                points.append(Point(x=x, published=float(one), ours=found, **facts))
    return points


def worst(outcomes: Iterable[str]) -> str | None:
    """Return the worst outcome, or None when there is none."""
    return max(outcomes, key=OUTCOMES.index, default=None)
