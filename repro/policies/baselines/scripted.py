"""Scripted decisions, for worked examples and plans; the policy has no registered name."""

from dataclasses import dataclass, replace

from repro.model.decision import Run, RunSet
from repro.model.policy import Policy
from repro.model.view import View


@dataclass(frozen=True)
class Given(Policy):
    """Run the given gangs in order, as far as they fit; a gang starts when its last job arrives.

    Parameters
    ----------
    gangs : tuple of Run
        Members are row numbers in order of submission, equals as in the file; those that have
        finished are left out, so that the others of a group go on alone. Gangs that name nodes need
        placement ``wished``.
    """

    gangs: tuple[Run, ...] = ()

    name = "given"
    elastic = True

    def decide(self, view: View) -> RunSet:
        """Return the gangs whose jobs have all arrived, without the finished ones."""
        present = set(view.jobs)
        runs = []
        for gang in self.gangs:
            jobs = tuple(job for job in gang.jobs if job in present)
            if jobs and max(gang.jobs) < view.arrived:
                runs.append(replace(gang, jobs=jobs))
        return RunSet(runs)
