"""A change of JAX's behaviour, as a family of cases declares that it shows it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

ShownBy = Literal[
    "outcome",
    "error",
    "value",
    "facts",
    "jaxpr",
    "stablehlo",
    "hlo",
    "jaxpr-exact",
    "stablehlo-exact",
    "hlo-exact",
]
"""What of a golden changes: how a case ends, its error, its value, its facts, or an IR of it."""


WORDS: Final = {
    "changelog": "JAX's changelog",
    "jaxlib": "(the compiler or runtime in jaxlib)",
    "unknown": "(no upstream thread or commit is known)",
}
"""Sources that are not an upstream thread or commit, in words."""


class BehaviourChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of JAX's behaviour.

    Attributes:
        release: The release that made it, as upstream has it.
        told: What changed, as a user meets it.
        source: Upstream thread `owner/repo#N`, commit `owner/repo@<hash>`, or one of `WORDS`.
        case: The case that catches it, or several: their ids.
        shown_by: What of the goldens of these changes there, on CPU.
        instead: What to write so that it works on both sides, empty for nothing.
        seen: The release at which the goldens put it, where that is another one.
        why: Why it is another one.
    """

    release: str
    told: str
    source: str
    case: str | tuple[str, ...]
    shown_by: ShownBy
    instead: str = ""
    seen: str = ""
    why: str = ""

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases that catch it."""
        return (self.case,) if isinstance(self.case, str) else self.case

    @property
    def shown_at(self) -> str:
        """The release at which the goldens put it."""
        return self.seen or self.release


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The behaviour changes that a family declares.

    Attributes:
        about: What it watches, in a sentence or two.
        pairs: Names of its cases whose values say, by the release that made something, what
            becomes of that in the release at hand: the first are promised to be right.
        about_pairs: What a reader of the page of pairs should know first, empty for nothing.
        change: The changes that it shows.
    """

    about: str = ""
    pairs: tuple[str, ...] = ()
    about_pairs: str = ""
    change: tuple[BehaviourChange, ...] = ()
