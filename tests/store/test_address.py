"""Addresses of stores, without credentials in messages."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from conformance.errors import InfrastructureError, UsageError
from conformance.store.database import parse_address
from tests.store.conftest import open_store
from tests.store.servers import PASSWORD, Server

SECRET = "s3cret-word"  # noqa: S105 - made up


def test_address_of_a_file() -> None:
    """The name as given; the path relative to the working directory."""
    address = parse_address("reports/history.db")
    assert (address.name, address.file) == (
        "reports/history.db",
        Path.cwd() / "reports/history.db",
    )


def test_address_of_a_server() -> None:
    """Neither its name nor its representation has credentials."""
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
def test_invalid_address_is_a_usage_error(url: str) -> None:
    """The message has the expected form, not the given text."""
    with pytest.raises(UsageError, match=r"expected .*://USER:PASSWORD@HOST/DATABASE") as caught:
        parse_address(url)
    assert SECRET not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_missing_server_is_infra() -> None:
    """The message has its name, and what to check."""
    with pytest.raises(InfrastructureError) as caught:
        open_store(f"postgresql://keeper:{SECRET}@127.0.0.1:1/nights", wait=2)
    said = str(caught.value)
    assert said.startswith("postgresql://127.0.0.1:1/nights: ")
    assert said.endswith("check the address, and that the server runs")
    assert SECRET not in said


def test_refusing_server_is_infra_without_passwords(postgres: Server) -> None:
    """Neither the wrong nor the right password is shown."""
    for url in (postgres.url("none"), postgres.url(password=SECRET)):
        with pytest.raises(InfrastructureError, match="127") as caught:
            open_store(url)
        assert SECRET not in str(caught.value)
        assert PASSWORD not in str(caught.value)
