"""What goldens say changed from release to release: what was before, and what is since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.golden.layout import ENDING, folder_of
from conformance.golden.store import GoldenStore
from conformance.golden.turns import turns
from conformance.judge.ir import changed_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from conformance.golden.contents import Content
    from conformance.golden.document import Document
    from conformance.golden.turns import Turn
    from conformance.model.behaviour_change import ShownBy
    from conformance.model.case import Case

    Facts = Mapping[str, Any]

MAIN: Final = "cpu"
"""Cell variant of which the history is told, where a case has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenChange:
    """A change of what is recorded of a case.

    Attributes:
        case: The case.
        release: The first release with what is recorded since.
        last: The last one recorded before.
        shown_by: What changed.
        endings: How the case ended before and since, where that changed.
        facts: Its facts before and since, where these changed.
    """

    case: Case
    release: str
    last: str
    shown_by: ShownBy
    endings: tuple[Content, Content] | None = None
    facts: tuple[Facts, Facts] | None = None


def find_golden_changes(cases: Iterable[Case]) -> Iterator[GoldenChange]:
    """Yield what the goldens say changed, on the CPU, or where a case is recorded most.

    Facts that one side leaves unsaid are no change.

    Args:
        cases: The cases.

    Raises:
        GoldenError: If a golden is corrupt.
    """
    stores: dict[Path, GoldenStore] = {}
    for case in cases:
        store = stores.setdefault(case.families, GoldenStore(case.families))
        document = store.document(case)
        if document is None or document.tainted:
            continue
        for turn in turns(document.variants[main_variant(document)]):
            found = _turned(store, case, turn)
            if found.facts is None or any(changed_facts(*found.facts)):
                yield found


def main_variant(document: Document) -> str:
    """Return the cell variant that the history of a case is told of.

    Args:
        document: Its goldens.
    """
    if MAIN in document.variants:
        return MAIN
    return max(sorted(document.variants), key=lambda name: len(document.variants[name]))


def _turned(store: GoldenStore, case: Case, turn: Turn) -> GoldenChange:
    folder = folder_of(store.root, case)
    before, after = (folder / span.content for span in (turn.before, turn.after))
    ending, facts = turn.track == ENDING, turn.track == "facts"
    return GoldenChange(
        case=case,
        release=turn.release,
        last=turn.before.last,
        shown_by=turn.shown_by,
        endings=(store.content(before), store.content(after)) if ending else None,
        facts=(store.facts(before), store.facts(after)) if facts else None,
    )
