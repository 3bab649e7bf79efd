"""Fault injection: a call that fails once, at its first use, then at its second, and so on."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

CALLS: Final = ("open", "mkdir", "link", "fsync", "replace", "unlink")
"""Functions of `os` that create, write or remove files."""


class Failing:
    """A call that fails once.

    Args:
        original: The original function.
        nth: Index of the call that fails, from 0.
        error: Function that makes the error.

    Attributes:
        calls: Number of calls outside `pause`.
    """

    def __init__(
        self, original: Callable[..., Any], nth: int, error: Callable[[], Exception]
    ) -> None:
        self.calls = 0
        self._original = original
        self._nth = nth
        self._error = error
        self._paused = False

    def has_failed(self) -> bool:
        """Whether the failing call was reached."""
        return self.calls > self._nth

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Neither count nor fail, for the preparation and the assertions of a test."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the original function, or raise if this is the failing call."""
        if self._paused:
            return self._original(*arguments, **keywords)
        self.calls += 1
        if self.calls == self._nth + 1:
            raise self._error()
        return self._original(*arguments, **keywords)


def input_output_error() -> OSError:
    """Return the error of a broken disk."""
    return OSError(errno.EIO, "input/output error")


def fail_each_call_once(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    call: str,
    error: Callable[[], Exception] = input_output_error,
) -> Iterator[Failing]:
    """Let a function fail at its first call, then at its second and so on, until none fails.

    The function is replaced while the body of the `for` loop runs. In the last iteration nothing
    fails.

    Args:
        monkeypatch: Fixture that replaces the function.
        owner: Module or class that has the function.
        call: Name of the function.
        error: Function that makes the error.

    Yields:
        The replacement in each iteration.
    """
    original, nth, reached = getattr(owner, call), 0, True
    while reached:
        # A plain function, so that a method of a class still receives its object.
        failing = Failing(original, nth, error)
        with monkeypatch.context() as patched:
            patched.setattr(owner, call, lambda *a, _failing=failing, **k: _failing(*a, **k))
            yield failing
        reached, nth = failing.has_failed(), nth + 1
