"""Groups of pytest items that one worker of pytest-xdist runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def make_scheduler(config: pytest.Config, log: Any, find_group: Callable[[str], str]) -> Any:
    """Return a scheduler of xdist that sends the items of a group to one worker.

    By their ids: the groups of xdist itself need ids that it may change, which it may not with
    pytest 9.2 (pytest-xdist#1386).

    Args:
        config: Configuration of the session.
        log: Log of the scheduler.
        find_group: Returns the group of an item by its id, empty for none.

    Returns:
        The scheduler, None if `--dist` is not `loadgroup`.
    """
    if config.option.dist != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling  # noqa: PLC0415 - xdist is optional

    class Scheduling(LoadGroupScheduling):
        """The scheduling of groups by the ids of items."""

        def _split_scope(self, nodeid: str) -> str:
            return find_group(nodeid) or super()._split_scope(nodeid)

    return Scheduling(config, log)
