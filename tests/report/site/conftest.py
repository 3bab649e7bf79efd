"""A real browser, sites it opens from the disk, and a watch on what their pages do."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from conformance.report.fuzz.summary import summarize_campaigns
from tests.fuzz.test_script_file import make_finding
from tests.report.fuzz.test_issue import CHANGED
from tests.report.fuzz.test_markdown import make_log

from .browsing import Visit
from .examples import full_report, hostile_report, suite_report, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "CONFORMANCE_BROWSER"
"""Where it is `required`, a missing browser is an error."""


# Until the session ends, Playwright would keep an event loop: no other test could run one.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it: one for all tests of pages."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        said = f"found none of {', '.join(NAMES)}; `apt-get install chromium`"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        # Root's Chromium has no sandbox; the pages it opens are ours.
        made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def full_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a report with every kind of cell and of change."""
    folder = tmp_path_factory.mktemp("full")
    log = make_log(folder / "campaign", make_finding(id="abc", results=CHANGED))
    return write(replace(full_report(folder), fuzz=summarize_campaigns([log])), folder)


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a report whose texts want to be more than text."""
    folder = tmp_path_factory.mktemp("hostile")
    return write(hostile_report(folder), folder)


@pytest.fixture(scope="session")
def suite_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a report on a suite."""
    folder = tmp_path_factory.mktemp("suite")
    return write(suite_report(folder), folder)


@pytest.fixture
def visits(browser: Browser) -> Iterator[list[Visit]]:
    """Visits of a test, each checked at its end: no complaint, and nothing asked of a network."""
    made: list[Visit] = []
    yield made
    for visit in made:
        visit.close()
    assert [line for visit in made for line in visit.complaints] == []
    assert [address for visit in made for address in visit.strangers] == []


@pytest.fixture
def visit(browser: Browser, visits: list[Visit]) -> Any:
    """Open a page of a site: `visit(site, page, **options of the context)`."""

    def opened(site: Path, page: str = "index.html", **options: Any) -> Visit:
        made = Visit(browser, site, **options)
        visits.append(made)
        made.go(page)
        return made

    return opened
