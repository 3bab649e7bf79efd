"""Logs: complete lines only, also after a kill and on a full disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.json_lines import MalformedLineError, append_line, decode_log, open_log

if TYPE_CHECKING:
    from pathlib import Path


@given(st.lists(st.integers(0, 10**6), max_size=5), st.integers(0, 40))
def test_a_log_that_is_cut_anywhere_keeps_its_complete_lines(numbers: list[int], cut: int) -> None:
    """An unfinished last line is ignored."""
    content = "".join(f"{number}\n" for number in numbers).encode()[:cut]
    assert decode_log(content, int) == numbers[: content.count(b"\n")]


def test_a_malformed_line_is_named() -> None:
    """By its number, from 1."""
    with pytest.raises(MalformedLineError, match="line 2: ") as raised:
        decode_log(b"1\nx\n3\n", int)
    assert raised.value.number == 2


def test_a_line_does_not_continue_an_unfinished_one(tmp_path: Path) -> None:
    """The half line of a killed process is removed."""
    log = tmp_path / "log"
    log.write_bytes(b"1\n2")
    descriptor = open_log(log)
    append_line(descriptor, b"3", durable=True)
    os.close(descriptor)
    assert log.read_bytes() == b"1\n3\n"


def test_a_full_disk_leaves_no_part_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is that of the disk."""
    log = tmp_path / "log"
    descriptor = open_log(log)
    append_line(descriptor, b"1", durable=False)
    write = os.write

    def fill(descriptor: int, data: bytes) -> int:
        if len(data) < 10:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:10])

    monkeypatch.setattr(os, "write", fill)
    with pytest.raises(OSError, match="No space left"):
        append_line(descriptor, b"234567890123", durable=False)
    os.close(descriptor)
    assert log.read_bytes() == b"1\n"
