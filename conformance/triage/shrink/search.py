"""The search for the smallest text with the kept behaviour: cuts are tried, many at once first.

Pure, except for the trials, which the caller passes as a function. Cuts that hardly depend on each
other are swept in parts, as in delta debugging: all of them at once, then halves, then quarters,
down to single cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.search.ddmin import sweep
from conformance.triage.shrink import sites
from conformance.triage.shrink.edits import apply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.triage.shrink.edits import Edit
    from conformance.triage.shrink.sites import Sites

    Probe = Callable[[Sequence[str]], int | None]
    """Tries texts; returns the number of the first that still shows it, None if none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of cutting.

    Attributes:
        name: What it is called while it is tried.
        sites: Where a text can be cut so.
        halved: Whether several such cuts are tried together.
    """

    name: str
    sites: Sites
    halved: bool = False


WAYS: Final = (
    Way(name="statements", sites=sites.statements, halved=True),
    Way(name="blocks", sites=sites.blocks),
    Way(name="keywords and items", sites=sites.items, halved=True),
    Way(name="helper functions", sites=sites.functions),
    Way(name="expressions", sites=sites.expressions),
    Way(name="parameters and results", sites=sites.signatures),
    Way(name="numbers", sites=sites.numbers),
    Way(name="names", sites=sites.names, halved=True),
)
"""Every way, the one that takes most away first."""


class SpentError(Exception):
    """The probes or the seconds that were granted are spent."""


@dataclass(slots=True, kw_only=True)
class Search:
    """A search under way.

    Attributes:
        text: The smallest text that still shows it.
        keep: Name of the function that all is for.
        probe: Tries texts.
        width: How many are tried at a time.
        progress: Told of each way as it begins, and of each smaller text.
    """

    text: str
    keep: str
    probe: Probe
    width: int = 1
    progress: Callable[[str, str], None] = field(default=lambda _way, _text: None)
    _refused: set[str] = field(default_factory=set)
    _memory: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)

    def run(self, ways: Sequence[Way] = WAYS) -> bool:
        """Cut until nothing more can be cut.

        Returns:
            Whether that was reached; else what was granted is spent, and `text` is what it is.
        """
        try:
            while True:
                before, remembered = self.text, bool(self._memory)
                for way in ways:
                    self.progress(way.name, self.text)
                    self._way(way)
                if self.text == before and not remembered:
                    return True
                if self.text == before:
                    # What was refused when more stood around it may be possible now.
                    self._memory = {}
        except SpentError:
            return False

    def _way(self, way: Way) -> None:
        refused = self._memory.setdefault(way.name, set())
        sweep(
            lambda: way.sites(self.text, self.keep),
            lambda groups: self._first(groups, refused),
            together=way.halved,
        )

    def _first(self, groups: Sequence[Sequence[Edit]], refused: set[tuple[str, ...]]) -> bool:
        """Try groups in turn, some at a time; take the first that still shows it."""
        pending: list[tuple[str, Sequence[Edit]]] = []
        if all(len(group) == 1 for group in groups):
            groups = [group for group in groups if group[0].key not in refused]
        for group in groups:
            text = apply(group, self.keep)
            if text is None or text in self._refused:
                _refuse(group, refused)
                continue
            pending.append((text, group))
            if len(pending) == self.width:
                if self._taken(pending, refused):
                    return True
                pending = []
        return bool(pending) and self._taken(pending, refused)

    def _taken(
        self, pending: list[tuple[str, Sequence[Edit]]], refused: set[tuple[str, ...]]
    ) -> bool:
        number = self.probe([text for text, _ in pending])
        for text, group in pending[:number]:
            self._refused.add(text)
            _refuse(group, refused)
        if number is None:
            return False
        self.text = pending[number][0]
        self.progress("", self.text)
        return True


def _refuse(group: Sequence[Edit], refused: set[tuple[str, ...]]) -> None:
    if len(group) == 1:
        refused.add(group[0].key)
