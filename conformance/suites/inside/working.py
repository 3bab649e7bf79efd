"""Running tests as they are handed out, in place of pytest's own loop over all of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from conformance.suites.inside.channel import Channel


def work(session: pytest.Session, named: Mapping[str, pytest.Item], channel: Channel) -> None:
    """Run the tests that are ordered, until it is told that there are no more.

    A test begins once it is known which is the next one, as pytest needs to know that: fixtures
    that both use stay.

    Args:
        session: The session that collected them.
        named: The tests by name.
        channel: Where orders come from.

    Raises:
        BaseException: What ends a session of pytest.
    """
    left: deque[pytest.Item] = deque()
    over = False
    while True:
        while len(left) < 2 and not over:  # noqa: PLR2004 - one, and the one after it
            order = channel.hear()
            if order is None or "over" in order:
                over = True
            else:
                left.extend(named[name] for name in order["run"] if name in named)
                if unknown := [name for name in order["run"] if name not in named]:
                    channel.say("unknown", tests=unknown)
        if not left:
            return
        item = left.popleft()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=left[0] if left else None)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
