"""Running tests as they are requested, in place of pytest's own loop over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from conformance.suites.inside.channel import Channel


def run_requests(
    session: pytest.Session,
    named: Mapping[str, pytest.Item],
    channel: Channel,
    request: Mapping[str, Any] | None,
) -> None:
    """Run the test of each request until no more come.

    A request names the test after its own, too: pytest keeps the fixtures that both use.

    Args:
        session: The session that collected the tests.
        named: The tests by name.
        channel: Where requests come from.
        request: The first request.

    Raises:
        BaseException: What ends a session of pytest.
    """
    while request is not None:
        if item := named.get(request["test"]):
            following = named.get(request["next"])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        else:  # a plugin has put something else in its place since it was collected
            channel.send(end={"test": request["test"], "outcome": "unknown"})
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        channel.send(idle=True)
        request = channel.receive()
