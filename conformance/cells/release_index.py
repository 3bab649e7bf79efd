"""Refresh of `releases.toml` from the package index."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC
from http import HTTPStatus
from typing import TYPE_CHECKING

import requests
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from conformance.cells.package_index import (
    INDEX_VARIABLES,
    Wheel,
    open_index,
    read_requirement,
    read_wheels,
)
from conformance.cells.releases import Release, Releases, Yanked, parse_releases
from conformance.errors import InfrastructureError, UsageError
from conformance.files import describe_os_error, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pypi_simple import PyPISimple

# The oldest release that the kit supports.
OLDEST = "0.4.30"
_ROWS = re.compile(r"^\[\[(release|yanked)\]\]", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseUpdate:
    """The changes of a refresh.

    Attributes:
        added: New releases in the table.
        removed: Releases that were removed from the table because they were yanked.
        releases: The new table.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    releases: Releases


def find_index(url: str | None = None) -> str:
    """Return a URL if given, else that of the environment, else that of PyPI.

    Args:
        url: URL of the package index, None if the user names none.
    """
    return next(filter(None, [url, *map(os.environ.get, INDEX_VARIABLES)]), PYPI_SIMPLE_ENDPOINT)


def refresh_releases(path: Path, *, url: str | None = None, oldest: str = OLDEST) -> ReleaseUpdate:
    """Update the table of releases from the package index.

    The text above the first `[[release]]` is not changed, comments included. Pre-releases are
    left out, yanked releases are marked as such.

    Args:
        path: `releases.toml`, which must exist.
        url: URL of the package index; by default that of the environment.
        oldest: First release to list.

    Raises:
        InfrastructureError: If the index cannot be reached or read, or the file cannot be written.
        UsageError: If the file is not a valid table of releases.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot read: {describe_os_error(error)}") from error
    before = parse_releases(text, path)
    with open_index(find_index(url)) as client:
        rows, yanked = _read_index(client, before, Version(oldest))
    # The file is not written from data as a whole: that would lose its comments.
    first = _ROWS.search(text)
    preamble = text[: first.start()] if first else text.rstrip() + "\n\n"
    text = preamble + format_rows(rows, yanked)
    write_atomically(path, text.encode())
    after = parse_releases(text, path)
    return ReleaseUpdate(
        added=tuple(v for v in after.versions if v not in before.versions),
        removed=tuple(v for v in before.versions if v not in after.versions),
        releases=after,
    )


def list_versions(package: str, *, url: str | None = None) -> tuple[str, ...]:
    """Return the final versions of a package that have wheels and are not yanked, in order.

    Args:
        package: Name of the package.
        url: URL of the package index; by default that of the environment.

    Raises:
        InfrastructureError: If the index cannot be reached or read.
        UsageError: If it has no such package.
    """
    with open_index(find_index(url)) as client:
        try:
            wheels = read_wheels(client, package)
        except requests.HTTPError as error:
            # Any other status is a failure of the index, which `open_index` reports.
            if error.response is None or error.response.status_code != HTTPStatus.NOT_FOUND:
                raise
            raise UsageError(f"{package}: the package index has no such package") from None
    admitted = (v for v, found in wheels.items() if not found[0].package.is_yanked)
    return tuple(map(str, sorted(admitted)))


def format_rows(rows: Iterable[Release], yanked: Iterable[Yanked]) -> str:
    """Return the rows of the table as TOML, the same text for the same rows."""
    blocks = [
        f"[[release]]\nversion = {_quote(row.version)}\n"
        f"date = {row.date.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}\n"
        f"requires_python = {_quote(row.requires_python)}\njaxlib = {_quote(row.jaxlib)}\n"
        f"jaxlib_requires = {_quote(row.jaxlib_requires)}\n"
        f"pythons = [{', '.join(map(_quote, row.pythons))}]\n"
        for row in rows
    ]
    blocks += [
        f"[[yanked]]\nversion = {_quote(row.version)}\nreason = {_quote(row.reason)}\n"
        for row in yanked
    ]
    return "\n".join(blocks)


def _read_index(
    client: PyPISimple, before: Releases, oldest: Version
) -> tuple[list[Release], list[Yanked]]:
    jax = {v: w for v, w in read_wheels(client, "jax").items() if v >= oldest}
    jaxlib = read_wheels(client, "jaxlib")
    known = {row.version: row for row in before.rows}
    rows, yanked = [], []
    for version, wheels in sorted(jax.items()):
        package = wheels[0].package
        if package.is_yanked:
            yanked.append(Yanked(version=str(version), reason=package.yanked_reason or ""))
        else:
            # The metadata of a release never change: only new releases cost a request.
            row = known.get(str(version))
            requires = row.jaxlib_requires if row else read_requirement(client, package, "jaxlib")
            rows.append(_make_release(wheels[0], requires, jaxlib))
    return rows, yanked


def _make_release(wheel: Wheel, requires: str, jaxlib: Mapping[Version, list[Wheel]]) -> Release:
    admitted = [
        version
        for version, wheels in jaxlib.items()
        if SpecifierSet(requires).contains(version) and not wheels[0].package.is_yanked
    ]
    if not admitted:
        raise InfrastructureError(
            f"package index: jax {wheel.version} requires jaxlib {requires}, none has wheels"
        )
    # Old ranges have no upper bound: they would admit a jaxlib that is years newer.
    chosen = max([v for v in admitted if v <= wheel.version] or admitted)
    libs = jaxlib[chosen]
    pythons = sorted(frozenset().union(*(lib.pythons for lib in libs)), key=Version)
    return Release(
        version=str(wheel.version),
        # The earliest wheel: platforms that were built later do not delay the release.
        date=max(wheel.uploaded, min(lib.uploaded for lib in libs)),
        requires_python=wheel.package.requires_python or "",
        jaxlib=str(chosen),
        jaxlib_requires=requires,
        pythons=tuple(pythons),
    )


def _quote(text: str) -> str:
    # A string of JSON is also a basic string of TOML.
    return json.dumps(text, ensure_ascii=False)
