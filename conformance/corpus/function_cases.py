"""Cases of functions as they are: what a project lists below `[tool.conformance]`, written out.

A case is read without being run, so each function that is listed becomes one in a file, which only
names it: the function's module is imported in the cell, by the job.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMED: Final = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)")
"""How a function is named."""
_HEAD: Final = '''\
"""Functions as they are, listed by their project."""

import importlib

import numpy as np
from conformance.kit import Observed, Program, probe, program

__tracebackhide__ = True


def named(text):
    """Return what `module:name` names."""
    module, _, name = text.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def given(arguments):
    """Return positional and keyword arguments: what a factory returns, or a list as it is."""
    found = named(arguments)() if isinstance(arguments, str) else tuple(map(array, arguments))
    if isinstance(found, dict):
        return (), found
    return (found if isinstance(found, tuple) else (found,)), {}


def array(item):
    """Return a list as an array, anything else as it is."""
    return np.asarray(item) if isinstance(item, list) else item
'''
_PROGRAM: Final = '''\


@program({options})
def {name}(env):
    """{function}"""
    args, kwargs = given({arguments!r})
    return Program(named("{function}"), args=args, kwargs=kwargs)
'''
_PROBE: Final = '''\


@probe({options})
def {name}(env):
    """{function}"""
    args, kwargs = given({arguments!r})
    return Observed(named("{function}")(*args, **kwargs))
'''


class Function(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function as a project lists it.

    Attributes:
        function: Where it is: `module:name`.
        arguments: A function, `module:name`, that returns what to call it with: a tuple of
            arguments, a dictionary of keyword arguments, or the only argument; or a list of the
            arguments themselves, of which a list is an array.
        name: What its case is called; by default as the function.
        jit: Whether it is staged as a whole, so that its IRs are compared; else it is called.
        devices: Devices that it needs.
        rtol: Relative tolerance; None is the dtype's default.
        atol: Absolute tolerance.
    """

    function: str
    arguments: str | list[Any] = msgspec.field(default_factory=list)
    name: str = ""
    jit: bool = True
    devices: int = 1
    rtol: float | None = None
    atol: float | None = None

    @property
    def family(self) -> str:
        """The package it is in."""
        return self.function.partition(":")[0].partition(".")[0]

    @property
    def case(self) -> str:
        """Name of its case."""
        return self.name or self.function.rpartition(":")[2].replace(".", "_")


def render_cases(functions: Iterable[Function]) -> Mapping[str, str]:
    """Return a case file for each package that functions are of, by path below a folder of cases.

    Args:
        functions: The functions.

    Raises:
        UsageError: If one is not named as it must be, or two have one name.
    """
    texts: dict[str, str] = {}
    seen: dict[str, str] = {}
    for one in functions:
        for text in (one.function, one.arguments):
            if isinstance(text, str) and not NAMED.fullmatch(text):
                raise UsageError(f"function {text!r}: expected module:name, e.g. package.module:f")
        if not one.case.isidentifier():
            raise UsageError(f"function {one.function}: name {one.case!r}: expected an identifier")
        case = f"{one.family}/{one.case}"
        if case in seen:
            raise UsageError(
                f"functions {seen[case]} and {one.function} are both {case}; name one otherwise"
            )
        seen[case] = one.function
        file = f"{one.family}/functions.py"
        texts[file] = texts.get(file, _HEAD) + _case(one)
    return texts


def _case(one: Function) -> str:
    options = {"devices": one.devices, "rtol": one.rtol, "atol": one.atol}
    told = ", ".join(f"{name}={value!r}" for name, value in options.items() if value is not None)
    return (_PROGRAM if one.jit else _PROBE).format(
        options=told, name=one.case, function=one.function, arguments=one.arguments
    )


def is_rendered(text: str) -> bool:
    """Say whether a case file is one that `render_cases` returns."""
    return text.startswith(_HEAD)


def rendered_folder(texts: Mapping[str, str]) -> str:
    """Return the name of a folder for such files, the same for the same content."""
    return hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:16]
