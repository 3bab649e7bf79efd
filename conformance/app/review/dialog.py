"""The dialog of a review: keys and answers become decisions; a front end draws and asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rich.text import Text

from conformance.app.review.workflow import render_outcomes
from conformance.errors import UsageError
from conformance.report.text import flatten
from conformance.review.decisions import Choice, Progress, Terms
from conformance.review.evidence import collect_evidence, make_line, make_section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.review.decisions import Decision
    from conformance.review.groups import ReviewGroup
    from conformance.review.outcomes import Outcomes
    from conformance.review.review import Review

KEYS: Final = "space page  n/p group  a accept  r reject  d deviation  s skip  u undo  w write  ? q"
SHORT_KEYS: Final = "spc n p a r d s u w ? q"
"""The keys, with words and for narrow terminals."""
QUIT: Final = "q"
_HELP: Final = (
    ("space", "the next page of the evidence; b the page before"),
    ("n  p", "the next group, the one before; also the arrows"),
    ("a", "accept: what was seen becomes golden"),
    ("r", "reject: it stays unexpected, and is reported again; asks why"),
    ("d", "deviation: declare it in the case file, or end what is fixed; asks how"),
    ("s", "skip to the next group that is not decided"),
    ("u", "undo the last decision, or that on this group"),
    ("w", "write the decisions: shows what, and asks once"),
    (QUIT, "quit; decisions are kept, and taken up again"),
)
_AFTER_HELP: Final = "any other key goes back to the evidence"
_CONFIRM: Final = "write this?  y yes  space page  any other key: no"
_ALL_DECIDED: Final = "every group is decided; w writes, q quits"


class TermQuestion(NamedTuple):
    """A question about a decision.

    Attributes:
        field: The field of `Terms` that takes the answer.
        text: The question.
        default: The answer if the reviewer gives none.
    """

    field: str
    text: str
    default: str = ""


_REJECT: Final = (TermQuestion("reason", "why is it rejected"),)
_PROPOSED: Final = (
    TermQuestion("releases", "releases it is for, - for all"),
    TermQuestion("platform", "platform, - for all"),
    TermQuestion("match", "pattern in the message, - for any"),
)
_REASONS: Final = (
    TermQuestion("reason", "reason"),
    TermQuestion("issue", "issue, owner/repo#N, or nothing"),
)


class ReviewFrontEnd(Protocol):
    """Draws a dialog, and asks for lines of text and single keys."""

    def draw(self) -> None:
        """Draw the dialog, which changed while a key is being handled."""

    def ask(
        self,
        questions: Sequence[TermQuestion],
        answer: Callable[[Mapping[str, str] | None], None],
    ) -> None:
        """Ask for lines of text.

        Args:
            questions: The questions.
            answer: Receives the answers by field, None if the reviewer cancels.
        """

    def show(self, lines: Sequence[Text], keys: str, answer: Callable[[str], None]) -> None:
        """Show lines in place of the evidence until a key is pressed that does not page.

        Args:
            lines: The lines.
            keys: Text in place of the keys.
            answer: Receives the key.
        """

    def quit(self) -> None:
        """End the review."""


class ReviewDialog:
    """A review by single keys.

    Args:
        review: The review.
        check: Raises if an outcome may not be written.
        front_end: Draws the dialog.

    Attributes:
        message: The result of the last key.
    """

    def __init__(
        self, review: Review, check: Callable[[Outcomes], None], front_end: ReviewFrontEnd
    ) -> None:
        self.review = review
        self.message = ""
        self._check = check
        self._front_end = front_end
        self._index = 0
        self._undo_stack: list[tuple[ReviewGroup, tuple[Decision, ...]]] = []
        self._evidence: dict[str, list[Text]] = {}
        self._actions: Mapping[str, Callable[[], None]] = {
            "n": lambda: self._go(self._index + 1),
            "p": lambda: self._go(self._index - 1),
            "a": lambda: self._decide(Choice.ACCEPT, Terms()),
            "r": self._ask_rejection,
            "d": self._ask_deviation,
            "s": self._skip,
            "u": self._undo,
            "w": self._ask_to_write,
            "?": self._show_help,
            QUIT: front_end.quit,
        }
        # A note on standard error would destroy the screen.
        review.inform = self._inform
        self._find_pending(0)

    @property
    def group(self) -> ReviewGroup:
        """The group that is shown."""
        return self.review.groups[self._index]

    @property
    def place(self) -> str:
        """Number, state, id and size of the group."""
        group, decision = self.group, self.review.find_decision(self.group)
        state = "undecided" if decision is None else str(decision.choice)
        if decision is not None and self.review.log.progress(group) is Progress.PARTLY:
            state += ", partly"
        number = f"{self._index + 1}/{len(self.review.groups)}"
        return f" {number} {state}  {group.id}  {group.size} "

    @property
    def lines(self) -> Sequence[Text]:
        """The decision on the group, and its evidence."""
        group, decision = self.group, self.review.find_decision(self.group)
        if group.id not in self._evidence:
            # Collected once: evidence reads artifacts and compares IRs, and is drawn after each
            # key.
            self._evidence[group.id] = collect_evidence(group, self.review.data)
        if decision is None:
            return self._evidence[group.id]
        why = f": {decision.reason}" if decision.reason else ""
        taken = make_line(f"{decision.choice} by {decision.by}, {decision.at}{why}")
        return [make_line("decided", "bold"), taken, make_line(""), *self._evidence[group.id]]

    def press(self, key: str) -> None:
        """Handle a key.

        Args:
            key: A character; keys that page are handled by the front end.
        """
        self.message = ""
        self._actions.get(key, self._reject_key)()

    def _reject_key(self) -> None:
        self.message = "no such key; ? says which there are"

    def _inform(self, text: str) -> None:
        self.message = text
        self._front_end.draw()

    def _show_help(self) -> None:
        self._front_end.show(
            make_section("keys", [Text(f"{keys:7}{text}") for keys, text in _HELP]),
            _AFTER_HELP,
            lambda key: self._front_end.quit() if key == QUIT else None,
        )

    def _go(self, index: int) -> None:
        if 0 <= index < len(self.review.groups):
            self._index = index
        else:
            self.message = f"this is the {'first' if index < 0 else 'last'} group"

    def _find_pending(self, start: int) -> bool:
        """Go to the next pending group from an index on, cyclically; return whether one exists."""
        groups, pending = self.review.groups, set(map(id, self.review.pending))
        order = [*range(start, len(groups)), *range(start)]
        found = next((number for number in order if id(groups[number]) in pending), None)
        self._index = self._index if found is None else found
        return found is not None

    def _skip(self) -> None:
        if not self._find_pending(self._index + 1):
            self.message = _ALL_DECIDED

    def _decide(self, choice: Choice, terms: Terms) -> None:
        group, before = self.group, self.review.log.decisions
        try:
            self.review.take(self.review.make_decision(group, choice, terms))
        except UsageError as error:
            self.message = str(error)
            return
        # Saved after each key: a terminal that hangs up loses no decision.
        self.review.save()
        # Only after saving: a decision that was refused has nothing to undo.
        self._undo_stack.append((group, before))
        self.message = f"{choice}: {group.title}"
        self._skip()

    def _ask_rejection(self) -> None:
        self._front_end.ask(_REJECT, lambda answers: self._take_answers(Choice.REJECT, answers))

    def _ask_deviation(self) -> None:
        proposal = self.review.data.make_proposal(self.group)
        if proposal.refusal:
            self.message = f"no deviation: {proposal.refusal}"
            return
        questions = [
            one._replace(default=default)
            for one in _PROPOSED
            # A field in which the cases of the group differ has no common default, and is not
            # asked.
            if (default := proposal.find_common_value(one.field)) is not None
        ]
        defaults = {one.field: one.default for one in questions}

        def answer(answers: Mapping[str, str] | None) -> None:
            """Leave out answers that equal the default; `-` removes the restriction."""
            # A default stays out of the terms: each case then keeps the value that was proposed for
            # it.
            if answers is not None:
                answers = {
                    field: "" if text == "-" and field in defaults else text
                    for field, text in answers.items()
                    if text != defaults.get(field)
                }
            self._take_answers(Choice.DEVIATION, answers)

        self._front_end.ask([*questions, *_REASONS], answer)

    def _take_answers(self, choice: Choice, answers: Mapping[str, str] | None) -> None:
        if answers is None:
            self.message = "called off"
        else:
            self._decide(choice, Terms(**answers))

    def _undo(self) -> None:
        """Take back the last decision; without one, an earlier decision on the current group."""
        if self._undo_stack:
            self.review.restore(*self._undo_stack.pop())
            self.message = "taken back"
        elif self.review.find_decision(self.group) is not None:
            self.review.restore(self.group)
            self.message = "taken back: what was decided on this group"
        else:
            self.message = "nothing to undo"

    def _ask_to_write(self) -> None:
        # A rejection changes no file: it is saved next to the run already.
        if all(one.decision.choice is Choice.REJECT for one in self.review.decisions):
            self.message = "nothing to write: no group is accepted or declared"
            return
        try:
            # Planned to be shown; `_write` plans again under the lock.
            outcomes = self.review.plan()
            self._check(outcomes)
        except UsageError as error:
            self.message = str(error)
            return
        texts = list(render_outcomes(outcomes))

        def answer(key: str) -> None:
            """Write the outcomes if the reviewer confirms."""
            self.message = "nothing is written"
            if key in {"y", "Y"}:
                self._write()
                self.message = f"written: {flatten(texts[-1])}"

        self._front_end.show([make_line(text) for text in texts], _CONFIRM, answer)

    def _write(self) -> None:
        """Write the decisions, and show the groups that are left; quit if none is."""
        self.review.write(self._check)
        # Written decisions cannot be undone here, and evidence was about the old goldens.
        self._undo_stack.clear()
        self._evidence.clear()
        self._index = 0
        # Without a group there is nothing to draw.
        if not self.review.groups:
            self._front_end.quit()
        self._find_pending(0)
