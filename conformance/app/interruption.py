"""Interruption: signals that ask a process to end act like Ctrl-C."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from conformance.cells.children import CHILDREN

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def interrupt_on_end_signals() -> Iterator[None]:
    """Treat a request to end, by a job scheduler or a closing terminal, like Ctrl-C.

    Each of them also ends the child processes that other threads wait for.
    """

    def interrupt(*_: object) -> None:
        CHILDREN.stop()
        raise KeyboardInterrupt

    replaced = {}
    usual = {signal.SIG_DFL, signal.default_int_handler}  # under nohup SIGHUP is ignored
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) in usual:
                replaced[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        CHILDREN.admit()
