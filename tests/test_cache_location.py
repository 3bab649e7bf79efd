"""The location of the cache folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cache_folder import cache_root
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path


def test_environment_chooses_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CONFORMANCE_CACHE names it, and it is created."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "a" / "b"))
    assert cache_root() == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


def test_folder_that_cannot_be_created_is_infra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path, the reason, and the variable to set."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "file" / "below"))
    words = r"below: cannot be written: not a dir.*CONFORMANCE"
    with pytest.raises(InfrastructureError, match=words):
        cache_root()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at http://u:p@h/x", "at http://***@h/x"),
        ("https://token@h/ and ftp://a:b@c", "https://***@h/ and ftp://***@c"),
        ("http://h/a@b", "http://h/a@b"),
        ("mail a@b", "mail a@b"),
    ],
)
def test_credentials_are_masked(text: str, expected: str) -> None:
    """User and password are replaced, the rest of the URL stays."""
    assert mask_text(text) == expected
