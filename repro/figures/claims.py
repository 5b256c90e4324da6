"""Published value against regenerated value: the verdict, which reads nothing but this run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from repro.errors import ClaimError
from repro.figures.points import Point, series_values
from repro.figures.tolerance import (
    Accept,
    Relation,
    Strict,
    check_number,
    flat,
    is_number,
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


class Claim(Strict):
    """One thing a paper says about a figure, with its source and how sure we are of it.

    A claim about a ``series`` of points has no ``published`` of its own: it judges every point.
    """

    id: str
    kind: Kind
    what: str
    published: Any = None
    series: str | None = None
    accept: Accept | None = None
    relation: Relation | None = None
    source: str
    certainty: str
    stand_in: bool = False
    deviation: str | None = None

    @field_validator("id", "what", "series", "source", "certainty", "deviation")
    @classmethod
    def _not_blank(cls, text: str | None) -> str | None:
        if text is not None and not text.strip():
            raise ValueError("must not be blank")
        return text

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
            check_number(item)
            if isinstance(item, str) and not item.strip():
                raise ValueError("must not be blank")
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
        if relation is not None and any(
            isinstance(item, bool) for item in flat(info.data.get("published"))
        ):
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
        row = {
            "id": claim.id,
            "kind": claim.kind,
            "what": claim.what,
            "published": claim.published,
            "ours": plain(self.ours),
            "tolerance": claim.tolerance(),
            "source": claim.source,
            "certainty": claim.certainty,
            "verdict": self.outcome,
            "stand_in": claim.stand_in,
        }
        if claim.series is not None:
            row["series"] = claim.series
        if claim.deviation is not None:
            row["deviation"] = claim.deviation
        return row


def judge(claim: Claim, value: Any) -> Verdict:
    """Return whether a claim is reproduced, partial, missed or not comparable by a value.

    ``reproduced`` if the tolerance holds (or there is only a relation and that holds), ``partial``
    if only the relation holds; None and NaN are ``not comparable``.

    Examples
    --------
    >>> claim = Claim(id="gain", kind="number", what="average gain", published=5.5,
    ...               accept=Accept(rel=0.1), relation=Relation(gt=1), source="section 5.2.1",
    ...               certainty="paper")
    >>> judge(claim, 5.3).outcome, judge(claim, 2.0).outcome, judge(claim, 0.9).outcome
    ('reproduced', 'partial', 'missed')
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
    """Judge every claim of a figure, those about a series by its points, the others by ``values``.

    A ClaimError names the claims without a value and the values without a claim.
    """
    known = [claim.id for claim in claims if claim.series is None]
    missing = [name for name in known if name not in values]
    extra = [name for name in values if name not in known]
    if missing or extra:
        parts = []
        if missing:
            parts.append(f"no value for claim {', '.join(missing)}")
        if extra:
            parts.append(f"value for unknown claim {', '.join(map(str, extra))}")
        raise ClaimError(
            f"{'; '.join(parts)} (claims: {', '.join(known) or 'none'}); the values passed to "
            "save() must match the claims of the parameter file, None where not comparable"
        )
    return [
        judge(claim, values[claim.id]) if claim.series is None else _judge_series(claim, points)
        for claim in claims
    ]


def _judge_series(claim: Claim, points: Sequence[Point]) -> Verdict:
    """Judge a claim by every point of its series; the largest distance decides."""
    published, ours = series_values(points, str(claim.series))
    if not published:
        known = ", ".join(sorted({point.series for point in points})) or "none"
        raise ClaimError(f"claim {claim.id}: no point of series {claim.series!r} (series: {known})")
    return judge(claim.model_copy(update={"published": published}), ours)


def points_of(verdicts: Sequence[Verdict], *, data: str, rules: str) -> list[Point]:
    """Return the published numbers of claims as points, where no series of points holds them."""
    points = []
    for verdict in verdicts:
        claim = verdict.claim
        if claim.kind != "number" or claim.series is not None:
            continue
        published, ours = list(flat(claim.published)), list(flat(verdict.ours))
        if len(published) != len(ours) or not all(map(is_number, filter(_given, published))):
            continue
        certainty = claim.certainty.split()[0]
        facts: dict[str, Any] = {
            "series": claim.id,
            "quantity": claim.what,
            "certainty": certainty if certainty in ("paper", "artifact", "plot") else "text",
            "data": "stand-in" if claim.stand_in else data,
            "rules": rules,
        }
        for place, (one, other) in enumerate(zip(published, ours, strict=True)):
            # A distance whose published value is 0 is no number of the paper.
            if one:
                x = float(place) if len(published) > 1 else None
                found = float(other) if is_number(other) else None
                points.append(Point(x=x, published=float(one), ours=found, **facts))
    return points


def _given(value: Any) -> bool:
    return value is not None


def worst(outcomes: Iterable[str]) -> str | None:
    """Return the worst outcome, or None when there is none.

    Examples
    --------
    >>> worst(["reproduced", "partial", "not comparable"])
    'partial'
    """
    return max(outcomes, key=OUTCOMES.index, default=None)
