"""Keys and lines from a terminal."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from conformance.cli.terminal_keys import END, Keys

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def terminal() -> Iterator[tuple[int, Keys]]:
    """Return the far end of a terminal, and what reads keys at the near one."""
    far, near = os.openpty()
    keys = Keys(near)
    with keys.opened():
        yield far, keys
    os.close(far)
    os.close(near)


def test_a_question_is_called_off_before_it_is_asked(terminal: tuple[int, Keys]) -> None:
    """Ctrl-D that is pressed while single keys are still read comes as a key."""
    far, keys = terminal
    os.write(far, f"r{END}".encode())
    assert keys.read() == "r"
    assert keys.line() is None


def test_a_question_is_called_off_as_soon_as_it_is_shown(terminal: tuple[int, Keys]) -> None:
    """Ctrl-C ends nothing more, also before the line is read; the next key is a key."""
    far, keys = terminal
    assert keys.line(lambda: signal.raise_signal(signal.SIGINT)) is None
    os.write(far, b"q")
    assert keys.read() == "q"


def test_a_line_that_is_typed_ahead_is_not_lost(terminal: tuple[int, Keys]) -> None:
    """What comes after it is a key again."""
    far, keys = terminal
    os.write(far, b"rtoo slow\nq")
    assert keys.read() == "r"
    assert keys.line() == "too slow"
    assert keys.read() == "q"
