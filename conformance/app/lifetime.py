"""The lifetime of a command: locks and watches that last until the command ends."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

# A context variable, not a global stack: tests run one command inside another.
_CURRENT: Final[ContextVar[ExitStack | None]] = ContextVar("lifetime", default=None)


@contextmanager
def lifetime() -> Iterator[None]:
    """Exit the managers that `hold_until_end` entered when the block ends, the last one first."""
    with ExitStack() as stack:
        token = _CURRENT.set(stack)
        try:
            yield
        finally:
            # Before the stack unwinds: nothing may be held by a lifetime that is ending.
            _CURRENT.reset(token)


def hold_until_end(manager: AbstractContextManager[Any]) -> None:
    """Enter a context manager until the current lifetime ends; without one, do not enter it.

    Args:
        manager: The context manager.
    """
    stack = _CURRENT.get()
    # A script that calls the application layer holds locks as it needs them.
    if stack is not None:
        stack.enter_context(manager)
