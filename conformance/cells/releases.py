"""The jax releases known to this project: `matrix/releases.toml` as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003  (msgspec reads the annotations at run time)
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
    """One jax release.

    Attributes:
        version: Its version.
        date: When it could first be installed: the later upload of its wheel and its jaxlib's.
        requires_python: PEP 440 specifier of the Pythons that jax admits.
        jaxlib: The jaxlib that goes with it.
        jaxlib_requires: PEP 440 specifier of the jaxlibs it admits.
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
        # A specifier such as >=3.11 is about full versions; .999 stands for "some patch of".
        newest_patch = f"{python}.999"
        return python in self.pythons and SpecifierSet(self.requires_python).contains(newest_patch)


class Yanked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release that was withdrawn.

    Attributes:
        version: Its version.
        reason: Why, as the index has it.
    """

    version: str
    reason: str = ""


class Nightlies(Protocol):
    """An index of nightlies; whatever is asked of it may raise if it does not answer."""

    @property
    def url(self) -> str:
        """Where it is."""
        ...

    @property
    def versions(self) -> tuple[str, ...]:
        """The jax of each night, oldest first."""
        ...

    def get(self, version: str) -> Release:
        """Return a night's jax, and the jaxlib that goes with it, as if it were a release."""
        ...

    def newest(self, package: str, night: date) -> str | None:
        """Return the newest nightly of a package that is not later than a night, if any."""
        ...


class _File(msgspec.Struct, kw_only=True):
    packages: tuple[str, ...] = ()
    release: tuple[Release, ...] = ()
    yanked: tuple[Yanked, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The known releases, oldest first.

    Attributes:
        rows: The releases in version order.
        packages: What every cell has beside jax, where the resolver admits it.
        yanked: Reason by withdrawn version.
        path: File they were read from.
        find_nightlies: Returns the index of nightlies, which are no rows; None if there is none.
    """

    rows: tuple[Release, ...]
    path: Path
    find_nightlies: Callable[[], Nightlies] | None = None
    packages: tuple[str, ...] = ()
    yanked: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def versions(self) -> tuple[str, ...]:
        """Versions, oldest first."""
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

    def nearest_to(self, version: str) -> tuple[str, ...]:
        """Return the other versions by their distance from one, the older first of two as near.

        Args:
            version: Exact version; of one that is no known release there are none.
        """
        if version not in self.versions:
            return ()
        here = self.versions.index(version)
        near = sorted(range(len(self.versions)), key=lambda n: (abs(n - here), n))
        return tuple(self.versions[n] for n in near[1:])

    def get(self, version: str) -> Release:
        """Return a release by its version.

        Args:
            version: Exact version, any spelling PEP 440 admits; that of a nightly is looked up
                in the index of nightlies.

        Returns:
            The release.

        Raises:
            UsageError: If it is not known; the message says what is.
            InfrastructureError: If it is a nightly, and their index does not answer.
        """
        try:
            wanted = str(Version(version))
        except ValueError:
            wanted = version
        if is_nightly(wanted):
            return self.nightlies.get(wanted)
        for row in self.rows:
            if row.version == wanted:
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

    def python_for(self, version: str) -> str:
        """Return the Python a release runs on unless a cell says otherwise.

        Args:
            version: A known release.

        Returns:
            The lowest of 3.11, 3.12 and 3.13 that the release admits, else its newest.

        Raises:
            UsageError: If the release is not known.
        """
        release = self.get(version)
        return next(filter(release.admits, PYTHONS), release.pythons[-1])


def is_nightly(release: str) -> bool:
    """Say whether a release is a nightly: a development version."""
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
        path: `releases.toml`, or the matrix folder that holds it.

    Returns:
        The table, in version order.

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
        path: File it comes from, for messages.

    Returns:
        The table, in version order; it may be empty.

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
