"""A case cut down in two ways: its own text, then what that is traced to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.triage.shrink.search import Search, SpentError
from conformance.triage.shrink.traced import inlined

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.triage.shrink.prober import Prober


@dataclass(slots=True, kw_only=True)
class Cutting:
    """A case that is being cut.

    Attributes:
        prober: Tries texts.
        text: The case; at any time the smallest that still shows it.
        width: How many texts are tried at a time.
        progress: Told what is done.
        generator: Which of both ways `text` comes from: `source`, `jaxpr`.
        complete: Whether nothing more could be cut.
    """

    prober: Prober
    text: str
    width: int = 1
    progress: Callable[[str], None] = field(default=lambda _: None)
    generator: str = "source"
    complete: bool = False

    def run(self) -> None:
        """Cut the text, then what it is traced to; keep what has fewer operations."""
        whole = self.text
        search = self._search(whole)
        try:
            self.complete = search.run()
        finally:
            self.text = search.text
        if not self.complete or self.prober.case.kind != "program":
            return
        said = self._said(self.text) or self._said(whole)
        traced = self.prober.traced(self.text)
        if said is None or traced is None:
            return
        search = self._search(said)
        search.run()
        again = self.prober.traced(search.text)
        if again is not None and again[1] < traced[1]:
            self.text, self.generator = search.text, "jaxpr"

    def _said(self, text: str) -> str | None:
        """Return a text with its operations said one by one, if it still shows it then."""
        traced = self.prober.traced(text)
        if traced is None:
            return None
        release = self.prober.cells[0].release
        said = inlined(text, self.prober.case.name, traced[0], release)
        try:
            return said if said is not None and self.prober.first([said]) is not None else None
        except SpentError:
            return None

    def _search(self, text: str) -> Search:
        return Search(
            text=text, keep=self.prober.case.name, probe=self.prober.first, width=self.width,
            progress=self._tell,
        )  # fmt: skip

    def _tell(self, way: str, text: str) -> None:
        lines = len(text.splitlines())
        told = f"{lines} lines after {self.prober.budget.tried} probes"
        self.progress(f"{told}; {way}" if way else told)
