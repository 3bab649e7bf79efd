"""A program in a real terminal: a pseudo-tty, and the screen that it shows."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pexpect
import pyte

from tests.projects import ROOT
from tests.waiting import PATIENCE, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_QUIET = 0.05
"""Seconds without output after which a read gives up."""


class Terminal:
    """A `conformance` command in a terminal.

    Args:
        arguments: Arguments of the command.
        folder: Working directory.
        size: Columns and lines.
        env: Additional environment variables.
    """

    def __init__(
        self,
        *arguments: str,
        folder: Path,
        size: tuple[int, int] = (100, 30),
        env: Mapping[str, str] | None = None,
    ) -> None:
        columns, lines = size
        self._screen: Any = pyte.Screen(columns, lines)
        self._stream: Any = pyte.ByteStream(self._screen)
        self.raw = b""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        # Tests set COLUMNS for captured output; the size of the pseudo-tty must count instead.
        environment.pop("COLUMNS", None)
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "conformance", *arguments],
            cwd=str(folder),
            env={**environment, **(env or {})},
            dimensions=(lines, columns),
            timeout=PATIENCE,
        )
        # pexpect would wait 50 ms before each key.
        self.process.delaybeforesend = None

    @property
    def lines(self) -> list[str]:
        """Lines on the screen."""
        return [text.rstrip() for text in self._screen.display]

    @property
    def text(self) -> str:
        """Lines on the screen, as one text."""
        return "\n".join(self.lines)

    def press(self, keys: str) -> None:
        """Send keys."""
        self.process.send(keys)

    def wait_for(self, *words: str) -> str:
        """Wait until the screen shows some words, and return it."""
        end = time.monotonic() + PATIENCE
        while not all(word in self.text for word in words):
            assert time.monotonic() < end, f"{words} not within:\n{self.text}"
            if not self._take() and not self.process.isalive() and not self._take():
                assert all(word in self.text for word in words), f"{words} not at end:\n{self.text}"
        return self.text

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self._screen.resize(lines, columns)
        self.process.setwinsize(lines, columns)

    def close(self) -> None:
        """Close the terminal, as one closes a window, and wait for the end of the program."""
        spawned: Any = self.process
        spawned.ptyproc.fileobj.close()
        wait_for(lambda: not self.process.isalive())

    def wait_for_exit(self) -> int | None:
        """Wait for the end, and return the exit status; None if a signal ended it."""
        end = time.monotonic() + PATIENCE
        while self._take() or self.process.isalive():
            assert time.monotonic() < end, f"did not end:\n{self.text}"
        self.process.close()
        status: int | None = self.process.exitstatus
        return status

    def _take(self) -> bool:
        try:
            data: Any = self.process.read_nonblocking(65536, timeout=_QUIET)
        except pexpect.TIMEOUT:
            return False
        except pexpect.EOF:
            time.sleep(_QUIET)
            return False
        self.raw += data
        self._stream.feed(data)
        return True
