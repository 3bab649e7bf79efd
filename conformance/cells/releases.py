"""The table of jax releases, `matrix/releases.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from conformance.errors import InfrastructureError, UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date
    from pathlib import Path

FILE_NAME = "releases.toml"
PYTHONS = ("3.11", "3.12", "3.13")
REFRESH = "refresh the table with: conformance matrix --refresh"
CHOOSE_NIGHTLIES = (
    "set CONFORMANCE_NIGHTLY_INDEX, or nightly-index below [tool.conformance] in pyproject.toml"
)
NO_NIGHTLIES = (
    f"no nightly index is configured; {CHOOSE_NIGHTLIES}; or install the nightly yourself and "
    "select it with path:/env/bin/python"
)


class Release(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A jax release.

    Attributes:
        version: Version of jax.
        date: First time at which it could be installed: the later upload of jax and jaxlib.
        requires_python: PEP 440 specifier of the Pythons that jax admits.
        jaxlib: Version of jaxlib to install with it.
        jaxlib_requires: PEP 440 specifier of the jaxlibs that jax admits.
        pythons: Pythons that jaxlib has wheels for, `major.minor`, oldest first.
    """

    version: str
    date: datetime
    requires_python: str
    jaxlib: str
    jaxlib_requires: str
    pythons: tuple[str, ...]

    def admits(self, python: str) -> bool:
        """Say whether the release can be installed on a Python, `major.minor`."""
        # A specifier is about full versions, e.g. >=3.11.1; .999 is later than any patch release.
        newest_patch = f"{python}.999"
        return python in self.pythons and SpecifierSet(self.requires_python).contains(newest_patch)


class Yanked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release that was yanked from the index.

    Attributes:
        version: Version of jax.
        reason: Reason, as given in the index.
    """

    version: str
    reason: str = ""


class Nightlies(Protocol):
    """An index of nightlies; every property and method may raise if it does not answer.

    A protocol, because `nightly_index` imports this module.
    """

    @property
    def url(self) -> str:
        """URL of the index."""
        ...

    @property
    def versions(self) -> tuple[str, ...]:
        """Version of jax of each nightly, oldest first."""
        ...

    def get(self, version: str) -> Release:
        """Return a nightly with its jaxlib, in the form of a release."""
        ...

    def find_newest(self, package: str, night: date) -> str | None:
        """Return the newest nightly of a package that is not later than a date, if any."""
        ...


# Unknown keys are permitted: the file is also the matrix `releases`.
class _File(msgspec.Struct, kw_only=True):
    packages: tuple[str, ...] = ()
    release: tuple[Release, ...] = ()
    yanked: tuple[Yanked, ...] = ()


# No slots: `cached_property` stores its values in the instance.
@dataclass(frozen=True, kw_only=True)
class Releases:
    """The known releases, oldest first.

    Attributes:
        rows: Releases in version order.
        packages: Packages that every cell has in addition to jax, if they can be resolved.
        yanked: Reason by yanked version.
        path: File of the table.
        find_nightlies: Returns the index of nightlies, which are not in `rows`; None for no index.
    """

    rows: tuple[Release, ...]
    path: Path
    find_nightlies: Callable[[], Nightlies] | None = None
    packages: tuple[str, ...] = ()
    yanked: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _by_version(self) -> Mapping[str, Release]:
        return {row.version: row for row in self.rows}

    @cached_property
    def versions(self) -> tuple[str, ...]:
        """Versions of the releases, oldest first."""
        return tuple(row.version for row in self.rows)

    @property
    def newest(self) -> Release:
        """The newest release."""
        return self.rows[-1]

    @cached_property
    def nightlies(self) -> Nightlies:
        """The index of nightlies.

        Raises:
            InfrastructureError: If there is none.
        """
        if self.find_nightlies is None:
            raise InfrastructureError(NO_NIGHTLIES)
        return self.find_nightlies()

    def sort_by_distance(self, version: str) -> tuple[str, ...]:
        """Return the other versions by distance from a version; the older of two as near is first.

        Args:
            version: Exact version; the result is empty if it is unknown.
        """
        if version not in self.versions:
            return ()
        center = self.versions.index(version)
        indices = sorted(range(len(self.versions)), key=lambda n: (abs(n - center), n))
        return tuple(self.versions[n] for n in indices[1:])

    def get(self, version: str) -> Release:
        """Return a release by its version.

        Args:
            version: Exact version, in any spelling that PEP 440 admits; that of a nightly is
                looked up in the index of nightlies.

        Raises:
            UsageError: If the version is unknown; the message names known ones.
            InfrastructureError: If it is a nightly, and the index does not answer.
        """
        try:
            wanted = str(Version(version))
        except ValueError:
            wanted = version
        if is_nightly(wanted):
            return self.nightlies.get(wanted)
        if (row := self._by_version.get(wanted)) is not None:
            return row
        if wanted in self.yanked:
            raise UsageError(
                f"jax release {wanted!r} was yanked: {self.yanked[wanted] or 'no reason given'}"
            )
        if _is_older(wanted, self.versions[0]):
            raise UsageError(
                f"jax {version} is older than the release table, which begins with "
                f"{self.versions[0]} ({self.path}); expected that release or a later one, or "
                "path:PYTHON of an environment that has the older one"
            )
        raise UsageError(
            f"unknown jax release {version!r}{did_you_mean(version, self.versions)}; "
            f"known are {self.versions[0]} to {self.versions[-1]} ({self.path}); {REFRESH}"
        )

    def find_python(self, version: str) -> str:
        """Return the default Python of a release's cells.

        Args:
            version: Version of a known release.

        Returns:
            The lowest of 3.11, 3.12 and 3.13 that the release admits, otherwise its newest.

        Raises:
            UsageError: If the release is unknown.
        """
        release = self.get(version)
        # The lowest: most releases share it, so a comparison of these varies no Python.
        return next(filter(release.admits, PYTHONS), release.pythons[-1])


def is_nightly(release: str) -> bool:
    """Say whether a release is a nightly, that is, a development version."""
    try:
        return Version(release).is_devrelease
    except ValueError:  # a `path:` release
        return False


def _is_older(version: str, first: str) -> bool:
    try:
        return Version(version) < Version(first)
    except InvalidVersion:
        return False


def load_releases(path: Path) -> Releases:
    """Read the table of releases.

    Args:
        path: `releases.toml`, or the matrix folder that contains it.

    Raises:
        InfrastructureError: If the file cannot be read.
        UsageError: If it is not a table of releases.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(
            f"{file}: cannot read: {describe_os_error(error)}; {REFRESH}"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not TOML: {error}; {REFRESH}") from error
    releases = parse_releases(text, file)
    if not releases.rows:
        raise UsageError(f"{file}: no [[release]] in it, expected one or more; {REFRESH}")
    return releases


def parse_releases(text: str, path: Path) -> Releases:
    """Read the table of releases from its text.

    Args:
        text: TOML text.
        path: File of the text, for messages.

    Returns:
        The table, in version order; possibly empty.

    Raises:
        UsageError: If it is not a table of releases.
    """
    try:
        file = msgspec.toml.decode(text, type=_File)
        rows = tuple(sorted(file.release, key=lambda row: Version(row.version)))
    except (*MALFORMED, InvalidVersion) as error:
        raise UsageError(f"{path}: {error}; {REFRESH}") from error
    return Releases(
        rows=rows,
        packages=file.packages,
        yanked={entry.version: entry.reason for entry in file.yanked},
        path=path,
    )
