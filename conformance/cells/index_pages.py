"""Reading the package index: wheels, their upload times, and what a wheel requires."""

from __future__ import annotations

import email.parser
import re
import tempfile
import zipfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    ACCEPT_JSON_PREFERRED,
    DistributionPackage,
    NoMetadataError,
    ProjectPage,
    PyPISimple,
    RepositoryPage,
)

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import requests

INDEX_VARIABLES = ("CONFORMANCE_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel of the index.

    Attributes:
        version: Version of its package.
        uploaded: When it was uploaded.
        pythons: CPythons it is built for, `major.minor`; empty when for any.
        package: What the index says of it.
    """

    version: Version
    uploaded: datetime
    pythons: frozenset[str]
    package: DistributionPackage


def read_wheels(client: PyPISimple, project: str) -> dict[Version, list[Wheel]]:
    """Return the wheels of a project's final releases, yanked ones included.

    Args:
        client: Package index.
        project: Name of the project.

    Returns:
        Wheels by version, in the order of the index.

    Raises:
        InfrastructureError: If the index gives no upload times.
        requests.RequestException: If it cannot be reached.
    """
    response = client.s.get(
        client.get_project_url(project), timeout=TIMEOUT, headers={"Accept": ACCEPT_JSON_PREFERRED}
    )
    response.raise_for_status()
    times = _times_in_html(response)
    found: dict[Version, list[Wheel]] = {}
    for package in ProjectPage.from_response(response, project).packages:
        wheel = _wheel(package, times)
        if wheel is not None and not wheel.version.is_prerelease:
            found.setdefault(wheel.version, []).append(wheel)
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
    headers = email.parser.HeaderParser().parsestr(_metadata(client, package))
    for requirement in map(Requirement, headers.get_all("Requires-Dist", [])):
        if canonicalize_name(requirement.name) == name and requirement.marker is None:
            return str(requirement.specifier)
    raise InfrastructureError(f"package index: {package.filename} does not say which {name}")


def _wheel(package: DistributionPackage, times: Mapping[str, str]) -> Wheel | None:
    try:
        _, version, _, tags = parse_wheel_filename(package.filename)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    uploaded = package.upload_time
    if uploaded is None and package.filename in times:
        uploaded = datetime.fromisoformat(times[package.filename])
    if uploaded is None:
        raise InfrastructureError(
            f"package index: no upload time for {package.filename}; expected an index that serves "
            f"upload times (PEP 700); set {INDEX_VARIABLES[0]} to one"
        )
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
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, package.filename)
        client.download_package(package, file, timeout=TIMEOUT)
        with zipfile.ZipFile(file) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            return wheel.read(name).decode()
