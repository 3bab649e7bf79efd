"""Reading the pylock.toml that uv prints: versions, and the hashes of the wheels that serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from conformance.errors import InfrastructureError
from conformance.files import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Mapping


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """One package of a resolution.

    Attributes:
        name: Normalised name.
        version: Version chosen.
        hashes: `sha256:...` of each wheel that serves.
    """

    name: str
    version: str
    hashes: tuple[str, ...]


Pins: TypeAlias = "Mapping[str, Pin]"


class _Wheel(msgspec.Struct):
    hashes: dict[str, str]


class _Package(msgspec.Struct):
    name: str
    version: str
    wheels: tuple[_Wheel, ...] = ()


class _File(msgspec.Struct):
    packages: tuple[_Package, ...] = ()


def parse_pylock(text: str) -> Pins:
    """Return the packages of a pylock.toml.

    Args:
        text: TOML text as uv prints it.

    Returns:
        Each package by name.

    Raises:
        InfrastructureError: If the text is none, or a package has no wheel with a hash.
    """
    try:
        packages = msgspec.toml.decode(text, type=_File).packages
    except MALFORMED as error:
        raise InfrastructureError(f"uv: unexpected pylock.toml: {error}") from error
    return {package.name: _pin(package) for package in packages}


def _pin(package: _Package) -> Pin:
    hashes = tuple(f"sha256:{w.hashes['sha256']}" for w in package.wheels if "sha256" in w.hashes)
    if not hashes:
        raise InfrastructureError(
            f"package index: no hash for the wheels of {package.name} {package.version}; "
            "expected an index that serves sha256 hashes"
        )
    return Pin(name=package.name, version=package.version, hashes=hashes)
