"""The choice of a library's version among those of a package index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from packaging.version import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedVersion:
    """A version of a library that is not yanked.

    Attributes:
        version: The version.
        uploaded: Time of its first upload.
        requires_python: PEP 440 specifier of the Pythons that it admits, empty for any.
    """

    version: Version
    uploaded: datetime
    requires_python: str = ""

    def admits(self, python: str) -> bool:
        """Return whether it can be installed on a Python, `major.minor`."""
        try:
            # A specifier is about full versions, e.g. >=3.11.1; .999 is later than any patch.
            return SpecifierSet(self.requires_python).contains(f"{python}.999")
        except InvalidSpecifier:  # pip ignores such a specifier, too
            return True


def choose_version(
    published: Iterable[PublishedVersion], python: str, until: datetime | None = None
) -> str:
    """Return the newest version for a Python, empty if there is none.

    Args:
        published: Versions of the library.
        python: Python version, `major.minor`.
        until: Time after which uploads do not count; None for no limit.
    """
    versions = [
        one.version
        for one in published
        if (until is None or one.uploaded < until) and one.admits(python)
    ]
    # As pip does: pre-releases only count where there is no other version.
    final = [version for version in versions if not version.is_prerelease]
    return str(max(final or versions)) if versions else ""
