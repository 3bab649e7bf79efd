"""What lasts until a command ends."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from conformance.app.lifetime import hold_until_end, lifetime

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def noting(name: str, notes: list[str]) -> Iterator[None]:
    """Note when it is entered and left."""
    notes.append(f"+{name}")
    try:
        yield
    finally:
        notes.append(f"-{name}")


def test_what_is_held_is_left_at_the_end_in_reverse() -> None:
    """Also where the command fails."""
    notes: list[str] = []

    def failing() -> None:
        with lifetime():
            hold_until_end(noting("a", notes))
            hold_until_end(noting("b", notes))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert notes == ["+a", "+b", "-b", "-a"]


def test_one_command_within_another_leaves_its_own() -> None:
    """As tests run commands in one process."""
    notes: list[str] = []
    with lifetime():
        hold_until_end(noting("outer", notes))
        with lifetime():
            hold_until_end(noting("inner", notes))
        assert notes == ["+outer", "+inner", "-inner"]
        hold_until_end(noting("again", notes))
    assert notes[3:] == ["+again", "-again", "-outer"]


def test_outside_of_a_command_nothing_is_held() -> None:
    """A script that calls the application layer decides for itself."""
    notes: list[str] = []
    hold_until_end(noting("a", notes))
    assert notes == []
