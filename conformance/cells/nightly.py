"""Nightlies by their day: what a version says of it, and which one a selector names.

A nightly is a development version with a date for a number: `0.8.3.dev20251120`.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cells.releases import Nightlies

NIGHTLY: Final = "nightly"
_SELECTOR = re.compile(rf"{NIGHTLY}(?:-(\d{{1,6}})|:(.*))?")
_SPELLED = re.compile(rf"{NIGHTLY}(?:\.(?P<back>\d{{1,6}})|\.(?P<day>\d+\.\d+\.\d+))?")
_DAY = len("20251120")
_NEAR = 3


class NotInstallableError(UsageError):
    """A nightly that cannot be installed: no jaxlib goes with it, or its wheel is gone."""


def night_of(version: Version) -> date | None:
    """Return the day in the version of a nightly: of `0.8.3.dev20251120` the 20th of November.

    Args:
        version: A version.

    Returns:
        The day; None for what is no nightly.
    """
    digits = str(version.dev)
    if version.dev is None or len(digits) != _DAY:
        return None
    try:
        return datetime.strptime(digits, "%Y%m%d").date()  # noqa: DTZ007 - a day, not a time
    except ValueError:
        return None


def is_nightly_selector(text: str) -> bool:
    """Say whether a selector is `nightly`, `nightly-3` or `nightly:2025-11-20`."""
    return _SELECTOR.fullmatch(text) is not None


def nightly_factor(text: str) -> str:
    """Return a nightly in the words in which the id of a cell names it, a selector or a version.

    An id is divided at its dashes, and no colon can stand in it: `nightly-3` is `nightly.3`.
    """
    return re.sub("[-:]", ".", text) if is_nightly_selector(text) else text


def parse_nightly_factor(text: str) -> str:
    """Return the text that `nightly_factor` encoded; any other text unchanged."""
    match = _SPELLED.fullmatch(text)
    if match is None:
        return text
    if match["day"]:
        return f"{NIGHTLY}:{match['day'].replace('.', '-')}"
    return f"{NIGHTLY}-{match['back']}" if match["back"] else text


def resolve_nightly(text: str, index: Nightlies) -> str:
    """Return the nightly that a selector names.

    Args:
        text: `nightly`, the newest that can be installed; `nightly-3`, the third before it;
            `nightly:2025-11-20`, that of a day.
        index: Where nightlies are.

    Returns:
        Its version.

    Raises:
        UsageError: If there is none, the text is no such selector, or no index is configured.
        InfrastructureError: If the index cannot be reached or read, or has none to be installed.
    """
    match = _SELECTOR.fullmatch(text)
    if match is None:
        raise UsageError(f"selector {text!r}: expected nightly, nightly-N or nightly:YYYY-MM-DD")
    if match[2] is not None:
        return _of_day(text, match[2], index)
    back = int(match[1] or 0)
    left = back
    for version in reversed(index.versions):
        if _installable(version, index):
            if left == 0:
                return version
            left -= 1
    if left == back:
        raise InfrastructureError(
            f"nightly index {mask_text(index.url)}: none of its {len(index.versions)} nightlies "
            "can be installed: no jaxlib goes with them, or their wheels are gone"
        )
    raise UsageError(
        f"selector {text!r}: only {back - left} nightlies can be installed, of the "
        f"{len(index.versions)} that the index has"
    )


def find_nights(
    first: Version, last: Version, index: Nightlies
) -> tuple[list[str], dict[str, str]]:
    """Return the nightlies of a range that can be installed.

    Args:
        first: A nightly or a release.
        last: A nightly or a release that is not older.
        index: Where nightlies are.

    Returns:
        Their versions, oldest first; and those that cannot be installed, each with the reason.

    Raises:
        UsageError: If no index is configured.
        InfrastructureError: If it cannot be reached or read.
    """
    found, refused = [], {}
    for version in index.versions:
        if first <= Version(version) <= last:
            try:
                index.get(version)
            except NotInstallableError as error:
                refused[version] = str(error)
            else:
                found.append(version)
    return found, refused


def suggest_nights(versions: Sequence[str], night: date | None) -> str:
    """Return what to say instead of a night that is not there.

    Args:
        versions: Nightlies that are there, oldest first.
        night: What was asked for; None for the newest.
    """
    days = [day for version in versions if (day := night_of(Version(version)))]
    wanted = night or days[-1]
    near = sorted(sorted(days, key=lambda day: abs(day - wanted))[:_NEAR])
    return f"expected e.g. {', '.join(f'{NIGHTLY}:{day}' for day in near)}"


def _of_day(text: str, day: str, index: Nightlies) -> str:
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        raise UsageError(f"selector {text!r}: expected a day, e.g. nightly:2025-11-20") from None
    for version in index.versions:
        if night_of(Version(version)) == wanted:
            return version
    raise UsageError(
        f"selector {text!r}: the index has no nightly of that day; "
        f"{suggest_nights(index.versions, wanted)}"
    )


def _installable(version: str, index: Nightlies) -> bool:
    try:
        index.get(version)
    except NotInstallableError:
        return False
    return True
