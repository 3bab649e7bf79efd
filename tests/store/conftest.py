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
    """A PostgreSQL server for the session; skips without one."""
    try:
        with server() as started:
            yield started
    except NoServerError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a new store: a file, then a PostgreSQL database."""
    return new_place(request, tmp_path)


def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of another new store, of the kind in the parameter of the fixture."""
    if request.param == "file":
        return str(tmp_path / f"history{next(NUMBERS)}.db")
    started: Server = request.getfixturevalue("postgres")
    return started.new_database(f"history{next(NUMBERS)}")


@pytest.fixture(params=["file", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """A function that opens new stores, of each kind."""
    return lambda: open_store(new_place(request, tmp_path))


@pytest.fixture
def store(where: str) -> Store:
    """A new store, of each kind."""
    return open_store(where)


def open_store(where: str, wait: float = 30) -> Store:
    """Open a store, and fail if it needs a repair."""
    return Store(parse_address(where), pytest.fail, wait)
