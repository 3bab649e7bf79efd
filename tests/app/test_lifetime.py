"""Context managers that are held until a command ends."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from conformance.app.lifetime import hold_until_end, lifetime

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def record_entry_and_exit(name: str, notes: list[str]) -> Iterator[None]:
    """Append a note on entry and on exit."""
    notes.append(f"+{name}")
    try:
        yield
    finally:
        notes.append(f"-{name}")


def test_held_managers_exit_in_reverse_order_at_the_end() -> None:
    """Also if the command fails."""
    notes: list[str] = []

    def failing() -> None:
        with lifetime():
            hold_until_end(record_entry_and_exit("a", notes))
            hold_until_end(record_entry_and_exit("b", notes))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert notes == ["+a", "+b", "-b", "-a"]


def test_nested_command_exits_only_its_own_managers() -> None:
    """Tests run commands in one process."""
    notes: list[str] = []
    with lifetime():
        hold_until_end(record_entry_and_exit("outer", notes))
        with lifetime():
            hold_until_end(record_entry_and_exit("inner", notes))
        assert notes == ["+outer", "+inner", "-inner"]
        hold_until_end(record_entry_and_exit("again", notes))
    assert notes[3:] == ["+again", "-again", "-outer"]


def test_without_a_command_nothing_is_held() -> None:
    """A script that calls the application layer holds its own managers."""
    notes: list[str] = []
    hold_until_end(record_entry_and_exit("a", notes))
    assert notes == []
