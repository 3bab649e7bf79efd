"""Tracebacks as artifacts: checked, and without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.tracebacks import traceback_artifact
from conformance.model.traceback import decode_traceback

FRAME: dict[str, Any] = {
    "file": "/a.py", "line": 3, "function": "f", "source": "login('canary-9f')", "library": "",
    "count": 1,
}  # fmt: skip


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In messages, notes, lines and paths, each text for itself."""
    monkeypatch.setenv("API_TOKEN", "canary-9f")
    told = {
        "type": "E", "message": "no canary-9f here\nhttps://me:word@host/x", "relation": "",
        "notes": ["canary-9f", "fine"],
        "frames": [FRAME, {**FRAME, "file": "/canary-9f/b.py", "source": ""}],
    }  # fmt: skip
    data = traceback_artifact([told])
    assert b"canary" not in data
    assert b"word" not in data
    (one,) = decode_traceback(data)
    assert (one.message, one.notes) == ("no *** here\nhttps://***@host/x", ("***", "fine"))
    assert [(frame.file, frame.source) for frame in one.frames] == [
        ("/a.py", "login('***')"), ("/***/b.py", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("told", [None, {}, [{"type": 3}], [{"frames": []}], "text"])
def test_what_is_no_traceback_is_refused(told: Any) -> None:
    """A job can write to its worker's channel."""
    with pytest.raises(ValueError, match=r"."):
        traceback_artifact(told)
