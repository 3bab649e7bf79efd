"""Client of package indexes: wheels, their upload times and their requirements."""

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

from conformance.cells.nightly import parse_night
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from email.message import Message

    from packaging.version import Version

# In uv's order of precedence, after the variable of this project.
INDEX_VARIABLES = ("CONFORMANCE_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
TIMEOUT = 30.0
"""Seconds in which an index must begin or continue its answer."""
_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel in an index.

    Attributes:
        version: Version of the package.
        uploaded: Time of the upload; for a nightly the date in its version.
        pythons: CPythons that it is built for, `major.minor`; empty for any.
        package: Entry in the index.
    """

    version: Version
    uploaded: datetime
    pythons: frozenset[str]
    package: DistributionPackage


@contextmanager
def open_index(
    url: str, advice: str = f"set {INDEX_VARIABLES[0]}", name: str = "package index"
) -> Iterator[PyPISimple]:
    """Yield a client of a package index.

    Args:
        url: URL of the index.
        advice: How to choose another index, for messages.
        name: Name of the index in messages.

    Raises:
        InfrastructureError: If the index cannot be reached or read.
    """
    try:
        with PyPISimple(url) as client:
            yield client
    except (requests.RequestException, UnsupportedRepoVersionError) as error:
        raise InfrastructureError(
            f"{name}: {mask_text(_summarize(error))}; check the network, or {advice}"
        ) from error


def _summarize(error: Exception) -> str:
    """Return the reason of an error, without the wrapping exceptions and object addresses."""
    # requests wraps a urllib3 error, whose `reason` is the error of the socket.
    inner = error.args[0] if error.args else None
    reason = getattr(inner, "reason", None)
    return _OBJECT.sub("", str(reason if isinstance(reason, Exception) else error))


def read_wheels(
    client: PyPISimple, project: str, *, prereleases: bool = False
) -> dict[Version, list[Wheel]]:
    """Return the wheels of a project's final releases, yanked wheels included.

    Args:
        client: Client of the package index.
        project: Name of the project.
        prereleases: Whether wheels of pre-releases are returned, too.

    Returns:
        Wheels by version, in the order of the index.

    Raises:
        InfrastructureError: If the index has no upload times.
        requests.RequestException: If the index cannot be reached, or the page is not valid.
    """
    page, times = _read_page(client, project)
    found: dict[Version, list[Wheel]] = {}
    for package in page.packages:
        parsed = _parse_filename(package.filename)
        if parsed is not None and (prereleases or not parsed[0].is_prerelease):
            version, pythons = parsed
            uploaded = _find_upload_time(package, times)
            wheel = Wheel(version=version, uploaded=uploaded, pythons=pythons, package=package)
            found.setdefault(version, []).append(wheel)
    return found


def download_sdist(client: PyPISimple, project: str, version: str, folder: Path) -> Path | None:
    """Download the source distribution of a version, and return the file.

    Args:
        client: Client of the package index.
        project: Name of the project.
        version: The version.
        folder: Folder of the file.

    Returns:
        The file, None if the version has no source distribution.

    Raises:
        requests.RequestException: If the index cannot be reached, or the file is damaged.
    """
    page, _ = _read_page(client, project)
    for package in page.packages:
        if package.package_type == "sdist" and package.version == version:
            file = Path(folder, package.filename)
            # An index that proxies another one may list files without a digest.
            verify = bool(package.digests)
            client.download_package(package, file, timeout=TIMEOUT, verify=verify)
            return file
    return None


def read_nightly_wheels(client: PyPISimple, project: str) -> dict[Version, list[Wheel]]:
    """Return the wheels of a project's nightlies that are not yanked.

    Args:
        client: Client of the index of nightlies, which need not have upload times.
        project: Name of the project.

    Returns:
        Wheels by version, in the order of the index.

    Raises:
        requests.RequestException: If the index cannot be reached, or the page is not valid.
    """
    page, _ = _read_page(client, project)
    found: dict[Version, list[Wheel]] = {}
    for package in page.packages:
        parsed = _parse_filename(package.filename)
        if parsed is None or package.is_yanked:
            continue
        version, pythons = parsed
        if (night := parse_night(version)) is not None:
            uploaded = datetime(night.year, night.month, night.day, tzinfo=UTC)
            wheel = Wheel(version=version, uploaded=uploaded, pythons=pythons, package=package)
            found.setdefault(version, []).append(wheel)
    return found


def _parse_filename(name: str) -> tuple[Version, frozenset[str]] | None:
    """Return the version of a wheel and the CPythons that it is built for, None for other files."""
    try:
        _, version, _, tags = parse_wheel_filename(name)
    except ValueError:
        return None
    # Free-threaded builds (ABI cp313t) are for another Python than that of cells.
    plain = (tag.interpreter for tag in tags if not tag.abi.endswith("t"))
    matches = (re.fullmatch(r"cp(\d)(\d+)", interpreter) for interpreter in plain)
    return version, frozenset(f"{match[1]}.{match[2]}" for match in matches if match)


def read_requirement(client: PyPISimple, package: DistributionPackage, name: str) -> str:
    """Return the versions of another package that a wheel requires, a PEP 440 specifier.

    Args:
        client: Client of the package index.
        package: Wheel in the index.
        name: Normalised name of the required package.

    Raises:
        InfrastructureError: If the wheel does not require it unconditionally.
        requests.RequestException: If the index cannot be reached.
    """
    headers = read_metadata(client, package)
    for requirement in map(Requirement, headers.get_all("Requires-Dist", [])):
        # Requirements with a marker are of extras, e.g. another jaxlib for `jax[minimum-jaxlib]`.
        if canonicalize_name(requirement.name) == name and requirement.marker is None:
            return str(requirement.specifier)
    raise InfrastructureError(f"package index: {package.filename} does not require {name}")


def read_metadata(client: PyPISimple, package: DistributionPackage) -> Message:
    """Return the metadata of a wheel; the wheel is downloaded if the index lacks them.

    Args:
        client: Client of the package index.
        package: Wheel in the index.

    Raises:
        InfrastructureError: If the file is not a valid wheel.
        requests.RequestException: If the index cannot be reached.
    """
    try:
        try:
            # An index may serve metadata (PEP 658) without a digest. They need not be verified:
            # releases.toml, where they end up, is reviewed as a diff.
            text = client.get_package_metadata(package, verify=False, timeout=TIMEOUT)
        except NoMetadataError:
            with temporary_folder("index-pages") as folder:
                file = Path(folder, package.filename)
                client.download_package(package, file, timeout=TIMEOUT)
                with zipfile.ZipFile(file) as wheel:
                    names = wheel.namelist()
                    name = next(name for name in names if name.endswith(".dist-info/METADATA"))
                    text = wheel.read(name).decode()
    except requests.RequestException:  # some of which are ValueErrors
        raise
    except (zipfile.BadZipFile, StopIteration, ValueError) as error:
        raise InfrastructureError(
            f"package index: {package.filename}: cannot read its metadata: {mask_text(str(error))}"
        ) from error
    return email.parser.HeaderParser().parsestr(text)


def _read_page(client: PyPISimple, project: str) -> tuple[ProjectPage, Mapping[str, str]]:
    """Return the page of a project, and the upload times of an HTML page by file name."""
    # Not `get_project_page`: the HTML is needed as well, for its upload times. JSON is preferred:
    # only there upload times are standardised (PEP 700).
    response = client.s.get(
        client.get_project_url(project), timeout=TIMEOUT, headers={"Accept": ACCEPT_JSON_PREFERRED}
    )
    response.raise_for_status()
    try:
        page = ProjectPage.from_response(response, project)
        times = _parse_html_times(response)
    except (ValueError, KeyError, TypeError) as error:
        raise requests.RequestException(_describe_invalid_page(response)) from error
    # Proxies and login pages answer with status 200.
    if not page.packages:
        raise requests.RequestException(_describe_invalid_page(response))
    return page, times


def _describe_invalid_page(response: requests.Response) -> str:
    kind = response.headers.get("content-type", "nothing")
    return (
        f"{response.url}: got {len(response.content)} bytes of {kind} without any file, expected "
        "a page of a simple index (PEP 503 or 691)"
    )


def _find_upload_time(package: DistributionPackage, times: Mapping[str, str]) -> datetime:
    if package.upload_time is not None:
        return package.upload_time
    if package.filename in times:
        return datetime.fromisoformat(times[package.filename])
    raise InfrastructureError(
        f"package index: no upload time for {package.filename}; expected an index that serves "
        f"upload times (PEP 700); set {INDEX_VARIABLES[0]} to one"
    )


def _parse_html_times(response: requests.Response) -> dict[str, str]:
    """Return the upload times in an HTML page by file name; pypi_simple parses those in JSON."""
    if "json" in response.headers.get("content-type", ""):
        return {}
    links = RepositoryPage.from_html(response.text).links
    return {
        link.text: str(link.attrs["data-upload-time"])
        for link in links
        if "data-upload-time" in (link.attrs or {})
    }
