"""The channel of a process that runs tests: messages go out, requests come in."""

from __future__ import annotations

import os
from typing import Any

from conformance.worker import frames

LOST = 71
"""Exit status of a process that can no longer send messages: a test closed the descriptor."""


class Channel:
    """Sends messages and receives requests, each the header of a frame.

    A child that a test forked sends nothing.

    Args:
        requests: Descriptor that requests are read from.
        replies: Descriptor that messages are written to.
    """

    def __init__(self, requests: int, replies: int) -> None:
        self.requests, self.replies = requests, replies
        self._pid = os.getpid()
        self._decoder = frames.Decoder()
        # A program that a test starts would keep the channel open after this process has ended.
        for descriptor in (requests, replies):
            os.set_inheritable(descriptor, False)

    def send(self, **message: Any) -> None:
        """Send a message.

        Args:
            **message: Its content, JSON values.
        """
        if os.getpid() != self._pid:
            return
        try:
            frames.write(self.replies, message)
        except OSError:
            os._exit(LOST)

    def receive(self) -> dict[str, Any] | None:
        """Wait for the next request and return it; None at the end of the requests."""
        try:
            while data := os.read(self.requests, 1 << 16):
                for frame in self._decoder.feed(data):  # at most one: each waits for a reply
                    return frame.header
        except OSError:
            os._exit(LOST)
        return None
