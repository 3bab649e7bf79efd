"""Whether a line of the history matters to code that runs on the older of two releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.golden.layout import ENDING
from conformance.golden.spans import find_span

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.golden.store import GoldenStore
    from conformance.model.case import Case

BY_ENDING: Final = frozenset({"outcome", "error", "value"})
"""Changes that the ending of a case shows: its value or its error."""


class EffectReader:
    """Compares the goldens of cases in two releases.

    Args:
        context: The project.
        store: Its goldens.
        variant: Key of the cell variant whose goldens are compared.
        old: The older release.
        new: The newer release.
    """

    def __init__(
        self, context: ProjectContext, store: GoldenStore, variant: str, old: str, new: str
    ) -> None:
        self._context = context
        self._store = store
        self._variant = variant
        self._ends = (old, new)
        self._known: dict[BehaviourChange, bool] = {}

    def has_effect(self, change: BehaviourChange) -> bool:
        """Say whether a case of a change runs in the older release, and differs in the newer one.

        A change that lets code run that raised before does not matter to code that runs, and nor
        does one that a later release took back.

        Args:
            change: A line of the history.

        Raises:
            GoldenError: If a golden is corrupt or missing.
        """
        if change not in self._known:
            cases = self._context.select_cases([*change.cases])
            self._known[change] = any(self._differs(case, change.shown_by) for case in cases)
        return self._known[change]

    def _differs(self, case: Case, shown_by: str) -> bool:
        document = self._store.load_document(case)
        tracks = document.variants.get(self._variant) if document is not None else None
        if tracks is None:
            return True  # unknown: it is shown by another platform
        ending = find_span(tracks.get(ENDING, ()), self._ends[0])
        if ending is None or not ending.exact:
            return True  # unknown: the case does not apply to the older release
        if self._store.load_ending(case, ending.span.content).error is not None:
            return False
        track = tracks.get(ENDING if shown_by in BY_ENDING else shown_by, ())
        before, after = (find_span(track, release) for release in self._ends)
        return before is None or after is None or before.span.content != after.span.content
