"""URLs of the shared cache."""

from __future__ import annotations

import pytest

from conformance.errors import UsageError
from conformance.remote_cache.location import find_location, parse_cache_url


@pytest.mark.parametrize(
    "url",
    ["s3://bucket", "s3://bucket/a/b", "gs://b/x", "az://container/x", "file:///a/b", "memory://x"],
)
def test_urls_of_all_providers_are_accepted(url: str) -> None:
    """With and without a final slash."""
    assert parse_cache_url(url, "--cache") == url
    assert parse_cache_url(f"{url}/", "--cache") == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("bucket/prefix", "unknown scheme ''"),
        ("http://host/x", "unknown scheme 'http'"),
        ("s3:///prefix", "names no bucket"),
        ("file://host/x", "names no folder"),
        ("file:///", "names no folder"),
        ("s3://[", "is no URL"),
        ("s3://bucket/a b", "needs escaping"),
        ("s3://bucket/../x", "contains `..`"),
    ],
)
def test_a_malformed_url_is_refused(url: str, message: str) -> None:
    """Before anything runs."""
    with pytest.raises(UsageError, match=r"^--cache") as caught:
        parse_cache_url(url, "--cache")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "url", ["s3://key:hunter2@bucket/x", "az://c/x?sig=hunter2", "s3://b#hunter2"]
)
def test_credentials_are_refused_and_not_shown(url: str) -> None:
    """They come from the environment."""
    with pytest.raises(UsageError, match="credentials") as caught:
        parse_cache_url(url, "--cache")
    assert "hunter2" not in str(caught.value)


def test_the_variable_wins_over_the_setting() -> None:
    """And `none` over both."""
    url = {"CONFORMANCE_CACHE_URL": "s3://a"}
    assert find_location("s3://b", url) == ("s3://a", False)
    assert find_location("s3://b", {"CONFORMANCE_CACHE_WRITE": "1"}) == ("s3://b", True)
    assert find_location("s3://b", {"CONFORMANCE_CACHE_WRITE": "0"}) == ("s3://b", False)
    assert find_location("s3://b", {"CONFORMANCE_CACHE_URL": "none"}) is None
    assert find_location("", {}) is None


def test_an_error_names_the_origin_of_the_url() -> None:
    """The variable or the setting."""
    with pytest.raises(UsageError, match="CONFORMANCE_CACHE_URL"):
        find_location("", {"CONFORMANCE_CACHE_URL": "x"})
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        find_location("x", {})


def test_writing_needs_a_url() -> None:
    """The message names the places for it."""
    with pytest.raises(UsageError, match="--cache-write: no shared cache"):
        find_location("", {"CONFORMANCE_CACHE_WRITE": "1"})
