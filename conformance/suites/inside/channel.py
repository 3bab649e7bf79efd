"""The channel of a process that runs tests: events go out, orders come in."""

from __future__ import annotations

import json
import os
from typing import Any

LOST = 71
"""Exit status of a process whose events cannot be told any more: a test closed the descriptor."""


class Channel:
    """One end of a socket: a line of JSON for each event and each order.

    A child that a test forked tells nothing.

    Args:
        descriptor: The socket.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._pid = os.getpid()
        self._rest = b""
        os.set_inheritable(descriptor, False)

    def say(self, event: str, **facts: Any) -> None:
        """Tell an event.

        Args:
            event: Its kind.
            **facts: What there is to tell, as JSON has it.
        """
        if os.getpid() != self._pid:
            return
        line = json.dumps({"event": event, **facts}).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self.descriptor, line) :]
        except OSError:
            os._exit(LOST)

    def hear(self) -> dict[str, Any] | None:
        """Return the next order, waiting for it; None where nobody gives any more."""
        while b"\n" not in self._rest:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except OSError:
                os._exit(LOST)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        order: dict[str, Any] = json.loads(line)
        return order
