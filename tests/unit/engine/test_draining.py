"""GPUs whose last holder still writes a checkpoint."""

from __future__ import annotations

from repro.engine.draining import DrainingGpus


def test_the_checkpoint_that_ends_first_is_waited_for():
    draining = DrainingGpus()
    draining.add(1.0, until=30.0)
    draining.add(1.0, until=23.0)
    assert draining.delay(1.0, {None: 2.0}, now=20.0) == 3.0


def test_a_checkpoint_delays_one_gang_only():
    draining = DrainingGpus()
    draining.add(1.0, until=23.0)
    assert draining.delay(1.0, {None: 1.0}, now=20.0) == 3.0
    assert draining.delay(1.0, {None: 1.0}, now=21.0) == 0.0
