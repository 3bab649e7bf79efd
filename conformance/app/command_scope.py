"""The scope of a command: resources that are held until the command ends."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_SCOPE: Final[ContextVar[ExitStack | None]] = ContextVar("command_scope", default=None)


@contextmanager
def command_scope() -> Iterator[None]:
    """Release the resources of a command when the block ends."""
    with ExitStack() as stack:
        token = _SCOPE.set(stack)
        try:
            yield
        finally:
            _SCOPE.reset(token)


def hold_until_command_ends(resource: AbstractContextManager[None]) -> None:
    """Enter a context that is left when the command ends; outside of a command do nothing.

    Args:
        resource: The context.
    """
    if (stack := _SCOPE.get()) is not None:
        stack.enter_context(resource)
