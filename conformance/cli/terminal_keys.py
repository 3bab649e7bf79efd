"""Single keys, and lines, from a terminal."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import sys
import termios
import tty
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

END: Final = "\x04"
"""What Ctrl-D sends."""
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.)")
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*|O)?$")
_NAMES: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
    "\x1b[5~": "page up", "\x1b[6~": "page down",
}  # fmt: skip
_SOON: Final = 0.05
"""Seconds within which the rest of what one key sends arrives."""
_READ: Final = 4096


class Keys:
    """Reads keys as they are pressed: typed ahead, pasted or one by one, none is lost.

    Args:
        descriptor: The terminal.

    Attributes:
        waiting: Whether a key is waited for, and nothing else is done.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder(sys.stdin.encoding or "utf-8")("replace")
        self._left = ""
        self._ended = False
        self._before: list[object] = []
        self._prompting = False
        self.waiting = False

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Have keys come one by one, and not be shown; the terminal is as before afterwards."""
        self._before = termios.tcgetattr(self._descriptor)
        self.take()
        try:
            yield
        finally:
            self._restore()

    def take(self) -> None:
        """Have keys come one by one; also after the terminal was someone else's for a while."""
        if not self._prompting:
            with contextlib.suppress(termios.error):
                tty.setcbreak(self._descriptor, termios.TCSADRAIN)

    def _restore(self) -> None:
        with contextlib.suppress(termios.error):  # it hung up
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)  # type: ignore[arg-type] # as it was given

    def read(self) -> str:
        """Return the next key by its character or name; empty when there is no terminal left."""
        while not self._left and not self._ended:
            self.waiting = True
            try:
                self._more()
            finally:
                self.waiting = False
        while _BEGUN.search(self._left) and self._soon():
            self._more()
        if not self._left:
            return ""
        if match := _SEQUENCE.match(self._left):
            self._left = self._left[match.end() :]
            return _NAMES.get(match[0], "unknown")
        key, self._left = self._left[0], self._left[1:]
        return "" if key == END else key

    def line(self, show: Callable[[], object] = lambda: None) -> str | None:
        """Return a line of text that is typed in; None when it is called off or there is no more.

        Ctrl-C and Ctrl-D call it off.

        Args:
            show: Shows the question: from there on Ctrl-C calls off no more than that.
        """
        self._prompting = True
        try:
            self._restore()
            show()
            while "\n" not in self._left and not self._ended:
                if END in self._left:  # pressed before lines were read: it came as a key
                    self._left = self._left.partition(END)[2]
                    return None
                before = len(self._left)
                self._more()
                if len(self._left) == before:  # Ctrl-D on an empty line
                    self._ended = False
                    return None
            text, _, self._left = self._left.partition("\n")
        except KeyboardInterrupt:
            self._left = ""
            return None
        finally:
            self._prompting = False
            self.take()
        return text

    def _soon(self) -> bool:
        return not self._ended and bool(select.select([self._descriptor], [], [], _SOON)[0])

    def _more(self) -> None:
        try:
            data = os.read(self._descriptor, _READ)
        except OSError:  # it hung up
            data = b""
        self._ended = not data
        self._left += self._decoder.decode(data)
