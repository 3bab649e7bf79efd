"""Pages read back: their text, links and anchors, as a browser would find them."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"})


class Page(HTMLParser):
    """What a page holds.

    Attributes:
        texts: Its texts, in order.
        links: Where its links lead.
        ids: Its anchors.
        tags: The names of its elements.
        unclosed: Elements that are closed by another's end, or never.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.unclosed: list[str] = []
        self._open: list[str] = []
        self.feed(content.decode())
        self.close()
        self.unclosed += self._open

    @property
    def text(self) -> str:
        """All of its text, white space as one space."""
        return " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element."""
        self.tags.append(tag)
        named = dict(attrs)
        if tag == "a" and named.get("href"):
            self.links.append(str(named["href"]))
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag not in VOID and not self._in_svg():
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if self._open and self._open[-1] == tag:
            self._open.pop()
        elif tag in self._open:
            self.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        """Take a text."""
        self.texts.append(data)

    def _in_svg(self) -> bool:
        return "svg" in self._open
