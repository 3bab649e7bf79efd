"""Requirements that forbid an installation."""

from __future__ import annotations

import pytest

from conformance.ecosystem.refusal import LONGEST, shorten_refusal


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (
            "no environment satisfies it: chex==0.1.92 depends on jaxlib>=0.7.0 and b==1 and c",
            "chex==0.1.92 depends on jaxlib>=0.7.0 and b==1 and c",
        ),
        (
            "only optax<=0.2.8 is available and optax==0.2.8 depends on jax>=0.5.3, and so on",
            "optax==0.2.8 depends on jax>=0.5.3, and so on",
        ),
        ("a wheel is missing", "a wheel is missing"),
    ],
)
def test_premise_about_the_library_is_left(reason: str, expected: str) -> None:
    """Of the proof that a resolver prints."""
    assert shorten_refusal(reason, expected.partition("=")[0]) == expected


def test_long_reason_is_cut() -> None:
    """A table has no room for more."""
    assert len(shorten_refusal("word " * 100, "chex")) == LONGEST + len(" ...")
