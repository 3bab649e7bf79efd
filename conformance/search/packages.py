"""Packages whose version differs between two environments. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ABSENT: Final = "none"
"""The version of a package that an environment does not have."""


class PackageMove(NamedTuple):
    """A package whose version differs.

    Attributes:
        package: Its name.
        before: Its version in the environment that is left, `none` if it is absent.
        after: Its version in the one that is gone to.
    """

    package: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return both versions in words."""
        return f"{self.package} {self.before} -> {self.after}"


def package_moves(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[PackageMove, ...]:
    """Return the packages whose version differs, by name.

    Args:
        before: Version by package.
        after: The same of the other environment.
    """
    return tuple(
        PackageMove(name, before.get(name, ABSENT), after.get(name, ABSENT))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )
