"""``--set K=V``: values as they are written on a command line, for a policy and its rounds."""

import dataclasses
import inspect
from collections.abc import Collection
from typing import Annotated, Any

import typer

from repro.base.errors import ParamError, refuse_unknown
from repro.engine.rounds.settings import RoundSettings
from repro.model.policy import Order, policies, spellings
from repro.trace.formats import FORMATS

DropOption = Annotated[
    bool,
    typer.Option("--drop-bad-rows", help="Leave out rows that break a rule, counted by reason."),
]
_WORDS = {"true": True, "false": False, "none": None}
#: Parameters that `repro simulate` has options for.
ELSEWHERE = ("name", "rules", "throughputs")
_LARGEST = 2.0**53  # whole numbers beyond are not exact


def parse_settings(pairs: list[str], elsewhere: Collection[str] = ELSEWHERE) -> dict[str, Any]:
    """Parameters by name from ``K=V`` texts; ``elsewhere`` are those with options of their own.

    Values are whole numbers, numbers (``inf`` too), true, false, none, or text; a comma makes a
    tuple.

    >>> parse_settings(["thresholds=3250,7200", "promote_knob=inf", "exact=true"])
    {'thresholds': (3250, 7200), 'promote_knob': inf, 'exact': True}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ParamError(f"--set {pair}: expected K=V, such as thresholds=3250,7200")
        if name in elsewhere:
            raise ParamError(f"--set {pair}: use --{'policy' if name == 'name' else name} instead")
        parts = [part for part in value.split(",") if part.strip() or "," not in value]
        if not parts:
            raise ParamError(f"--set {pair}: names no value; give some, or leave it out")
        items = tuple(_scalar(part.strip(), pair) for part in parts)
        found[name] = items if "," in value else items[0]
    return found


def format_settings(
    policy: str, form: str | None, settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those of policy and rounds, and those of the trace format alone."""
    if form is None or form not in FORMATS:
        return settings, {}
    own = {
        *spellings(policies[policy]),
        *(field.name for field in dataclasses.fields(RoundSettings)),
    }
    theirs = {*list(inspect.signature(FORMATS[form]).parameters)[1:]} - own
    rest = {key: value for key, value in settings.items() if key not in theirs}
    return rest, {key: value for key, value in settings.items() if key in theirs}


def round_settings(policy: str, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those of the policy and those of the round mechanism."""
    cls = policies[policy]
    if issubclass(cls, Order):
        return settings, {}
    own = spellings(cls)
    theirs = [field.name for field in dataclasses.fields(RoundSettings) if field.name not in own]
    refuse_unknown(f"policy {policy!r} and its rounds have no parameter", settings, [*own, *theirs])
    rounds = {key: value for key, value in settings.items() if key in theirs}
    return {key: value for key, value in settings.items() if key in own}, rounds


def _scalar(text: str, pair: str) -> Any:
    """Return a word, a whole number, a number or text; a number must be one a float can hold."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if not text.isascii():
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    if abs(value) > _LARGEST and "inf" not in text.lower():
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        raise ParamError(f"--set {pair.partition('=')[0]}: {shown} is too large; at most 2^53")
    return int(text) if text.lstrip("+-").isdecimal() else value
