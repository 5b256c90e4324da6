"""AccaSim on an SWF file, first in first out on 64 processors: `peer_accasim.py FILE FOLDER`.

`peers.py` runs this script with the Python of build/peers. The script prints the average JCT in
seconds.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
from datetime import datetime
from pathlib import Path

#: Eight nodes of eight cores. A processor of the SWF file is a core.
CLUSTER = {
    "groups": {"node": {"core": 8}},
    "resources": {"node": 8},
    "equivalence": {"processor": {"core": 1}},
    "start_time": 0,
}


def average_jct(plan):
    """Average JCT in AccaSim's dispatching plan, lines of ID;USER;SUBMIT__NODES__START;END;..."""
    times = []
    for line in plan.splitlines():
        before, _, after = line.split("__")
        submit = datetime.fromisoformat(before.split(";")[-1])
        end = datetime.fromisoformat(after.split(";")[1])
        times.append((end - submit).total_seconds())
    return sum(times) / len(times)


def simulate(workload, folder):
    """Run AccaSim and return its dispatching plan."""
    # AccaSim 1.1.3 imports a name that Python 3.10 removed
    collections.Mapping = collections.abc.Mapping
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import FirstInFirstOut
    from accasim.base.simulator_class import Simulator

    folder.mkdir(parents=True, exist_ok=True)
    cluster = folder / "cluster.json"
    cluster.write_text(json.dumps(CLUSTER))
    simulator = Simulator(
        str(workload),
        str(cluster),
        FirstInFirstOut(FirstFit()),
        statistics_output=False,
        show_statistics=False,
        LOG_LEVEL="WARNING",
        RESULTS_FOLDER_PATH=str(folder),
    )
    return Path(simulator.start_simulation()["sched-"]).read_text()


if __name__ == "__main__":
    print(average_jct(simulate(Path(sys.argv[1]), Path(sys.argv[2]))))
