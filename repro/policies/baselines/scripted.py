"""Scripted decisions, for worked examples and plans; the policy has no registered name.

Ties: gangs run in the order of the script.
"""

from dataclasses import dataclass, replace

from repro.model.decision import Run, RunSet
from repro.model.policy import Policy
from repro.model.view import View


@dataclass(frozen=True)
class Scripted(Policy):
    """Run scripted gangs in order, if they fit, once all their jobs have arrived.

    Parameters
    ----------
    gangs : tuple of Run
        Gangs in order of priority. A member is the number of a job, counted from 0 in order of
        submission, then in order of the trace. Finished members are left out, and the other
        members of the group go on. Gangs that name nodes need placement ``wished``, which accepts
        nodes from the policy.
    """

    gangs: tuple[Run, ...] = ()

    name = "given"
    # A script may give a gang fewer or more GPUs than its demand.
    elastic = True

    def decide(self, view: View) -> RunSet:
        """Gangs whose jobs have all arrived, without their finished members."""
        unfinished = set(view.jobs)
        runs = []
        for gang in self.gangs:
            jobs = tuple(job for job in gang.jobs if job in unfinished)
            all_arrived = max(gang.jobs) < view.arrived
            if jobs and all_arrived:
                runs.append(replace(gang, jobs=jobs))
        return RunSet(runs)
