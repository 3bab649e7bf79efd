"""Addresses of pages and their parts: relative, and the same in every report."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from conformance.golden.layout import make_case_stem

MATRIX: Final = "index.html"
CAUSES: Final = "causes.html"
HISTORY: Final = "history.html"
FUZZ: Final = "fuzz.html"
ECOSYSTEM: Final = "ecosystem.html"
PERFORMANCE: Final = "performance.html"
FEED: Final = "feed.xml"
UPGRADE: Final = "upgrade.html"
"""The page of the newest upgrade."""
_WORD: Final = re.compile(r"[^A-Za-z0-9_.]+")


def case_page(case: str) -> str:
    """Return the path of a case's page below the site's root.

    Args:
        case: Case id.
    """
    # The stem of a golden is valid on every file system and distinct for every id.
    family = _file_stem(case.partition("/")[0])
    return f"cases/{family}/{_golden_stem(case)}.html"


def run_page(run: str) -> str:
    """Return the path of a run's page.

    Args:
        run: Run id.
    """
    return f"runs/{_file_stem(run)}.html"


def upgrade_page(run: str, newest: str) -> str:
    """Return the path of an upgrade's page.

    Args:
        run: Run id of the upgrade.
        newest: Run id of the newest upgrade, whose address never changes.
    """
    return UPGRADE if run == newest else f"upgrades/{_file_stem(run)}.html"


def suite_page(suite: str, place: str = "") -> str:
    """Return the path of a suite's page.

    Args:
        suite: Name of the suite; for a suite of the user, its paths.
        place: Name of the track; empty for the first track.
    """
    return f"suites/{_golden_stem(f'{suite} {place}'.strip().replace('/', ' '))}.html"


def repro_file(cause: str) -> str:
    """Return the path of the reproduction of a root cause.

    Args:
        cause: Id of the root cause.
    """
    return f"repro/{_file_stem(cause)}.py"


def badge_file(name: str) -> str:
    """Return the path of a badge.

    Args:
        name: Name of the badge, e.g. a family.
    """
    return f"badges/{_file_stem(name)}.svg"


def _golden_stem(text: str) -> str:
    """Return the name of a golden's file without its suffix, with a plus sign for each space."""
    # A plus sign of a parameter stays in the name of a golden: here it would read as a space.
    return make_case_stem(text).replace("+", "%2B").replace("%20", "+")


def _file_stem(text: str) -> str:
    """Return a text as part of a file name: percent-encoded, and a plus sign for each space."""
    # In an address, `%20` of a file name becomes `%2520`, and shells need a space quoted.
    return quote(text, safe="").replace("%20", "+")


def href(page: str, anchor: str = "", *, root: str = "") -> str:
    """Return the relative address of a page, for the attribute `href`.

    Args:
        page: Path of the page below the site's root.
        anchor: Anchor on the page, empty for none.
        root: Path from the linking page to the site's root, e.g. `../../`.
    """
    # File names are percent-encoded already: their `%` is quoted once more, so that a server or
    # browser decodes the address back to the file name.
    return f"{root}{quote(page, safe='/=+,@~')}" + (f"#{anchor}" if anchor else "")


def root_of(page: str) -> str:
    """Return the path from a page to the site's root, e.g. `../../`."""
    return "../" * page.count("/")


def slug(text: str) -> str:
    """Return a text as a part of an anchor, e.g. `tpu-v5e-2x2`.

    Args:
        text: Any text, e.g. the name of a track.
    """
    return _WORD.sub("-", text).strip("-")


def point_anchor(track: str, release: str) -> str:
    """Return the anchor of a change point on a case's page.

    Args:
        track: Name of the track.
        release: The first release that shows it.
    """
    return f"{slug(track)}@{slug(release)}"


def regression_anchor(regression: str) -> str:
    """Return the anchor of a regression on the history's page.

    Args:
        regression: Id of the regression.
    """
    return f"r-{regression}"
