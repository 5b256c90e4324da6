"""Both signals that end a program raise KeyboardInterrupt, within the block alone."""

from __future__ import annotations

import signal

import pytest

from repro.base.signals import raising_keyboard_interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_raises_within_the_block_and_its_handler_comes_back(number):
    earlier = signal.signal(number, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), raising_keyboard_interrupt():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, earlier)
