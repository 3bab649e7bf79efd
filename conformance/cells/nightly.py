"""Nightlies: their dates, their selectors, and ids of their cells that stay the same every day.

The version of a nightly contains its date: `0.8.3.dev20251120`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.cells.releases import is_nightly
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.cells.releases import Nightlies

NIGHTLY: Final = "nightly"
# The number of digits is bounded: Python refuses to convert more than 4,300 of them.
_SELECTOR = re.compile(rf"{NIGHTLY}(?:-(\d{{1,6}})|:(.*))?")
_FACTOR = re.compile(rf"{NIGHTLY}(?:\.(?P<back>\d{{1,6}})|\.(?P<day>\d+\.\d+\.\d+))?")
_CELL: Final = re.compile(r"jax(?P<release>[^-]+)-(?P<python>py\d+)(?P<rest>(?:-.+)?)")
_DATE_LENGTH: Final = len("20251120")
_MAX_SUGGESTIONS: Final = 3


class NotInstallableError(UsageError):
    """A nightly that cannot be installed: no jaxlib matches it, or its wheel was deleted."""


def parse_night(version: Version) -> date | None:
    """Return the date in the version of a nightly: 2025-11-20 for `0.8.3.dev20251120`.

    Args:
        version: Any version.

    Returns:
        The date; None if the version is not of a nightly.
    """
    digits = str(version.dev or "")
    # Other development versions, e.g. `0.8.3.dev0`, are builds without a date.
    if len(digits) != _DATE_LENGTH:
        return None
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None


def is_nightly_selector(text: str) -> bool:
    """Say whether a selector is `nightly`, `nightly-3` or `nightly:2025-11-20`."""
    return _SELECTOR.fullmatch(text) is not None


def encode_nightly_factor(text: str) -> str:
    """Return a nightly selector as a factor of a cell id; any other text unchanged.

    The dash separates factors and an id contains no colon: `nightly-3` becomes `nightly.3`.
    """
    return re.sub("[-:]", ".", text) if is_nightly_selector(text) else text


def parse_nightly_factor(text: str) -> str:
    """Return the text that `encode_nightly_factor` encoded; any other text unchanged."""
    match = _FACTOR.fullmatch(text)
    if match is None:
        return text
    if match["day"]:
        return f"{NIGHTLY}:{match['day'].replace('.', '-')}"
    return f"{NIGHTLY}-{match['back']}" if match["back"] else text


def resolve_nightly(text: str, index: Nightlies) -> str:
    """Return the version of the nightly that a selector selects.

    Args:
        text: `nightly` (the newest that can be installed), `nightly-3` (the third before it) or
            `nightly:2025-11-20`.
        index: Index of nightlies.

    Raises:
        UsageError: If there is no such nightly, the selector is not valid, or no index is
            configured.
        InfrastructureError: If the index cannot be reached or read, or no nightly in it can be
            installed.
    """
    match = _SELECTOR.fullmatch(text)
    if match is None:
        raise UsageError(f"selector {text!r}: expected nightly, nightly-N or nightly:YYYY-MM-DD")
    if match[2] is not None:
        return _find_by_date(text, match[2], index)
    back, count = int(match[1] or 0), 0
    # Newest first, and no further than needed: each check may cost requests to the index.
    for version in reversed(index.versions):
        if _is_installable(version, index):
            if count == back:
                return version
            count += 1
    if not count:
        raise InfrastructureError(
            f"nightly index {mask_text(index.url)}: none of its {len(index.versions)} nightlies "
            "can be installed: no jaxlib matches them, or their wheels were deleted"
        )
    raise UsageError(
        f"selector {text!r}: only {count} nightlies can be installed, of the "
        f"{len(index.versions)} that the index has"
    )


def find_nights(
    first: Version, last: Version, index: Nightlies
) -> tuple[list[str], dict[str, str]]:
    """Return the nightlies of a range.

    Args:
        first: First version of the range, a nightly or a release.
        last: Last version of the range, a nightly or a release.
        index: Index of nightlies.

    Returns:
        Versions that can be installed, oldest first; and versions that cannot, each with the
        reason.

    Raises:
        UsageError: If no index is configured.
        InfrastructureError: If it cannot be reached or read.
    """
    found, refused = [], {}
    for version in index.versions:
        if first <= Version(version) <= last:
            try:
                # The message of the error is the reason: no jaxlib matches, or the wheel was
                # deleted.
                index.get(version)
            except NotInstallableError as error:
                refused[version] = str(error)
            else:
                found.append(version)
    return found, refused


def suggest_nights(versions: Sequence[str], night: date | None) -> str:
    """Return selectors of the nightlies nearest to a date, for a message.

    Args:
        versions: Available nightlies, oldest first.
        night: Date of the missing nightly; None for the newest.
    """
    days = [day for version in versions if (day := parse_night(Version(version)))]
    wanted = night or days[-1]
    near = sorted(sorted(days, key=lambda day: abs(day - wanted))[:_MAX_SUGGESTIONS])
    return f"expected e.g. {', '.join(f'{NIGHTLY}:{day}' for day in near)}"


def _find_by_date(text: str, day: str, index: Nightlies) -> str:
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        raise UsageError(f"selector {text!r}: expected a date, e.g. nightly:2025-11-20") from None
    for version in index.versions:
        if parse_night(Version(version)) == wanted:
            return version
    raise UsageError(
        f"selector {text!r}: the index has no nightly of that date; "
        f"{suggest_nights(index.versions, wanted)}"
    )


def _is_installable(version: str, index: Nightlies) -> bool:
    try:
        index.get(version)
    except NotInstallableError:
        return False
    return True


def make_stable_cell_ids(cells: Iterable[str]) -> dict[str, str]:
    """Return the stable id of every cell of a run, which is the same in every nightly run.

    The stable id of a cell of a release or of an environment is its id. That of a nightly is
    `nightly` with the platform and the options, because its date and its Python change from run to
    run. If a run has several nightlies, the older ones are `nightly-1` and so on, as in selectors.
    If it has several cells of one nightly with the same options, their Pythons distinguish them. An
    unresolved nightly has the stable id that it would have if it were resolved.

    Args:
        cells: Cell ids of a run.
    """
    stable = {}
    nightlies: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        match = _CELL.fullmatch(cell)
        release = "" if match is None else match["release"]
        is_of_nightly = is_nightly(release) or is_nightly_selector(parse_nightly_factor(release))
        if match is None or not is_of_nightly:
            stable[cell] = cell
        else:
            nightlies[match["rest"]][match["release"]].append((match["python"], cell))
    for rest, releases in nightlies.items():
        # Unresolved nightlies have no version: they come last, by their selectors.
        dated = sorted(filter(is_nightly, releases), key=Version, reverse=True)
        undated = sorted(set(releases).difference(dated), key=_make_age_key)
        for back, release in enumerate((*dated, *undated)):
            head = f"{NIGHTLY}-{back}" if back else NIGHTLY
            has_several = len(releases[release]) > 1
            for python, cell in releases[release]:
                stable[cell] = f"{head}-{python}{rest}" if has_several else f"{head}{rest}"
    return stable


def _make_age_key(release: str) -> tuple[int, ...]:
    """Return a sort key for `nightly`, `nightly.3` and `nightly.2025.11.20`, the newest first."""
    numbers = tuple(map(int, release.split(".")[1:]))
    return numbers if len(numbers) <= 1 else tuple(-number for number in numbers)
