"""Hits of a code base: what changes for its uses of JAX between two releases."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.scan.api import ApiName, NameState
from conformance.scan.scopes import RESULT
from conformance.scan.signatures import (
    find_misfit,
    find_moved,
    list_changed_defaults,
    parse_signature,
)
from conformance.scan.touches import IMPORT, OPTION, is_touched

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.scan.api import Api
    from conformance.scan.touches import Touch
    from conformance.scan.uses import NameUse


class HitKind(StrEnum):
    """How a use changes; the most severe kinds first."""

    REMOVED = "removed"
    """The name is gone: an ImportError or AttributeError."""
    SIGNATURE = "signature"
    """The call is a TypeError."""
    OPTION = "option"
    """The option of `jax.config` is gone."""
    BEHAVIOUR = "behaviour"
    """A line of the history is about the name."""
    POSITION = "position"
    """An argument by position goes to another parameter."""
    DEFAULT = "default"
    """A default that the call uses is another one."""
    DEPRECATED = "deprecated"
    """Access to the name warns."""


LOUD: Final = frozenset({HitKind.REMOVED, HitKind.SIGNATURE, HitKind.OPTION, HitKind.DEPRECATED})
"""Kinds that raise or warn."""
SIGNATURES: Final = ("api_signatures/", "api_removals/")
"""Families about names and signatures, which say themselves whether a use still works."""
LOUDLY_SHOWN: Final = frozenset({"outcome", "error"})
"""Parts of a golden whose change a user notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A change for a use of JAX.

    Attributes:
        name: The name, or the option.
        kind: Kind of the change.
        release: The release that changes it.
        text: The change in a sentence.
        is_loud: Whether it raises or warns.
        change: The line of the history, None if it has none.
    """

    name: str
    kind: HitKind
    release: str
    text: str
    is_loud: bool
    change: BehaviourChange | None = None


class HitFinder:
    """Finds the hits of uses between two releases.

    Args:
        api: The public API of the releases from `old` to `new`.
        changes: Lines of the history after `old` and up to `new`, each with what it touches.
        old: The present release.
        new: The wanted release.
        matters: Says whether a line of the history makes a difference between both releases to code
            that runs on the older one.
        every: Whether each line matters, and one that is about no parameter and no pattern is a
            hit of each call of its names.
    """

    def __init__(
        self,
        api: Api,
        changes: Mapping[BehaviourChange, Iterable[Touch]],
        old: str,
        new: str,
        *,
        matters: Callable[[BehaviourChange], bool],
        every: bool = False,
    ) -> None:
        self._api = api
        self._matters = matters
        self._every = every
        self._old, self._new = old, new
        self._after = api.list_after(old, new)
        self._touching: defaultdict[str, list[tuple[BehaviourChange, Touch]]] = defaultdict(list)
        self._behaviours: defaultdict[str, list[tuple[BehaviourChange, Touch]]] = defaultdict(list)
        for change, touches in changes.items():
            for touch in touches:
                self._touching[touch.name].append((change, touch))
                if self._is_behaviour(change, touch):
                    self._behaviours[touch.name].append((change, touch))

    def find(self, use: NameUse) -> list[Hit]:
        """Return what changes for a use, nothing for code that asks for the version.

        Args:
            use: The use, whose names are those of the modules that define them.
        """
        if use.option:
            return [*self._find_option(use)]
        if any(RESULT in name for name in use.names):
            return [*self._find_attribute(use)]
        resolved = [self._api.resolve(name) for name in use.names]
        found = [one[0] for one in resolved if one is not None]
        if self._is_guarded(use) or len(found) < len(resolved) or not found:
            return []
        # A name that may stand for several breaks only if all of them do.
        breaks = [hit for name in found if (hit := self._find_break(name, use)) is not None]
        if len(breaks) == len(found):
            return breaks[:1]
        if len(found) > 1 or self._find_misfit(found[0], use, self._old):
            return []
        return [*self._find_silent(found[0], use)]

    def _is_guarded(self, use: NameUse) -> bool:
        """Say whether a use may not run on both releases, as its code asks for the version."""
        return use.guarded or not all(map(self._is_always_there, use.tested))

    def _is_always_there(self, name: str) -> bool:
        """Say whether both releases have a name, so that code that asks for it runs on both."""
        resolved = self._api.resolve(name)
        return resolved is not None and not resolved[1] and all(
            self._api.get_state(resolved[0], release) is not NameState.ABSENT
            for release in (self._old, self._new)
        )  # fmt: skip

    def _find_option(self, use: NameUse) -> Iterator[Hit]:
        option, options = use.option, self._api.options
        if option in options[self._old] and option not in options[self._new]:
            release = next(one for one in self._after if option not in options[one])
            text = f"the option `{option}` is gone"
            yield self._make(option, HitKind.OPTION, release, text, [option])
        yield from self._find_behaviours(f"{OPTION}{option}", use)

    def _is_behaviour(self, change: BehaviourChange, touch: Touch) -> bool:
        """Say whether a line of the history may be a hit of the uses that its touch describes."""
        if change.cases[0].startswith(SIGNATURES):
            return False
        # Code that runs does not see the words of an error.
        return self._every or (change.shown_by != "error" and touch.is_specific)

    def _find_attribute(self, use: NameUse) -> Iterator[Hit]:
        """Yield what changes for the result of a call, or an attribute of it."""
        if not self._is_guarded(use) and len(use.names) == 1:
            (name,) = use.names
            yield from self._find_behaviours(name, use)

    def _find_behaviours(
        self, name: str, use: NameUse, positional: Collection[str] = ()
    ) -> Iterator[Hit]:
        """Yield the lines of the history that a use of a name meets."""
        for change, touch in self._behaviours.get(name, ()):
            if is_touched(touch, use, positional) and (self._every or self._matters(change)):
                yield _make_behaviour(name, change)

    def _find_break(self, name: ApiName, use: NameUse) -> Hit | None:
        """Return how a use of a name raises, None if it does not."""
        api = self._api
        before, after = (api.get_state(name, release) for release in (self._old, self._new))
        if before is NameState.ABSENT:
            return None
        if after is NameState.ABSENT:
            if not (use.imported or use.direct):
                return None  # its import is the hit
            release = self._find_first(lambda one: api.get_state(name, one) is NameState.ABSENT)
            return self._make(
                str(name), HitKind.REMOVED, release, f"`{name}` is gone", [name.name or name.module]
            )
        why = self._find_misfit(name, use, self._new)
        if use.call is None or not why or self._find_misfit(name, use, self._old):
            return None
        release = self._find_first(lambda one: bool(self._find_misfit(name, use, one)))
        words = [name.name, *use.call.keywords]
        return self._make(str(name), HitKind.SIGNATURE, release, f"`{name}` {why}", words)

    def _find_misfit(self, name: ApiName, use: NameUse, release: str) -> str:
        """Return why a call of a name is a TypeError in a release, empty if it is none."""
        signature = parse_signature(self._api.get_signature(name, release))
        return find_misfit(signature, use.call) if signature and use.call else ""

    def _find_silent(self, name: ApiName, use: NameUse) -> Iterator[Hit]:
        """Yield what changes for a use that goes on to run."""
        api = self._api
        states = [api.get_state(name, release) for release in (self._old, self._new)]
        if states == [NameState.PRESENT, NameState.WARNS] and (use.imported or use.direct):
            release = self._find_first(
                lambda one: api.get_state(name, one) is not NameState.PRESENT
            )
            yield self._make(
                str(name), HitKind.DEPRECATED, release, f"`{name}` is deprecated", [name.name]
            )
        if use.imported:
            yield from self._find_behaviours(f"{IMPORT}{use.module}", use)
            return
        if use.call is None:
            return
        yield from self._find_other_arguments(name, use)
        signature = parse_signature(self._api.get_signature(name, self._old))
        positional = [one.name for one in signature.positional] if signature else []
        yield from self._find_behaviours(str(name), use, positional)

    def _find_other_arguments(self, name: ApiName, use: NameUse) -> Iterator[Hit]:
        """Yield the parameters that mean something else for a call."""
        call, old = use.call, parse_signature(self._api.get_signature(name, self._old))
        if call is None or old is None:
            return

        def list_moves(release: str) -> list[tuple[str, HitKind, str]]:
            new = parse_signature(self._api.get_signature(name, release))
            if new is None:
                return []
            moved = find_moved(old, new, call)
            # A call does the same with most defaults that changed; what it does has its own line.
            defaults = list_changed_defaults(old, new, call) if self._every else []
            return [("", HitKind.POSITION, f"`{name}`: {moved}")] * bool(moved) + [
                (
                    parameter, HitKind.DEFAULT,
                    f"`{parameter}` of `{name}` is {after} by default; before, it was {before}",
                )
                for parameter, before, after in defaults
            ]  # fmt: skip

        # Most calls have none, so that the releases between need not be looked at.
        for move in list_moves(self._new):
            release = next(one for one in self._after if move in list_moves(one))
            parameter, kind, text = move
            yield self._make(str(name), kind, release, text, [name.name, parameter])

    def _find_first(self, holds: Callable[[str], bool]) -> str:
        """Return the release from which on a condition holds up to the newest."""
        first = self._new
        for release in reversed(self._after):
            if not holds(release):
                break
            first = release
        return first

    def _make(self, name: str, kind: HitKind, release: str, text: str, words: Iterable[str]) -> Hit:
        """Return a hit with the line of the history of its release that quotes the same words."""
        touching = (*self._touching.get(name, ()), *self._touching.get(f"{OPTION}{name}", ()))
        lines = [one for one, _ in touching if release in (one.release, one.shown_at)]
        matches = {one: sum(bool(word) and word in one.summary for word in words) for one in lines}
        best = max(matches, key=lambda one: matches[one], default=None)
        return Hit(
            name=name, kind=kind, release=release, text=text, is_loud=kind in LOUD,
            change=best if best is not None and matches[best] else None,
        )  # fmt: skip


def _make_behaviour(name: str, change: BehaviourChange) -> Hit:
    return Hit(
        name=name.removeprefix(OPTION).removeprefix(IMPORT), kind=HitKind.BEHAVIOUR,
        release=change.shown_at, text=change.summary, change=change,
        # What changes about the import of a module is whether it works.
        is_loud=change.shown_by in LOUDLY_SHOWN or name.startswith(IMPORT),
    )  # fmt: skip
