"""Arguments of every command with one fault each, made from the options that the commands have."""

from __future__ import annotations

import pytest
import typer.main
from doors import MAX_LINE, Case, check, parameters

from repro.cli.app import app

ANSI = "\x1b[31mred"
JOBS = "job_id,submit_time,duration,num_gpus\n1,0,60,1\n2,5,30,2\n"
TRACE = ("--trace", "jobs.csv")
#: Command -> words with which it runs.
COMMANDS = {
    ("list",): (),
    ("run",): ("tiresias/fig07",),
    ("plan",): ("tiresias/fig07",),
    ("check",): (),
    ("report",): (),
    ("crate",): ("made",),
    ("schema",): (),
    ("simulate",): (*TRACE, "--cluster", "1x4", "--policy", "srtf"),
    ("compare",): (*TRACE, "--cluster", "1x4", "--policies", "srtf,srsf", "-j", "1"),
    ("place",): ("--jobs", "jobs.csv", "--cluster", "1x4", "--policy", "liquid"),
    ("front",): (*TRACE, "--cluster", "1x4", "--prefer", "jct=avg", "-j", "1"),
    ("policies",): (),
    ("new-policy",): ("mine",),
    ("trace", "list"): (),
    ("trace", "formats"): (),
    ("trace", "fetch"): (),
    ("trace", "info"): ("jobs.csv",),
    ("trace", "doctor"): ("jobs.csv", "--cluster", "1x4", "--policies", "srtf"),
    ("trace", "convert"): ("jobs.csv", "--out", "new.csv"),
    ("trace", "dress"): ("jobs.csv", "--out", "new.csv"),
    ("cluster", "show"): ("1x4",),
    **{
        ("measure", name): ("--out", "mine")
        for name in ("profiles", "pairs", "stages", "pause", "sequence")
    },
}
NO_INTEGER = {
    "empty": "",
    "word": "two",
    "fraction": "1.5",
    "negative": "-1",
    "exponent": "1e3",
    "not a number": "nan",
    "infinite": "inf",
    "Arabic letters": "واحد",
    "terminal escape": ANSI,
    "hexadecimal": "0x10",
    "list": "[1]",
}
NO_FLOAT = {
    "empty": "",
    "word": "two",
    "negative": "-1",
    "not a number": "nan",
    "infinite": "inf",
    "minus infinite": "-inf",
    "two points": "1.2.3",
    "terminal escape": ANSI,
    "list": "[1]",
}
NO_WORD = {
    "unknown": "qqqq",
    "terminal escape": ANSI,
    "reversed text": "a\u202eb",
    "line end": "a\nb",
    "path out of the folder": "../../../../etc/passwd",
    "shell": "$(touch harmed)",
    "formula": "=1+1",
    "2,000 characters": "x" * 2000,
}
#: Metavariables of options whose values are texts that the package must know.
WORDS = {
    *("F", "NAME", "SPEC", "TYPE", "P", "FILE|NAME", "K=V", "COLUMN=NAME,…", "s|ms|min|h|…"),
    *("A,B,…", "TABLES", "TABLES|none", "M=W,…", "NAME[:K=V,…]", "X", "fastest|wished"),
    *("none|tiresias|h100|DIR|S", "mtbf=S,…", "X,Y,…", "NxLENGTH", "FORMAT", "ADDRESS"),
    *("FILE.py|NAME|{…}", "M=HOW[:LIMIT]", "K=LOW:HIGH", "FILE|DIR|NAME", "DIR|h100", "MODEL,…"),
}
#: Metavariables of options whose values are numbers with fractions.
FRACTIONS = {"S", "SIGMA", "MIN"}
#: Numbers that an option accepts although they look like a fault.
ACCEPTED = {("--stop-time", "infinite")}


def loaded():
    """Commands as they run, by their words."""
    found = {}
    for words in COMMANDS:
        group = typer.main.get_command(app)
        for word in words:
            context = group.context_class(group, info_name="repro")
            group = group.resolve_command(context, [word])[1]
        found[words] = group
    return found


def without(words, option):
    """Words of a command without an option and its value."""
    if option not in words:
        return words
    at = words.index(option)
    return (*words[:at], *words[at + 2 :])


def option_cases():
    for words, command in loaded().items():
        base = COMMANDS[words]
        for option in command.params:
            name = next((text for text in option.opts if text.startswith("-")), None)
            if name is None or getattr(option, "is_flag", False):
                continue
            is_fraction = option.metavar in FRACTIONS or name == "--predict-interval"
            faults = NO_INTEGER if option.metavar == "N" else NO_FLOAT if is_fraction else None
            if faults is None and option.metavar in WORDS:
                faults = NO_WORD
            title = " ".join(words)
            rest = base
            for text in option.opts:
                rest = without(rest, text)
            for fault, value in (faults or {}).items():
                if (name, fault) not in ACCEPTED:
                    call = (*words, *rest, name, value)
                    # this line lists all generators, and has the path that was looked up
                    longest = 400 if call[0] == "front" and name == "--trace" else MAX_LINE
                    case = f"{title} {name}: {fault}"
                    yield Case(case, call, (), {"jobs.csv": JOBS}, longest=longest)
            call = (*words, *rest, name)
            yield Case(f"{title} {name}: no value", call, (name,), {"jobs.csv": JOBS})
            if not option.multiple:
                call = (*words, *rest, name, "1", name, "1")
                yield Case(f"{title} {name}: twice", call, (name, "2 times"), {"jobs.csv": JOBS})


def command_cases():
    for words, base in COMMANDS.items():
        title = " ".join(words)
        for fault, word in {
            "unknown option": "--nonsense",
            "option with a terminal escape": f"--{ANSI}",
            "option in capitals": "--JSON",
            "unknown letter": "-Z",
            "long dash": "—json",
            "option of 2,000 characters": f"--{'x' * 2000}",
        }.items():
            if word == "—json" and words in [("run",), ("plan",), ("check",), ("trace", "fetch")]:
                continue
            yield Case(f"{title}: {fault}", (*words, *base, word), (), {"jobs.csv": JOBS})
        extra = [*base, "one", "two", "three"]
        yield Case(f"{title}: three words too many", (*words, *extra), (), {"jobs.csv": JOBS})
    for fault, word in {**NO_WORD, "capitals": "SIMULATE", "misspelt": "simulat"}.items():
        yield Case(f"unknown command: {fault}", (word,), ())
        yield Case(f"unknown command of trace: {fault}", ("trace", word), ())


CASES = [*option_cases(), *command_cases()]


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_argument(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)


def test_every_command_has_cases():
    group = typer.main.get_command(app)
    inner = {"trace", "cluster", "measure"}
    names = {(name,) for name in group.commands if name not in {"course", *inner}}
    names |= {(word, name) for word in inner for name in group.commands[word].commands}
    assert names == set(COMMANDS)
