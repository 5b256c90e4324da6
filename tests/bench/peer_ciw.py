"""Ciw on jobs of one GPU, first in first out on 64 servers: `peer_ciw.py FILE`.

`peers.py` runs this script with the Python of build/peers. The script prints the average JCT in
seconds. A line of the file is a job: its submission and duration in seconds.
"""

from __future__ import annotations

import csv
import sys

SERVERS = 64


def read(path):
    """Gap before each submission and duration of each job (s), in order of submission."""
    with open(path, newline="") as handle:
        jobs = [(float(submit), float(duration)) for submit, duration in csv.reader(handle)]
    submits = [submit for submit, _ in jobs]
    gaps = [late - early for early, late in zip([0.0, *submits], submits, strict=False)]
    return gaps, [duration for _, duration in jobs]


def average_jct(gaps, durations):
    """Average JCT of the queue that Ciw simulates."""
    import ciw

    network = ciw.create_network(
        # no job arrives after the last
        arrival_distributions=[ciw.dists.Sequential([*gaps, float("inf")])],
        service_distributions=[ciw.dists.Sequential(durations)],
        number_of_servers=[SERVERS],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(len(durations))
    times = [record.exit_date - record.arrival_date for record in simulation.get_all_records()]
    return sum(times) / len(times)


if __name__ == "__main__":
    print(average_jct(*read(sys.argv[1])))
