"""Upstream threads and commits."""

from __future__ import annotations

import pytest

from conformance.model.upstream import find_thread_url


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("jax-ml/jax#123", "https://github.com/jax-ml/jax/issues/123"),
        ("jax-ml/jax@0123456789ab", "https://github.com/jax-ml/jax/commit/0123456789ab"),
        ("jax-ml/jax@main", ""),
        ("https://example.org/a", "https://example.org/a"),
        ("javascript:alert(1)", ""),
        ("jax-ml/jax#abc", ""),
        ("a#1", ""),
        ("", ""),
    ],
)
def test_a_thread_has_its_upstream_address(source: str, address: str) -> None:
    """What is no thread and no address is not made a link."""
    assert find_thread_url(source) == address
