"""Reading the package index: wheels, their upload times, and what a wheel requires."""

from __future__ import annotations

import email.parser
import re
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from pypi_simple import (
    ACCEPT_JSON_PREFERRED,
    DistributionPackage,
    NoMetadataError,
    ProjectPage,
    PyPISimple,
    RepositoryPage,
    UnsupportedRepoVersionError,
)

from conformance.cells.nightly import night_of
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from email.message import Message

    from packaging.version import Version

INDEX_VARIABLES = ("CONFORMANCE_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>: ")
TIMEOUT = 30.0
"""Seconds in which an index must answer, or go on answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel of the index.

    Attributes:
        version: Version of its package.
        uploaded: When it was uploaded; of a nightly the day in its version.
        pythons: CPythons it is built for, `major.minor`; empty when for any.
        package: What the index says of it.
    """

    version: Version
    uploaded: datetime
    pythons: frozenset[str]
    package: DistributionPackage


@contextmanager
def open_index(
    url: str, advice: str = f"set {INDEX_VARIABLES[0]}", name: str = "package index"
) -> Iterator[PyPISimple]:
    """Yield a client of a package index; one that does not answer is a fault of the host.

    Args:
        url: The index.
        advice: How to choose another one.
        name: What messages call it.

    Yields:
        The client.

    Raises:
        InfrastructureError: If the index cannot be reached or read.
    """
    try:
        with PyPISimple(url) as client:
            yield client
    except (requests.RequestException, UnsupportedRepoVersionError) as error:
        raise InfrastructureError(
            f"{name}: {mask_text(_said_by(error))}; check the network, or {advice}"
        ) from error


def _said_by(error: Exception) -> str:
    """Return what went wrong, without the calls around it and what differs every time."""
    inner = error.args[0] if error.args else None
    reason = getattr(inner, "reason", None)
    return _OBJECT.sub("", str(reason if isinstance(reason, Exception) else error))


def read_wheels(client: PyPISimple, project: str) -> dict[Version, list[Wheel]]:
    """Return the wheels of a project's final releases, yanked ones included.

    Args:
        client: Package index.
        project: Name of the project.

    Returns:
        Wheels by version, in the order of the index.

    Raises:
        InfrastructureError: If the index gives no upload times.
        requests.RequestException: If it cannot be reached, or this is no page of an index.
    """
    page, times = _read_page(client, project)
    found: dict[Version, list[Wheel]] = {}
    for package in page.packages:
        version = _wheel_version(package)
        if version is not None and not version.is_prerelease:
            uploaded = _find_upload_time(package, times)
            wheel = _wheel(package, version, uploaded)
            found.setdefault(version, []).append(wheel)
    return found


def read_nightly_wheels(client: PyPISimple, project: str) -> dict[Version, list[Wheel]]:
    """Return the wheels of a project's nightlies that are not yanked.

    Args:
        client: Index of nightlies, which need not tell upload times.
        project: Name of the project.

    Returns:
        Wheels by version, in the order of the index.

    Raises:
        requests.RequestException: If it cannot be reached, or this is no page of an index.
    """
    page, _ = _read_page(client, project)
    found: dict[Version, list[Wheel]] = {}
    for package in page.packages:
        version = _wheel_version(package)
        night = None if version is None else night_of(version)
        if version is not None and night is not None and not package.is_yanked:
            uploaded = datetime(night.year, night.month, night.day, tzinfo=UTC)
            found.setdefault(version, []).append(_wheel(package, version, uploaded))
    return found


def read_requirement(client: PyPISimple, package: DistributionPackage, name: str) -> str:
    """Return which versions of another package a wheel requires.

    Args:
        client: Package index.
        package: Wheel to ask.
        name: Normalised name of the package it requires unconditionally.

    Returns:
        A PEP 440 specifier.

    Raises:
        InfrastructureError: If the wheel does not say.
        requests.RequestException: If the index cannot be reached.
    """
    headers = read_metadata(client, package)
    for requirement in map(Requirement, headers.get_all("Requires-Dist", [])):
        if canonicalize_name(requirement.name) == name and requirement.marker is None:
            return str(requirement.specifier)
    raise InfrastructureError(f"package index: {package.filename} does not say which {name}")


def read_metadata(client: PyPISimple, package: DistributionPackage) -> Message:
    """Return the metadata of a wheel, which is downloaded where the index has them in it only.

    Args:
        client: Package index.
        package: Wheel to ask.

    Returns:
        Its headers.

    Raises:
        InfrastructureError: If what it has is no wheel.
        requests.RequestException: If the index cannot be reached.
    """
    try:
        text = _metadata(client, package)
    except (zipfile.BadZipFile, StopIteration, ValueError) as error:
        if isinstance(error, requests.RequestException):
            raise
        raise InfrastructureError(
            f"package index: {package.filename}: cannot read its metadata: {mask_text(str(error))}"
        ) from error
    return email.parser.HeaderParser().parsestr(text)


def _read_page(client: PyPISimple, project: str) -> tuple[ProjectPage, Mapping[str, str]]:
    """Return a project's page, and the upload times that only its HTML has, by file name."""
    response = client.s.get(
        client.get_project_url(project), timeout=TIMEOUT, headers={"Accept": ACCEPT_JSON_PREFERRED}
    )
    response.raise_for_status()
    try:
        page = ProjectPage.from_response(response, project)
        times = _times_in_html(response)
    except (ValueError, KeyError, TypeError) as error:
        raise requests.RequestException(_no_page(response)) from error
    if not page.packages:
        raise requests.RequestException(_no_page(response))
    return page, times


def _no_page(response: requests.Response) -> str:
    kind = response.headers.get("content-type", "nothing")
    return (
        f"{response.url}: got {len(response.content)} bytes of {kind} without any file, expected "
        "a page of a simple index (PEP 503 or 691)"
    )


def _wheel_version(package: DistributionPackage) -> Version | None:
    try:
        return parse_wheel_filename(package.filename)[1]
    except ValueError:
        return None


def _find_upload_time(package: DistributionPackage, times: Mapping[str, str]) -> datetime:
    if package.upload_time is not None:
        return package.upload_time
    if package.filename in times:
        return datetime.fromisoformat(times[package.filename])
    raise InfrastructureError(
        f"package index: no upload time for {package.filename}; expected an index that serves "
        f"upload times (PEP 700); set {INDEX_VARIABLES[0]} to one"
    )


def _wheel(package: DistributionPackage, version: Version, uploaded: datetime) -> Wheel:
    tags = parse_wheel_filename(package.filename)[3]
    # Free-threaded builds (abi cp313t) are another Python than the cells'.
    matches = [
        re.fullmatch(r"cp(\d)(\d+)", tag.interpreter) for tag in tags if not tag.abi.endswith("t")
    ]
    return Wheel(
        version=version,
        uploaded=uploaded,
        pythons=frozenset(f"{match[1]}.{match[2]}" for match in matches if match),
        package=package,
    )


def _times_in_html(response: requests.Response) -> dict[str, str]:
    """Return upload times by file name where an HTML page has them; JSON has them anyway."""
    if "json" in response.headers.get("content-type", ""):
        return {}
    links = RepositoryPage.from_html(response.text).links
    return {
        link.text: str(link.attrs["data-upload-time"])
        for link in links
        if "data-upload-time" in (link.attrs or {})
    }


def _metadata(client: PyPISimple, package: DistributionPackage) -> str:
    try:
        # PEP 658 metadata may come without a digest; what is read here is reviewed as a diff.
        return client.get_package_metadata(package, verify=False, timeout=TIMEOUT)
    except NoMetadataError:
        return _metadata_in_wheel(client, package)


def _metadata_in_wheel(client: PyPISimple, package: DistributionPackage) -> str:
    with temporary_folder("index-pages") as folder:
        file = Path(folder, package.filename)
        client.download_package(package, file, timeout=TIMEOUT)
        with zipfile.ZipFile(file) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            return wheel.read(name).decode()
