"""Where stores are, and that nobody is told how to get in."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from conformance.errors import InfrastructureError, UsageError
from conformance.store.database import parse_address
from tests.store.conftest import opened
from tests.store.servers import PASSWORD, Server

SECRET = "s3cret-word"  # noqa: S105 - made up


def test_a_file() -> None:
    """Named as it was given; below the working directory unless it is absolute."""
    address = parse_address("reports/history.db")
    assert (address.name, address.file) == (
        "reports/history.db",
        Path.cwd() / "reports/history.db",
    )


def test_a_server() -> None:
    """Its name has no credentials, neither has what is printed of it for developers."""
    url = f"postgresql://keeper:{SECRET}@db.example.org:5433/nights?sslpassword={SECRET}2"
    address = parse_address(url)
    assert address.name == "postgresql://db.example.org:5433/nights"
    assert address.file is None
    assert SECRET not in repr(address)
    said = address.mask(f"at {url}: password {SECRET} refused, {SECRET}2 too")
    assert said.partition(": ")[2] == "password *** refused, *** too"
    assert SECRET not in said


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://keeper:{SECRET}@host/nights",
        f"postgresql://keeper:{SECRET}@host:port/nights",
        f"postgresql://keeper:{SECRET}@[::1/nights",
        f"sqlite://{SECRET}",
        f"keeper:{SECRET}@host://nights",
    ],
)
def test_what_cannot_be_read(url: str) -> None:
    """Told what is expected, not what was given."""
    with pytest.raises(UsageError, match=r"expected .*://USER:PASSWORD@HOST/DATABASE") as caught:
        parse_address(url)
    assert SECRET not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_is_not_there() -> None:
    """Its name, and what to look at."""
    with pytest.raises(InfrastructureError) as caught:
        opened(f"postgresql://keeper:{SECRET}@127.0.0.1:1/nights", wait=2)
    said = str(caught.value)
    assert said.startswith("postgresql://127.0.0.1:1/nights: ")
    assert said.endswith("check the address, and that the server runs")
    assert SECRET not in said


def test_a_server_that_refuses(postgres: Server) -> None:
    """A wrong password is not told either, nor is the right one."""
    for url in (postgres.url("none"), postgres.url(password=SECRET)):
        with pytest.raises(InfrastructureError, match="127") as caught:
            opened(url)
        assert SECRET not in str(caught.value)
        assert PASSWORD not in str(caught.value)
