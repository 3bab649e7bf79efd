"""Version ranges, with rules for nightlies."""

from __future__ import annotations

from functools import lru_cache

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version


# Each deviation of each case is checked against each cell: few distinct pairs, parsed once.
@lru_cache(maxsize=4096)
def in_range(version: str, specifier: str) -> bool:
    """Say whether a version is in a range; a nightly counts as the release that it precedes.

    A nightly `0.8.3.dev20251120` contains the commits after 0.8.2, most of which will be in 0.8.3,
    and its `__version_info__` is `(0, 8, 3)`. So a declaration for `>=0.8.3` or `==0.8.3` applies
    to it, and one for `<0.8.3` does not. By PEP 440 alone it would be in neither range. If a range
    contains a nightly itself, such as `>=0.8.3.dev20251110`, nightlies are compared by PEP 440.

    Args:
        version: PEP 440 version.
        specifier: PEP 440 specifier, empty for any version.
    """
    given = Version(version)
    released = Version(given.base_version) if given.is_devrelease else given
    # By specifier, not by set: `>=0.8.3.dev20251110,<0.9` compares only its first half by date.
    return all(
        spec.contains(given if _names_a_nightly(spec) else released, prereleases=True)
        for spec in SpecifierSet(specifier)
    )


def _names_a_nightly(spec: Specifier) -> bool:
    try:
        return Version(spec.version.removesuffix(".*")).is_devrelease
    except ValueError:  # `===` admits any text
        return False
