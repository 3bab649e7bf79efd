"""The names and patterns of code that a line of the history touches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.scan.scopes import RESULT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from conformance.scan.signatures import CallShape
    from conformance.scan.uses import NameUse

OPTION: Final = "option:"
IMPORT: Final = "import "
_TOUCH: Final = re.compile(
    r"(?P<name>option:\w+|import [\w.]+|[\w.]+?(?:\(\)[\w.]*)*)"
    r"(?:\((?P<arguments>[^()]+)\))?"
    r"(?: (?P<relation>in|outside|of) (?P<other>[\w.]+))?"
)
_LITERAL: Final = re.compile(r"(\w+)=('.*'|True|False|None)")
ANY: Final = "*"
"""Stands for the arguments of a change that every call meets."""
WITHOUT: Final = "no "
"""Before a parameter that a call does not pass, so that it has its default."""


SAME: Final = {
    "jax.experimental.shard_map.shard_map": "jax.shard_map",
    "jax.experimental.pjit.pjit": "jax.jit",
}
"""Other names of the functions that relations name."""


class Relation(StrEnum):
    """How a use of a name is related to another name."""

    IN = "in"
    """Its code is in a function that the other name gets, or decorates."""
    OUTSIDE = "outside"
    """Its code is in no function that the other name gets."""
    OF = "of"
    """It gets a result of the other name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A name, or a pattern of names, that a change is about.

    Attributes:
        name: Dotted name, `option:` with an option of `jax.config`, `import` with a module, or an
            attribute of a result, e.g. `jax.pmap().lower`.
        arguments: Parameters of which one is passed by keyword, has a literal value, as in
            `mode='clip'`, or is not passed, as in `no mode`; `*` if the change is about every call.
            Empty if it is about some calls that source does not tell from others.
        relation: How the use is related to `other`, None for any use.
        other: Dotted name.
    """

    name: str
    arguments: frozenset[str] = frozenset()
    relation: Relation | None = None
    other: str = ""

    def __str__(self) -> str:
        arguments = f"({', '.join(sorted(self.arguments))})" if self.arguments else ""
        relation = f" {self.relation} {self.other}" if self.relation else ""
        return f"{self.name}{arguments}{relation}"

    @property
    def is_specific(self) -> bool:
        """Whether a use that it describes meets the change, as far as source shows."""
        # A function that no visible `jit` gets may be jitted by its caller.
        return bool(
            self.arguments
            or self.relation not in {None, Relation.OUTSIDE}
            or RESULT in self.name
            or self.name.startswith((OPTION, IMPORT))
        )


def parse_touch(text: str) -> Touch:
    """Return a touch.

    Args:
        text: A declared touch, e.g. `jax.numpy.clip(a_min, a_max)`, `jax.numpy.take(mode='clip')`,
            `jax.numpy.array(copy=False)`, `jax.make_mesh(no axis_types)`, `jax.random.split(*)`,
            `option:jax_enable_x64`, `import jax.memory`, `jax.pmap().lower`,
            `jax.lax.while_loop in jax.shard_map` or `jax.linear_transpose of jax.linearize`.

    Raises:
        ValueError: If the text is none of these.
    """
    match = _TOUCH.fullmatch(text)
    if match is None:
        raise ValueError(
            f"found {text!r}, expected a dotted name, e.g. jax.numpy.clip, jax.numpy.clip(a_min), "
            "jax.numpy.take(mode='clip'), jax.pmap().lower, or NAME in|outside|of NAME"
        )
    relation = match["relation"]
    return Touch(
        name=match["name"],
        arguments=frozenset(filter(None, map(str.strip, (match["arguments"] or "").split(",")))),
        relation=Relation(relation) if relation else None,
        other=match["other"] or "",
    )


def list_followed(touches: Iterable[Touch]) -> frozenset[str]:
    """Return the names whose results touches are about.

    Args:
        touches: The touches.
    """
    followed = set()
    for touch in touches:
        if touch.relation is Relation.OF:
            followed.add(touch.other)
        if RESULT in touch.name:
            followed.add(touch.name.partition(RESULT)[0])
    return frozenset(followed)


def is_touched(touch: Touch, use: NameUse, positional: Collection[str] = ()) -> bool:
    """Say whether a use of the name of a touch is touched.

    Args:
        touch: The touch.
        use: The use.
        positional: Names of the parameters that take arguments by position, in their order.
    """
    if touch.name.endswith(RESULT) and use.call is None:
        return False
    if touch.relation is Relation.OF and f"{touch.other}{RESULT}" not in use.given:
        return False
    if touch.relation in {Relation.IN, Relation.OUTSIDE}:
        is_inside = touch.other in {SAME.get(name, name) for name in use.within}
        if is_inside is (touch.relation is Relation.OUTSIDE):
            return False
    if not touch.arguments:
        return True
    call = use.call
    return call is not None and any(
        _has_argument(argument, call, [*positional]) for argument in touch.arguments
    )


def _has_argument(argument: str, call: CallShape, positional: list[str]) -> bool:
    """Say whether a call has an argument of a touch."""
    if argument == ANY:
        return True
    if argument.startswith(WITHOUT):
        name = argument.removeprefix(WITHOUT)
        passed = {*call.keywords, *positional[: call.positions]}
        return not (name in passed or call.more_positions or call.more_keywords)
    literal = _LITERAL.fullmatch(argument)
    if literal is None:
        return argument in call.keywords
    name, value = literal.groups()
    places = {name, *(str(number) for number, one in enumerate(positional) if one == name)}
    return any(place in places and found == value for place, found in call.literals)
