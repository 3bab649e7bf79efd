"""A page in a real browser, and what it did there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from axe_playwright_python.base import AXE_SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Request

PATIENCE = 30_000
"""Milliseconds; a machine may have more to do than this."""
DENIED = """
Object.defineProperty(window, "localStorage", {get() { throw new DOMException("denied"); }});
"""
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

SETTLED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
"""A frame later: what listens for a change of the address has heard of it, and all is painted."""

AXE_RUN = "axe.run({resultTypes: ['violations'], preload: false}).then(r => r.violations)"
"""Without reading style sheets again: a page from the disk may not."""


class Visit:
    """A window of its own, without a network.

    Args:
        browser: The browser.
        site: Folder of the site.
        script: Runs before those of each page.
        options: Of the browser's context, e.g. `java_script_enabled`.

    Attributes:
        page: The page.
        complaints: What the console says, and errors nobody caught.
        strangers: Addresses that were asked for and are no files.
    """

    def __init__(self, browser: Browser, site: Path, script: str = "", **options: Any) -> None:
        size: Mapping[str, int] = options.pop("viewport", {"width": 1200, "height": 800})
        self.site = site
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        still: dict[str, Any] = {"reduced_motion": "reduce", "offline": True, **options}
        self._scripted = options.get("java_script_enabled", True)
        self._context = browser.new_context(viewport=size, **still)  # type: ignore[arg-type]
        if script:
            self._context.add_init_script(script)
        self.page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._lost)
        self.page.on("request", lambda asked: self._asked(asked.url))

    def _asked(self, address: str) -> None:
        if not address.startswith(("file:", "data:")):
            self.strangers.append(address)

    def _lost(self, asked: Request) -> None:
        # A picture that a page still loads when it is left is not lost.
        if asked.failure != "net::ERR_ABORTED":
            self.complaints.append(f"lost {asked.url}: {asked.failure}")

    def go(self, page: str) -> None:
        """Open a page.

        Args:
            page: Below the site's root, with its anchor.
        """
        self.page.goto(f"{self.site.as_uri()}/{page}")
        self._settle()

    def _settle(self) -> None:
        if self._scripted:
            self.ask(SETTLED)

    def close(self) -> None:
        """Close the window."""
        self._context.close()

    def keys(self, *names: str) -> None:
        """Press keys, one after another."""
        for name in names:
            self.page.keyboard.press(name)

    @contextmanager
    def led(self) -> Iterator[None]:
        """Do what leads to another page, or to a part of this one, and wait until it is there."""
        with self.page.expect_navigation():
            yield
        self._settle()

    def ask(self, script: str) -> Any:
        """Return what a script says."""
        return self.page.evaluate(script)

    def all(self, selector: str) -> Locator:
        """Return what is shown of a selector."""
        return self.page.locator(selector).locator("visible=true")

    @property
    def address(self) -> str:
        """The page with its anchor, below its folder, as one would send it."""
        return str(self.ask("location.href")).rpartition("/")[2]

    @property
    def cases(self) -> list[str]:
        """The cases that the matrix shows, also where the browser has not painted them yet."""
        return [text.strip() for text in self.all(".row:not(.sum) .head a").all_text_contents()]

    @property
    def focused(self) -> str:
        """What a screen reader says of the element in focus: its label, or its text."""
        return str(
            self.ask(
                "(document.activeElement.getAttribute('aria-label')"
                " || document.activeElement.textContent).trim()"
            )
        )

    @property
    def sideways(self) -> bool:
        """Whether the page is wider than its window."""
        return bool(self.ask(SIDEWAYS))

    def findings(self) -> list[str]:
        """Return what is seriously wrong for those who cannot see, hear or point."""
        self.ask(AXE_SCRIPT)
        found = self.ask(AXE_RUN)
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}"
            for one in found
            if one["impact"] in {"serious", "critical"}
        ]
