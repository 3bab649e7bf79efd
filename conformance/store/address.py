"""Addresses of stores: files, or databases named by URLs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote_plus

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from conformance.cells.secret_masking import mask_text
from conformance.errors import UsageError

SERVERS: Final = {"postgresql", "postgres", "postgresql+psycopg"}
"""Schemes of URLs of PostgreSQL."""
DRIVER: Final = "postgresql+psycopg"
_SECRET: Final = ("password", "passfile", "sslpassword")
MASK: Final = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a store.

    Attributes:
        name: What messages call it; never with a credential.
        url: For SQLAlchemy; not shown.
        file: Its file; None of a server's database.
    """

    name: str
    url: URL = field(repr=False)
    file: Path | None = None

    def hidden(self, text: str) -> str:
        """Return a text without the credentials of this address.

        Args:
            text: What a driver or a server said.
        """
        given = [self.url.password, *(self.url.query.get(name) for name in _SECRET)]
        secrets = {one for one in given if isinstance(one, str) and one}
        # The longest first: one may begin another.
        for secret in sorted(secrets | set(map(quote_plus, secrets)), key=len, reverse=True):
            text = text.replace(secret, MASK)
        return mask_text(text)


def parse_address(text: str) -> Address:
    """Return where a store is.

    Args:
        text: Path of a file, or `postgresql://user:password@host/database`.

    Raises:
        UsageError: If it is a URL that cannot be read, or of another kind of database.
    """
    if "://" not in text:
        file = Path(text).expanduser().absolute()
        return Address(name=text, url=URL.create("sqlite", database=str(file)), file=file)
    scheme = text.partition("://")[0]
    if scheme not in SERVERS:
        # What stands before `://` by mistake may be a credential.
        raise UsageError(
            "store ...://...: expected a path or postgresql://USER:PASSWORD@HOST/DATABASE"
        )
    try:
        url = make_url(text).set(drivername=DRIVER)
    except (ArgumentError, ValueError):  # what they say quotes the URL
        raise UsageError(
            f"store {scheme}://...: cannot be read; expected "
            f"{scheme}://USER:PASSWORD@HOST/DATABASE, in it @, : and / of a password as %40, "
            "%3A and %2F"
        ) from None
    shown = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return Address(name=shown.render_as_string(), url=url)
