"""Fixes: forms of code that JAX removed or renamed, and the forms that replace them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.scan.signatures import CallShape

DROPPED: Final = "_"
"""A parameter that the form after a fix lacks."""


class FormState(StrEnum):
    """Outcome of the example of a form in a release."""

    WORKS = "works"
    WARNS = "warns"
    """It works, with a DeprecationWarning or FutureWarning."""
    RAISES = "raises"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormParameter:
    """A parameter of a form.

    Attributes:
        name: Its name, `_` for one that is dropped.
        by_position: Whether it can be passed by position.
        by_keyword: Whether it can be passed by keyword.
        default: Source of its default, empty for none.
    """

    name: str
    by_position: bool = True
    by_keyword: bool = True
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFix:
    """A fix.

    Attributes:
        id: Its name in the table.
        old: Dotted name of the form before.
        new: Dotted name of the form after, empty if `code` replaces the call.
        parameters: Parameters of the form before, which `renamed` replaces one by one.
        renamed: Parameters of the form after.
        code: Expression in the parameters that replaces the call.
        text: The form after, as the table has it.
        states: States of both forms by release.
    """

    id: str
    old: str
    new: str
    parameters: tuple[FormParameter, ...] = ()
    renamed: tuple[FormParameter, ...] = ()
    code: str = ""
    text: str = ""
    states: Mapping[str, tuple[FormState, FormState]] = field(default_factory=dict)

    @property
    def changes_call(self) -> bool:
        """Whether a call has other arguments after the fix."""
        return bool(self.parameters or self.code)

    def concerns(self, call: CallShape | None) -> bool:
        """Say whether a use of the form before is another one after the fix.

        Args:
            call: Arguments of the use, None if it is no call.
        """
        if self.new != self.old:
            return True
        if call is None:
            return False
        pairs = [*zip(self.parameters, self.renamed, strict=True)]
        passed = [after for _, after in pairs[: call.positions]]
        return any(one.name == DROPPED or not one.by_position for one in passed) or any(
            before.name in call.keywords and (before.name != after.name or not after.by_keyword)
            for before, after in pairs
        )

    def is_due(self, release: str) -> bool:
        """Say whether code for a release has to be fixed, and can be.

        Args:
            release: A release.
        """
        before, after = self.states.get(release, (FormState.WORKS, FormState.WORKS))
        return before is not FormState.WORKS and after is FormState.WORKS

    def works(self, release: str) -> bool:
        """Say whether the form after the fix works in a release.

        Args:
            release: A release.
        """
        return self.states.get(release, ("", FormState.RAISES))[1] is not FormState.RAISES


class FixTable:
    """Fixes by the name of the form before.

    Args:
        fixes: The fixes.
    """

    def __init__(self, fixes: Iterable[CodeFix]) -> None:
        self._fixes = {fix.old: fix for fix in fixes}

    def find(self, name: str) -> CodeFix | None:
        """Return the fix of a name or of the module that it is in, None if there is none.

        Args:
            name: A dotted name.
        """
        while name:
            if name in self._fixes:
                return self._fixes[name]
            name = name.rpartition(".")[0]
        return None


def parse_fix(
    name: str,
    row: Mapping[str, str],
    states: Mapping[str, tuple[FormState, FormState]] | None = None,
) -> CodeFix:
    """Return a fix of the table.

    Args:
        name: Its name.
        row: Its forms.
        states: States of both forms by release.
    """
    old, parameters = _parse_form(row["old"])
    new, renamed = _parse_form(row.get("new", ""))
    return CodeFix(
        id=name, old=old, new=new, parameters=parameters, renamed=renamed,
        code=row.get("code", ""), text=row.get("new") or row["code"], states=states or {},
    )  # fmt: skip


def _parse_form(text: str) -> tuple[str, tuple[FormParameter, ...]]:
    """Return the name of a form, and its parameters if it is a call."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return name, ()
    statement = ast.parse(f"def f({rest}: ...").body[0]
    assert isinstance(statement, ast.FunctionDef)  # noqa: S101 - it is written so
    arguments = statement.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    defaults = ["" for _ in ordered[len(arguments.defaults) :]]
    defaults += [ast.unparse(default) for default in arguments.defaults]
    found = [
        FormParameter(
            name=one.arg, by_keyword=number >= len(arguments.posonlyargs), default=default
        )
        for number, (one, default) in enumerate(zip(ordered, defaults, strict=True))
    ]
    found += [FormParameter(name=one.arg, by_position=False) for one in arguments.kwonlyargs]
    return name, tuple(found)
