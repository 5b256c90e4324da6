"""Write repro/cli/completion.json, from which shells complete: `make policies-page`."""

from __future__ import annotations

import json
import sys

from repro.cli.app import ClusterCommands, Commands, MeasureCommands, TraceCommands
from repro.cli.completion_table import TABLE, current
from repro.files.whole import write_whole


def text() -> str:
    """Table of the options and arguments of all commands, a line for each."""
    parts = []
    groups = (Commands, TraceCommands, ClusterCommands, MeasureCommands)
    for command, rows in current(groups).items():
        lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
        parts.append(f"  {json.dumps(command)}: [\n{lines}\n  ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Write the table."""
    write_whole(TABLE, text().encode())
    print(f"{TABLE.name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
