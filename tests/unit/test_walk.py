"""One decision of each form of policy can be followed through few files."""

import json
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: most files, and most moves between them
LIMITS = {
    "tiresias-l": (8, 40),
    "muri-s": (10, 60),
    "gavel-las": (10, 40),
    "gavel-las-ss": (12, 60),
}


def test_decisions_can_be_followed():
    program = (
        "import json, walk\n"
        "found = {case.policy: walk.walk(case) for case in walk.CASES}\n"
        "print(json.dumps({n: [len(w.files), w.moves, w.state] for n, w in found.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=DOCS,
        capture_output=True,
        text=True,
        check=True,
    )
    walks = json.loads(done.stdout)
    assert walks.keys() == LIMITS.keys()
    for name, (files, moves, state) in walks.items():
        assert 3 < files <= LIMITS[name][0]
        assert 10 < moves <= LIMITS[name][1]
        assert "wait" in state
