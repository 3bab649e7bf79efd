"""The search for a minimal set of passes whose disabling makes a program do otherwise. Pure.

Where one pass is at fault, halving finds it: of the passes in their order the shortest head is
found that is enough, and its last pass is one of those looked for. It is kept disabled, and the
search goes on in the rest of that head until what is kept is enough. What is found is enough by
trial, and no pass of it can be left out, whatever the pipeline does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Passes = tuple[str, ...]
    Ask = Callable[[Passes], "Answer"]
    More = Callable[[Passes], Sequence[str]]


class Answer(StrEnum):
    """What the program does with some passes disabled."""

    FLIPS = "flips"
    """What is looked for."""
    STAYS = "stays"
    """Not that."""
    UNKNOWN = "unknown"
    """It cannot be said: XLA fails without these passes, crashes, or takes too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of a search.

    Attributes:
        passes: The passes searched, in order; those that were told of later come last.
        culprits: Passes that together are enough, none of which can be left out; in order. Empty
            if there are none.
        disabled: The passes that could be disabled all together.
        needed: Passes without which, among those disabled by then, XLA fails.
    """

    passes: Passes = ()
    culprits: Passes = ()
    disabled: Passes = ()
    needed: Passes = ()


def search(passes: Sequence[str], ask: Ask, more: More = lambda _: ()) -> Found:
    """Search for the passes whose disabling makes a program do otherwise.

    Args:
        passes: Names of the passes, in order; no name twice. With none of them disabled the
            program does not do what is looked for.
        ask: Tells what the program does with some passes disabled, given in order. No set is
            asked about twice.
        more: Tells the passes that act while some are disabled, known ones or not: what one
            pass does not do any more, another may do.

    Returns:
        What was found.
    """
    asking = _Asking(passes, ask)
    enough, disabled, needed = _enough(asking, list(passes), more)
    culprits = _irreducible(asking, _reduced(asking, enough)) if enough else []
    return Found(
        passes=asking.passes,
        culprits=asking.ordered(culprits),
        disabled=asking.ordered(disabled),
        needed=asking.ordered(needed),
    )


class _Asking:
    """What was asked already, in the order of the pipeline."""

    def __init__(self, passes: Sequence[str], ask: Ask) -> None:
        self._place = {name: number for number, name in enumerate(passes)}
        self._ask = ask
        self._known: dict[frozenset[str], Answer] = {frozenset(): Answer.STAYS}

    @property
    def passes(self) -> Passes:
        return tuple(self._place)

    def added(self, names: Sequence[str]) -> list[str]:
        """Take names that are new, and return them."""
        new = [name for name in dict.fromkeys(names) if name not in self._place]
        for name in new:
            self._place[name] = len(self._place)
        return new

    def ordered(self, names: Sequence[str]) -> Passes:
        return tuple(sorted(names, key=self._place.__getitem__))

    def __call__(self, names: Sequence[str]) -> Answer:
        key = frozenset(names)
        if key not in self._known:
            self._known[key] = self._ask(self.ordered(names))
        return self._known[key]

    def flips(self, names: Sequence[str]) -> bool:
        return self(names) is Answer.FLIPS


def _enough(
    asking: _Asking, passes: list[str], more: More
) -> tuple[list[str], list[str], list[str]]:
    """Return passes that are enough, if any; those disabled together, and those that cannot be."""
    needed: list[str] = []
    while True:
        answer = asking(passes)
        if answer is Answer.UNKNOWN:
            head, answer = _shortest_that_tells(asking, passes)
            if answer is Answer.UNKNOWN:
                needed.append(head[-1])
                passes = [name for name in passes if name != head[-1]]
                continue
            passes = head
        if answer is Answer.FLIPS:
            return passes, passes, needed
        if not (new := asking.added(more(asking.ordered(passes)))):
            break
        passes = [*passes, *new]
    groups = (*([name] for name in needed), *_groups(passes))
    return next(filter(asking.flips, groups), []), passes, needed


def _shortest_that_tells(asking: _Asking, passes: list[str]) -> tuple[list[str], Answer]:
    """Return a head of the passes that flips, or the shortest without which XLA fails."""
    short, long = 0, len(passes)  # it compiles without the head `short`, not without `long`
    while long - short > 1:
        middle = (short + long) // 2
        answer = asking(passes[:middle])
        if answer is Answer.FLIPS:
            return passes[:middle], answer
        if answer is Answer.STAYS:
            short = middle
        else:
            long = middle
    return passes[:long], Answer.UNKNOWN


def _groups(passes: list[str]) -> Iterator[list[str]]:
    """Yield ever smaller parts: all together may undo what some of them do."""
    parts = 2
    while parts < 2 * len(passes):
        size = -(-len(passes) // parts)
        yield from (passes[start : start + size] for start in range(0, len(passes), size))
        parts *= 2


def _reduced(asking: _Asking, enough: list[str]) -> list[str]:
    """Return some of the passes that are enough; mostly none of them can be left out."""
    kept: list[str] = []
    rest = enough
    while not asking.flips(kept):
        short, long = 0, len(rest)  # the head `short` is not enough, `long` is
        while long - short > 1:
            middle = (short + long) // 2
            if asking.flips([*rest[:middle], *kept]):
                long = middle
            else:
                short = middle
        kept.append(rest[long - 1])
        rest = rest[: long - 1]
    return kept


def _irreducible(asking: _Asking, enough: list[str]) -> list[str]:
    """Leave out what can be: where one pass undoes another, halving may keep too many."""
    for name in enough:
        rest = [other for other in enough if other != name]
        if rest and asking.flips(rest):
            return _irreducible(asking, rest)
    return enough
