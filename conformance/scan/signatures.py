"""Signatures as the corpus records them, and whether a call fits one."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from typing import Final

DEPRECATED: Final = " deprecated"
"""End of a recorded signature of a name whose access warns."""
DTYPE: Final = "dtype"
"""A parameter whose default None means the default dtype, as `float` or `int` did before."""
_OBJECT: Final = re.compile(r"<\w+>")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiParameter:
    """A parameter of a callable.

    Attributes:
        name: Its name, `_` for one that callers cannot name.
        default: Text of its default, None for none.
        by_position: Whether it can be passed by position.
        by_keyword: Whether it can be passed by keyword.
    """

    name: str
    default: str | None
    by_position: bool
    by_keyword: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSignature:
    """The parameters of a callable.

    Attributes:
        parameters: Parameters in their order, without `*args` and `**kwargs`.
        any_positions: Whether it takes any further positions.
        any_keywords: Whether it takes any further keywords.
    """

    parameters: tuple[ApiParameter, ...]
    any_positions: bool = False
    any_keywords: bool = False

    @property
    def positional(self) -> tuple[ApiParameter, ...]:
        """The parameters that can be passed by position."""
        return tuple(one for one in self.parameters if one.by_position)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallShape:
    """The arguments of a call, as far as its source shows them.

    Attributes:
        positions: Number of arguments by position.
        keywords: Names of the arguments by keyword.
        literals: Arguments that are strings, booleans or None, as source writes them, by keyword
            or by position from 0.
        more_positions: Whether `*args` follow.
        more_keywords: Whether `**kwargs` follow.
        partial: Whether further arguments come later, as of `functools.partial` and decorators.
    """

    positions: int
    keywords: frozenset[str]
    literals: frozenset[tuple[str, str]] = frozenset()
    more_positions: bool = False
    more_keywords: bool = False
    partial: bool = False


@cache
def parse_signature(text: str) -> ApiSignature | None:
    """Return a recorded signature, None for a callable that states none.

    Args:
        text: A signature of `api_signatures`, e.g. `(a, /, *, b=None)`.
    """
    text = text.removesuffix(DEPRECATED)
    if not text.startswith("(") or text == "(...)":
        return None
    try:
        statement = ast.parse(f"def f{_OBJECT.sub('...', text)}: ...").body[0]
    except SyntaxError:
        return None
    if not isinstance(statement, ast.FunctionDef):
        return None
    arguments = statement.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(ordered) - len(arguments.defaults)) + [*arguments.defaults]
    found = [
        ApiParameter(
            name=one.arg, default=None if default is None else ast.unparse(default),
            by_position=True, by_keyword=number >= len(arguments.posonlyargs),
        )
        for number, (one, default) in enumerate(zip(ordered, defaults, strict=True))
    ]  # fmt: skip
    found += [
        ApiParameter(
            name=one.arg, default=None if default is None else ast.unparse(default),
            by_position=False, by_keyword=True,
        )
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]  # fmt: skip
    return ApiSignature(
        parameters=tuple(found),
        any_positions=arguments.vararg is not None,
        any_keywords=arguments.kwarg is not None,
    )


def find_misfit(signature: ApiSignature, call: CallShape) -> str:
    """Return why a call raises a TypeError, empty if it fits or if that cannot be told.

    Args:
        signature: Signature of the callee.
        call: The call.
    """
    known = {one.name for one in signature.parameters if one.by_keyword}
    extra = [] if signature.any_keywords else sorted(call.keywords - known)
    if extra:
        return _describe_refused(signature, extra)
    positional = signature.positional
    if call.positions > len(positional) and not signature.any_positions:
        return f"takes {len(positional)} arguments by position, not {call.positions}"
    taken = {one.name for one in positional[: call.positions] if one.by_keyword}
    if twice := sorted(taken & call.keywords):
        return f"`{twice[0]}` is given by position and by keyword"
    if call.partial or call.more_positions or call.more_keywords:
        return ""
    missing = [
        one.name
        for number, one in enumerate(signature.parameters)
        if one.default is None
        and not (one.by_position and number < call.positions)
        and one.name not in call.keywords
    ]
    return f"`{missing[0]}` has no default" if missing else ""


def _describe_refused(signature: ApiSignature, keywords: list[str]) -> str:
    """Return why these keywords are refused."""
    names = {one.name for one in signature.parameters}
    by_position = [name for name in keywords if name in names]
    if by_position:
        return f"takes `{by_position[0]}` by position only"
    return f"has no parameter {', '.join(f'`{name}`' for name in keywords)}"


def find_moved(before: ApiSignature, after: ApiSignature, call: CallShape) -> str:
    """Return which argument by position goes to another parameter, empty if none does.

    A parameter that was only renamed keeps its meaning.

    Args:
        before: Older signature.
        after: Newer signature.
        call: A call that fits both.
    """
    names = {one.name for one in after.parameters}
    for old, new in zip(before.positional, after.positional[: call.positions], strict=False):
        if old.name != new.name and old.name in names and "_" not in (old.name, new.name):
            return f"the argument for `{old.name}` goes to `{new.name}`"
    return ""


def list_changed_defaults(
    before: ApiSignature, after: ApiSignature, call: CallShape
) -> list[tuple[str, str, str]]:
    """Return the parameters whose defaults a call uses and that differ: name, before, after.

    Args:
        before: Older signature.
        after: Newer signature.
        call: A call that fits both.
    """
    if call.partial or call.more_keywords or call.more_positions:
        return []
    old = {one.name: one.default for one in before.parameters}
    given = {one.name for one in after.positional[: call.positions]} | call.keywords
    return [
        (one.name, str(old[one.name]), one.default)
        for one in after.parameters
        if one.default is not None
        and old.get(one.name) is not None
        and old[one.name] != one.default
        and not (one.name == DTYPE and one.default == "None")
        and one.name not in given
    ]
