"""An index of nightlies: their dates, and the jaxlib that matches the jax of each."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from http import HTTPStatus
from threading import RLock
from typing import TYPE_CHECKING, Final

import requests
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.cells.nightly import NotInstallableError, parse_night, suggest_nights
from conformance.cells.package_index import (
    open_index,
    read_metadata,
    read_nightly_wheels,
    read_requirement,
)
from conformance.cells.releases import CHOOSE_NIGHTLIES, Release
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pypi_simple import DistributionPackage

    from conformance.cells.package_index import Wheel

VARIABLE: Final = "CONFORMANCE_NIGHTLY_INDEX"
PUBLIC: Final = "https://us-python.pkg.dev/ml-oss-artifacts-published/jax/simple/"
"""Index of the nightlies that JAX publishes, according to its installation guide."""
ERA: Final = timedelta(days=2)
"""Time until all wheels of a nightly are uploaded: they arrive over hours."""


class NightlyIndex:
    """An index of nightlies, read on first use.

    Args:
        find_url: Returns the URL in the project's settings, empty for none. The environment
            variable takes precedence; the default is JAX's own index.
        released: Known releases: a nightly without a jaxlib may match a released jaxlib.
        until: Date of the last nightly to use, None for no limit.
    """

    def __init__(
        self,
        find_url: Callable[[], str],
        released: Sequence[Release] = (),
        until: date | None = None,
    ) -> None:
        self._find_url = find_url
        self._until = until or date.max
        self._released = released
        # Reentrant: a row is read under it, and reads the wheels of jaxlib and others under it.
        self._reading = RLock()
        self._wheels_of: dict[str, Mapping[Version, Sequence[Wheel]]] = {}
        self._rows: dict[Version, Release] = {}
        self._failed: dict[str, str] = {}

    @cached_property
    def url(self) -> str:
        """URL of the index.

        Raises:
            UsageError: If the configured text is not a URL.
        """
        url = os.environ.get(VARIABLE) or self._find_url() or PUBLIC
        if not url.startswith(("http://", "https://")):
            raise UsageError(
                f"nightly index {mask_text(url)!r}: expected http(s)://; {CHOOSE_NIGHTLIES}"
            )
        return url

    @cached_property
    def versions(self) -> tuple[str, ...]:
        """Version of jax of each nightly, oldest first, one per date; some cannot be installed.

        Raises:
            UsageError: If the configured text is not a URL.
            InfrastructureError: If it cannot be reached or read, or has no nightly of jax.
        """
        known = ((parse_night(v), str(v)) for v in sorted(self._get_wheels("jax")))
        # Ascending: of two versions of one date the higher one counts.
        nights = {night: version for night, version in known if night and night <= self._until}
        if not nights:
            raise InfrastructureError(
                f"{self._name} has no nightly of jax, expected wheels like "
                f"jax-0.8.3.dev20251120-py3-none-any.whl; {CHOOSE_NIGHTLIES}"
            )
        return tuple(sorted(nights.values(), key=Version))

    def get(self, version: str) -> Release:
        """Return a nightly with its jaxlib, in the form of a release.

        The jaxlib is that of the same date, otherwise the newest before it that the jax admits.

        Args:
            version: Version of a nightly.

        Raises:
            NotInstallableError: If no jaxlib matches it, or its wheel was deleted.
            UsageError: If there is no such nightly, or the configured text is not a URL.
            InfrastructureError: If the index cannot be reached or read.
        """
        wanted = Version(version)
        with self._reading:
            if wanted not in self._rows:
                with self._remember_failure(version):
                    self._rows[wanted] = self._read_row(wanted)
            return self._rows[wanted]

    @property
    def _name(self) -> str:
        return f"nightly index {mask_text(self.url)}"

    @contextmanager
    def _remember_failure(self, key: str) -> Iterator[None]:
        """Raise an earlier failure again, so that no thread waits for a timeout twice."""
        # Of the same type as the first time: its jobs are `infra` as well.
        if key in self._failed:
            raise InfrastructureError(self._failed[key])
        try:
            yield
        except InfrastructureError as error:
            self._failed[key] = str(error)
            raise

    def find_newest(self, package: str, night: date) -> str | None:
        """Return the newest nightly of a package that is not later than a date, if any."""
        known = (v for v in self._get_wheels(package) if (day := parse_night(v)) and day <= night)
        found = max(known, default=None)
        return None if found is None else str(found)

    def _read_row(self, wanted: Version) -> Release:
        night = parse_night(wanted)
        wheels = self._get_wheels("jax").get(wanted)
        if night is None or wheels is None:
            raise UsageError(
                f"jax {wanted}: no such nightly; {suggest_nights(self.versions, night)}"
            )
        python, requires = self._find_requirements(wanted, wheels[0].package)
        jaxlib, pythons = self._find_jaxlib(wanted, night, requires)
        return Release(
            version=str(wanted),
            date=_make_noon(night),
            requires_python=python,
            jaxlib=jaxlib,
            jaxlib_requires=requires,
            pythons=pythons,
        )

    def _find_requirements(self, jax: Version, package: DistributionPackage) -> tuple[str, str]:
        """Return the specifiers of Python and jaxlib of a nightly of jax."""
        python = package.requires_python
        # Metadata are a request per wheel: not needed if the jaxlib has the same version.
        requires = f"=={jax}" if jax in self._get_wheels("jaxlib") else None
        if python is not None and requires is not None:
            return python, requires
        with open_index(self.url, CHOOSE_NIGHTLIES, self._name) as client:
            try:
                if python is None:
                    python = str(read_metadata(client, package).get("Requires-Python", ""))
                return python, requires or read_requirement(client, package, "jaxlib")
            except requests.HTTPError as error:
                if not _is_gone(error):
                    raise
                raise NotInstallableError(
                    f"jax {jax}: cannot be installed: the index lists {package.filename} but no "
                    "longer has it"
                ) from error

    def _find_jaxlib(self, jax: Version, night: date, requires: str) -> tuple[str, tuple[str, ...]]:
        """Return the jaxlib that matches a nightly of jax, and the Pythons that it is built for."""
        known = {
            Version(row.jaxlib): frozenset(row.pythons)
            for row in self._released
            # A jaxlib released later did not exist for the users of that nightly.
            if row.date < _make_noon(night) + ERA
        }
        for version, wheels in self._get_wheels("jaxlib").items():
            day = parse_night(version)
            if day is not None and day <= night:
                known[version] = frozenset().union(*(wheel.pythons for wheel in wheels))
        # A nightly is a pre-release, which a specifier excludes by default.
        specifier = SpecifierSet(requires, prereleases=True)
        # As for releases: old requirements have no upper bound, and would admit a newer jaxlib.
        admitted = [v for v in known if v <= jax and specifier.contains(v)]
        if not admitted:
            raise NotInstallableError(
                f"jax {jax}: cannot be installed: it requires jaxlib {requires}, and the "
                "index has none of that date or before"
            )
        return str(max(admitted)), tuple(sorted(known[max(admitted)], key=Version))

    def _get_wheels(self, project: str) -> Mapping[Version, Sequence[Wheel]]:
        with self._reading:
            if project not in self._wheels_of:
                with self._remember_failure(project):
                    self._wheels_of[project] = self._read(project)
            return self._wheels_of[project]

    def _read(self, project: str) -> Mapping[Version, Sequence[Wheel]]:
        with open_index(self.url, CHOOSE_NIGHTLIES, self._name) as client:
            try:
                return read_nightly_wheels(client, project)
            except requests.HTTPError as error:
                # An index without jax is a wrong URL; libtpu and jaxlib may be missing.
                if project == "jax" or not _is_gone(error):
                    raise
                return {}


def _is_gone(error: requests.HTTPError) -> bool:
    gone = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
    return error.response is not None and error.response.status_code in gone


def _make_noon(night: date) -> datetime:
    # At noon UTC, which is on the same date in nearly every time zone.
    return datetime(night.year, night.month, night.day, 12, tzinfo=UTC)
