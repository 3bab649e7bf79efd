"""Which environment variables hold secrets, by their names."""

from __future__ import annotations

import pytest

from conformance.cells.masking import is_secret


@pytest.mark.parametrize("name", ["APITOKEN", "DBPASS", "SLACK_WEBHOOK_URL", "MYAPIKEY"])
def test_a_secret_named_in_one_word_is_a_secret(name: str) -> None:
    """A name without underscores hides nothing."""
    assert is_secret(name, "hunter22")


@pytest.mark.parametrize("name", ["BYPASS", "COMPASS", "TOKENIZERS_PARALLELISM", "AUTHOR", "PATH"])
def test_a_word_that_only_contains_one_is_no_secret(name: str) -> None:
    """Ordinary variables stay."""
    assert not is_secret(name, "ordinary")
