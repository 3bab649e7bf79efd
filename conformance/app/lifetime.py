"""The lifetime of a command: locks and watches that last until it ends."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_CURRENT: Final[ContextVar[ExitStack | None]] = ContextVar("lifetime", default=None)


@contextmanager
def lifetime() -> Iterator[None]:
    """Leave what `hold_until_end` entered when the block ends, the last first."""
    with ExitStack() as stack:
        token = _CURRENT.set(stack)
        try:
            yield
        finally:
            _CURRENT.reset(token)


def hold_until_end(manager: AbstractContextManager[Any]) -> None:
    """Enter a context manager until the current lifetime ends; outside of any, do not enter it.

    Args:
        manager: The context manager.
    """
    stack = _CURRENT.get()
    if stack is not None:
        stack.enter_context(manager)
