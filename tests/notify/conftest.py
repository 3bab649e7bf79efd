"""A server of GitHub's REST, and a client that does not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.notify import github
from tests.notify.github_server import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.notify.github_server import GithubServer


@pytest.fixture
def server() -> Iterator[GithubServer]:
    """A server of one repository."""
    yield from served()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(github, "BETWEEN_WRITES", 0)
    monkeypatch.setattr(github, "BACKOFF", 0.01)
    monkeypatch.setattr(github, "SECONDARY_WAIT", 0.01)
