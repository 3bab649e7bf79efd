"""Requirements that forbid an installation."""

from __future__ import annotations

import pytest

from conformance.ecosystem.refusal import LONGEST, shorten_refusal


@pytest.mark.parametrize(
    ("library", "reason", "expected"),
    [
        (
            "chex",
            "no environment satisfies it: chex==0.1.92 depends on jaxlib>=0.7.0 and b==1 and c",
            "chex==0.1.92 depends on jaxlib>=0.7.0 and b==1 and c",
        ),
        (
            "optax",
            "only optax<=0.2.8 is available and optax==0.2.8 depends on jax>=0.5.3, and so on",
            "optax==0.2.8 depends on jax>=0.5.3, and so on",
        ),
        (
            "brax",
            "all versions of gym have no usable wheels and brax==0.11.0 depends on gym",
            "no wheels of gym, which it requires",
        ),
        ("chex", "a wheel is missing", "a wheel is missing"),
    ],
)
def test_premise_about_the_library_is_left(library: str, reason: str, expected: str) -> None:
    """Of the proof that a resolver prints."""
    assert shorten_refusal(reason, library) == expected


def test_long_reason_is_cut() -> None:
    """A table has no room for more."""
    assert len(shorten_refusal("word " * 100, "chex")) == LONGEST + len(" ...")
