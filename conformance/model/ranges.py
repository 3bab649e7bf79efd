"""Version ranges, and on which side of them a nightly is. Pure."""

from __future__ import annotations

from functools import lru_cache

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version


@lru_cache(maxsize=4096)
def in_range(version: str, specifier: str) -> bool:
    """Say whether a version is in a range; a nightly counts as the release that it leads to.

    A nightly `0.8.3.dev20251120` holds what was written after 0.8.2, most of which will be in
    0.8.3; it calls itself `(0, 8, 3)`. So what is declared for `>=0.8.3` or `==0.8.3` is meant for
    it, and what is declared for `<0.8.3` is not. By PEP 440 alone it would be in neither range.
    Where a range itself names a nightly, as `>=0.8.3.dev20251110`, nights are told from each other,
    by PEP 440. In the order of releases a nightly stands before its release, as PEP 440 has it.

    Args:
        version: A version.
        specifier: A PEP 440 specifier, empty for any version.

    Returns:
        True when it is.
    """
    found = Version(version)
    released = Version(found.base_version) if found.is_devrelease else found
    return all(
        spec.contains(found if _names_a_nightly(spec) else released, prereleases=True)
        for spec in SpecifierSet(specifier)
    )


def _names_a_nightly(spec: Specifier) -> bool:
    try:
        return Version(spec.version.removesuffix(".*")).is_devrelease
    except ValueError:  # `===` admits any text
        return False
