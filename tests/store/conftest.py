"""Stores in a file, and in a PostgreSQL database."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from conformance.store.database import parse_address
from conformance.store.store import Store
from tests.store.servers import NoServerError, Server, server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    NewStore = Callable[[], Store]

NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server of this session's own."""
    try:
        with server() as started:
            yield started
    except NoServerError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store is to be, of each kind."""
    return new_place(request, tmp_path)


def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where another new store is to be, of the kind of a parameter."""
    if request.param == "file":
        return str(tmp_path / f"history{next(NUMBERS)}.db")
    started: Server = request.getfixturevalue("postgres")
    return started.new_database(f"history{next(NUMBERS)}")


@pytest.fixture(params=["file", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """What makes new stores, of each kind."""
    return lambda: opened(new_place(request, tmp_path))


@pytest.fixture
def store(where: str) -> Store:
    """A new store, of each kind."""
    return opened(where)


def opened(where: str, wait: float = 30) -> Store:
    """Open a store in which nothing needs mending."""
    return Store(parse_address(where), pytest.fail, wait)
