"""Calls that fail once: an input/output error at every place where something is written."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

CALLS: Final = ("open", "mkdir", "link", "fsync", "replace", "unlink")
"""Calls of the system by which files are written, in the module `os`."""


class Failing:
    """A call that fails once.

    Args:
        original: The call.
        nth: Which time it fails, counted from 0.
        error: Makes the error.

    Attributes:
        calls: How often it was called.
    """

    def __init__(
        self, original: Callable[..., Any], nth: int, error: Callable[[], Exception]
    ) -> None:
        self.calls = 0
        self._original = original
        self._nth = nth
        self._error = error
        self._paused = False

    @property
    def failed(self) -> bool:
        """Whether it was called often enough to fail."""
        return self.calls > self._nth

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do as the original does, and do not count, as of what is prepared or looked at."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Do as the original does, but for one time."""
        if self._paused:
            return self._original(*arguments, **keywords)
        self.calls += 1
        if self.calls == self._nth + 1:
            raise self._error()
        return self._original(*arguments, **keywords)


def input_output_error() -> OSError:
    """Return what a broken disk raises."""
    return OSError(errno.EIO, "input/output error")


def failing_once(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    call: str,
    error: Callable[[], Exception] = input_output_error,
) -> Iterator[Failing]:
    """Let a call fail at its first time, then at its second and so on, until none fails.

    The call is replaced in the body of the loop over this. The last turn is one in which nothing
    fails.

    Args:
        monkeypatch: Replaces the call.
        owner: Module or class that has it.
        call: Its name.
        error: Makes the error.

    Yields:
        The call of each turn.
    """
    original, nth, reached = getattr(owner, call), 0, True
    while reached:
        # Of a class the call is a method: then its object is the first argument.
        failing = Failing(original, nth, error)
        with monkeypatch.context() as patched:
            patched.setattr(owner, call, lambda *a, _failing=failing, **k: _failing(*a, **k))
            yield failing
        reached, nth = failing.failed, nth + 1
