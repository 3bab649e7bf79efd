"""Masking the secrets of the orchestrator in the frames of a worker."""

from __future__ import annotations

import numpy as np

from conformance.cells.secret_masking import Masker
from conformance.engine.workers.messages import NOTE, Masking
from conformance.worker.frames import Frame

MASKER = Masker({"APITOKEN": "hunter22", "AUTH_MODE": "execute"})


def test_an_error_is_masked_with_its_traceback() -> None:
    """Message, notes, paths and lines of source."""
    frame = {"file": "/hunter22/a.py", "line": 3, "source": "login('hunter22')"}
    error = {"type": "E", "message": "no hunter22", "frames": [{"notes": ["x"], "frames": [frame]}]}
    masking = Masking(MASKER)
    header, _ = masking.mask(Frame({"error": error}, b""))
    assert "hunter22" not in str(header)
    assert header["error"]["frames"][0]["frames"][0]["source"] == "login('***')"
    assert masking.make_notes() == (NOTE,)


def test_words_of_the_protocol_are_not_masked() -> None:
    """A secret may equal the name of a stage."""
    masking = Masking(MASKER)
    header, body = masking.mask(Frame({"stage": "execute"}, b""))
    assert (header, body) == ({"stage": "execute"}, b"")
    assert masking.make_notes() == ()


def test_a_value_keeps_its_size_and_a_text_does_not() -> None:
    """The header of a value states the bytes of each leaf."""
    leaf = np.array(["hunter22"]).tobytes()
    masking = Masking(MASKER)
    _, body = masking.mask(Frame({"value": {"leaves": []}}, leaf + b"'hunter22'"))
    assert body == b"*" * 32 + b"'********'"
    _, body = masking.mask(Frame({"artifact": "stdout"}, b"it is hunter22"))
    assert body == b"it is ***"
