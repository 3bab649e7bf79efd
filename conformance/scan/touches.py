"""The names that a line of the history touches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

OPTION: Final = "option:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A name that a change is about.

    Attributes:
        name: Dotted name, or `option:` with an option of `jax.config`.
        keywords: Parameters of which one is passed by keyword; empty for any call.
    """

    name: str
    keywords: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(sorted(self.keywords))})" if self.keywords else self.name


def parse_touch(text: str) -> Touch:
    """Return a touch.

    Args:
        text: A declared touch, e.g. `jax.numpy.clip(a_min, a_max)` or `option:jax_enable_x64`.
    """
    name, _, keywords = text.partition("(")
    found = filter(None, re.split(r"[\s,]+", keywords.rstrip(")")))
    return Touch(name=name, keywords=frozenset(found))


def is_touched(touch: Touch, keywords: Iterable[str], *, complete: bool) -> bool:
    """Say whether a call with these keywords is touched.

    Args:
        touch: The touch, of the name that is called.
        keywords: Keywords of the call.
        complete: Whether the call has no others.
    """
    return not touch.keywords or not complete or not touch.keywords.isdisjoint(keywords)
