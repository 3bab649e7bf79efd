"""Where a reviewer is: the group, the page, what the last key came to. Nothing is drawn here."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.review.decisions import Choice, Decided
from conformance.review.evidence import evidence_of
from conformance.review.lines import Line, head, line
from conformance.review.proposing import Wish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.review.decisions import Review
    from conformance.review.groups import Group
    from conformance.review.session import Session

HELP: Final = (
    ("space", "the next page of the evidence; b the page before"),
    ("n  p", "the next group, the one before; also the arrows"),
    ("a", "accept: what was seen becomes golden"),
    ("r", "reject: it stays unexpected, and is reported again; asks why"),
    ("d", "deviation: declare it in the case file, or end what is fixed; asks how"),
    ("s", "skip to the next group that is not decided"),
    ("u", "undo the last decision, or that on this group"),
    ("w", "write the decisions: shows what, and asks once"),
    ("q", "quit; decisions are kept, and taken up again"),
)
_PAGING: Final = frozenset({" ", "b", "up", "down", "page up", "page down"})
KEYS: Final = "space page  n/p group  a accept  r reject  d deviation  s skip  u undo  w write  ? q"
SHORT_KEYS: Final = "spc n p a r d s u w ? q"


class Asks(StrEnum):
    """What a key asks of whoever draws."""

    NOTHING = "nothing"
    QUIT = "quit"
    REJECT = "reject"
    """The reason is to be asked for."""
    DEVIATION = "deviation"
    """How it is to be declared is to be asked for."""
    WRITE = "write"
    """What would be written is to be shown, and confirmed."""


class Browsing:
    """A way through the groups of a review.

    Args:
        session: The review.

    Attributes:
        message: What the last key came to.
        top: First line of the page shown.
        helping: Whether the keys are explained.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.message = ""
        self.top = 0
        self.helping = False
        self._index = 0
        self._before: list[tuple[Group, Review]] = []
        self._evidence: dict[str, list[Line]] = {}
        self.skip(message="")

    @property
    def group(self) -> Group:
        """The group that is looked at."""
        return self.session.groups[self._index]

    @property
    def place(self) -> str:
        """Which of the groups it is."""
        return f"{self._index + 1}/{len(self.session.groups)}"

    @property
    def state(self) -> str:
        """What is decided on the group."""
        decision = self.session.decision(self.group)
        if decision is None:
            return "undecided"
        partly = self.session.decided(self.group) is Decided.PARTLY
        return f"{decision.choice}{', partly' if partly else ''}"

    def lines(self) -> Sequence[Line]:
        """Return the evidence of the group, or what the keys do."""
        if self.helping:
            told = (Line(f"  {keys:7}{what}") for keys, what in HELP)
            return [head("keys"), *told, line(""), line("any other key goes back to the evidence")]
        group = self.group
        if group.id not in self._evidence:
            self._evidence[group.id] = evidence_of(group, self.session.files)
        decision = self.session.decision(group)
        if decision is None:
            return self._evidence[group.id]
        why = f": {decision.reason}" if decision.reason else ""
        taken = line(f"{decision.choice} by {decision.by}, {decision.at}{why}")
        return [head("decided"), taken, line(""), *self._evidence[group.id]]

    def press(self, key: str, page: int, total: int) -> Asks:
        """Do what a key says.

        Args:
            key: The key: a character, or `left`, `down`, `page up` ...
            page: Lines of a page.
            total: Lines there are.

        Returns:
            What is left to be done by whoever draws.
        """
        self.message = ""
        if self.helping and key != "q":
            self._help(key, page, total)
            return Asks.NOTHING
        match key:
            case "q":
                return Asks.QUIT
            case "r":
                return Asks.REJECT
            case "d":
                return self._wants_deviation()
            case "w":
                return self._wants_write()
            case "a":
                self.decide(Choice.ACCEPT, Wish())
            case "s":
                self.skip()
            case "u":
                self._undo()
            case "?" | "h":
                self.helping, self.top = True, 0
            case _:
                self._move(key, page, total)
        return Asks.NOTHING

    def _help(self, key: str, page: int, total: int) -> None:
        if total > page and key in _PAGING:
            self._move(key, page, total)
        else:
            self.helping, self.top = False, 0

    def _move(self, key: str, page: int, total: int) -> None:
        last = max(0, total - page)
        match key:
            case "n" | "right" | "\t":
                self._go(self._index + 1)
            case "p" | "left":
                self._go(self._index - 1)
            case " " | "page down":
                self.top = 0 if self.top >= last else min(last, self.top + page)
            case "b" | "page up":
                self.top = max(0, self.top - page)
            case "down" | "j":
                self.top = min(last, self.top + 1)
            case "up" | "k":
                self.top = max(0, self.top - 1)
            case _:
                self.message = "no such key; ? says which there are"

    def _go(self, index: int) -> None:
        if 0 <= index < len(self.session.groups):
            self._index, self.top = index, 0
        else:
            self.message = f"this is the {'first' if index < 0 else 'last'} group"

    def skip(self, message: str = "every group is decided; w writes, q quits") -> None:
        """Go to the next group that is not decided, from the one looked at on."""
        groups = self.session.groups
        pending = set(map(id, self.session.pending))
        order = [*range(self._index + 1, len(groups)), *range(self._index + 1)]
        if not message and groups and id(groups[self._index]) in pending:
            return
        found = next((n for n in order if id(groups[n]) in pending), None)
        if found is None:
            self.message = message
        else:
            self._index, self.top = found, 0

    def decide(self, choice: Choice, wish: Wish) -> None:
        """Take a decision on the group, and go to the next that is not decided."""
        group, before = self.group, self.session.review
        try:
            self.session.decide(self.session.made(group, choice, wish))
        except UsageError as error:
            self.message = str(error)
            return
        self._before.append((group, before))
        self.skip()
        self.message = self.message or f"{choice}: {group.title}"

    def _wants_deviation(self) -> Asks:
        if why := self.session.refusal(self.group, Choice.DEVIATION):
            self.message = f"no deviation: {why}"
            return Asks.NOTHING
        return Asks.DEVIATION

    def _wants_write(self) -> Asks:
        if not any(one.decision.choice is not Choice.REJECT for one in self.session.taken):
            self.message = "nothing to write: no group is accepted or declared"
            return Asks.NOTHING
        return Asks.WRITE

    def _undo(self) -> None:
        if self._before:
            self.session.restore(*self._before.pop())
            self.message = "taken back"
        elif self.session.decision(self.group) is not None:
            self.session.take_back(self.group)
            self.message = "taken back: what was decided on this group"
        else:
            self.message = "nothing to undo"

    def written(self) -> None:
        """Look at the groups that are left after writing."""
        self._before.clear()
        self._evidence.clear()
        self._index = self.top = 0
        if self.session.groups:
            self.skip(message="")
