"""Contents of goldens: readable, exact, tainted when of another normal form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.golden.contents import Content, decode, encode, is_same_ending, make_content
from conformance.model.outcome import Outcome
from tests.builders import ended, f32, ok, raised

if TYPE_CHECKING:
    from conformance.model.observation import Observation

SEEN = [
    ok(f32(1, 2)),
    ok(facts={"collectives": {"all-reduce": 1}}),
    raised("TypeError", "bad\n\nshape"),
    raised("TypeError", ""),
    ended(Outcome.CRASHED),
    ended(Outcome.TIMED_OUT),
]


@pytest.mark.parametrize("seen", SEEN)
def test_contents_are_decoded_unchanged(seen: Observation) -> None:
    """A decoded ending agrees with itself."""
    content = make_content(seen)
    if content.artifact != "ok":
        data, _ = encode(content)
        assert decode(content.artifact, data) == content
    assert is_same_ending(content, content)


def test_kinds_of_content_never_agree() -> None:
    """A value is no error, and a crash no exception."""
    contents = [make_content(seen) for seen in SEEN]
    agreeing = [
        (i, j)
        for i, a in enumerate(contents)
        for j, b in enumerate(contents)
        if is_same_ending(a, b)
    ]
    assert agreeing == [(i, i) for i in range(len(SEEN))]


def test_errors_are_readable() -> None:
    """A reviewer reads outcome, stage, type and the message in normal form."""
    data, _ = encode(make_content(raised("TypeError", "bad  shape\nat /a/b/case.py:12:3")))
    assert data.decode() == (
        "normaliser: 3\noutcome: raised\nstage: trace\ntype: TypeError\n\n"
        "bad shape\nat case.py:<n>\n"
    )


def test_another_normal_form_is_tainted() -> None:
    """Its message may differ for no reason of jax's, so it agrees with nothing."""
    content = make_content(raised())
    data, _ = encode(content)
    old = decode("error", data.replace(b"normaliser: 3", b"normaliser: 2"))
    assert old.tainted
    assert not is_same_ending(content, old)


def test_values_within_the_tolerance_are_one_content() -> None:
    """Their span is not split."""
    assert is_same_ending(Content(value=f32(1)), Content(value=f32(1.000001)))
    assert not is_same_ending(Content(value=f32(1)), Content(value=f32(1.1)))


@pytest.mark.parametrize("data", [b"", b"outcome: raised\n\nx", b"a\n\nb", b"\xff"])
def test_a_malformed_error_is_refused(data: bytes) -> None:
    """Neither missing nor unknown fields pass."""
    with pytest.raises(ValueError):  # noqa: PT011 - any reason will do, the store words it
        decode("error", data)


def test_a_large_value_is_a_safetensors_file() -> None:
    """Nobody reviews a thousand elements by eye."""
    content = Content(value=f32(*range(1000)))
    data, large = encode(content)
    assert large
    assert decode("value", data) == content
