"""Addresses of pages and their parts: relative, stable from one report to the next."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from conformance.golden.layout import case_stem

MATRIX: Final = "index.html"
CAUSES: Final = "causes.html"
HISTORY: Final = "history.html"
FEED: Final = "feed.xml"
UPGRADE: Final = "upgrade.html"
"""The page of the newest upgrade."""
_WORD: Final = re.compile(r"[^A-Za-z0-9_.]+")


def case_page(case: str) -> str:
    """Return the path of a case's page below the site's root.

    Args:
        case: Case id.
    """
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
        run: Id of the run that it left.
        newest: That of the newest upgrade.
    """
    return UPGRADE if run == newest else f"upgrades/{_file_stem(run)}.html"


def suite_page(suite: str, place: str = "") -> str:
    """Return the path of a suite's page.

    Args:
        suite: Name of the suite; of a user's own its paths.
        place: Name of the track, of those beside the first.
    """
    return f"suites/{_golden_stem(f'{suite} {place}'.strip().replace('/', ' '))}.html"


def repro_file(cause: str) -> str:
    """Return the path of the file that shows a root cause.

    Args:
        cause: Its id.
    """
    return f"repro/{_file_stem(cause)}.py"


def badge_file(name: str) -> str:
    """Return the path of a badge.

    Args:
        name: What it is about, e.g. a family.
    """
    return f"badges/{_file_stem(name)}.svg"


def _golden_stem(text: str) -> str:
    """Return the name of a golden's file without its ending, with a plus sign for each space.

    A golden's file keeps the plus signs of a parameter, which would stand for spaces here.
    """
    return case_stem(text).replace("+", "%2B").replace("%20", "+")


def _file_stem(text: str) -> str:
    """Return a text as part of a file name: percent-encoded, and a plus sign for each space.

    Browsers show `%2520` for a file name that holds `%20`, and shells need it quoted.
    """
    return quote(text, safe="").replace("%20", "+")


def href(page: str, anchor: str = "", *, root: str = "") -> str:
    """Return what a link to a page says.

    Args:
        page: Path below the site's root; its names may hold signs that stand for others in links.
        anchor: A part of the page.
        root: The way from the linking page to the site's root, e.g. `../../`.
    """
    return f"{root}{quote(page, safe='/=+,@~')}" + (f"#{anchor}" if anchor else "")


def root_of(page: str) -> str:
    """Return the way from a page to the site's root, e.g. `../../`."""
    return "../" * page.count("/")


def slug(text: str) -> str:
    """Return a text as a part of an anchor, e.g. `tpu-v5e-2x2`.

    Args:
        text: E.g. the name of a track.
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
        regression: Its id.
    """
    return f"r-{regression}"
