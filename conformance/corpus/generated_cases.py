"""Case files that are generated: for listed functions of a project, and for calls in a script.

Cases are discovered without importing them. So each function listed below `[tool.conformance]`, and
each call of `conformance.snapshot` in a script, becomes a case in a generated file. The module of
the function, or the script, runs only in the cell.
"""

from __future__ import annotations

import ast
import hashlib
import re
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from conformance.corpus.python_source import parse
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


FUNCTION_NAME: Final = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)")
"""Form of a reference to a function, `module:name`."""
_HEAD: Final = '''\
"""Functions that the project lists, unmodified."""

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


_WHOLE_SCRIPT: Final = '''\
"""A script that is run as a whole."""

import runpy
import sys
from pathlib import Path

from conformance.kit import probe

__tracebackhide__ = True
FILE = Path({file!r})
DIGEST = "{digest}"


@probe(timeout=600, records="a script states no result")
def {name}(env):
    """The script, from its first line to its last."""
    if sys.path[0] != str(FILE.parent):
        sys.path.insert(0, str(FILE.parent))
    sys.argv = [str(FILE)]
    runpy.run_path(str(FILE), run_name="__main__")
    return True
'''


class Function(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function that is listed in the settings of a project.

    Attributes:
        function: Reference to the function, `module:name`.
        arguments: Reference to a function that returns the arguments: a tuple, a dictionary of
            keyword arguments, or the only argument. Or a list of the arguments themselves, in which
            a list is an array.
        name: Name of the case; by default that of the function.
        jit: Whether the function is staged as a whole, so that its IRs are compared.
        devices: Number of devices that it needs.
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
        """Family of the case: the function's package."""
        return self.function.partition(":")[0].partition(".")[0]

    @property
    def case(self) -> str:
        """Name of the case."""
        return self.name or self.function.rpartition(":")[2].replace(".", "_")


def render_cases(functions: Iterable[Function]) -> Mapping[str, str]:
    """Return a case file for each package of the functions, by path below a folder of cases.

    Args:
        functions: Functions of a project.

    Raises:
        UsageError: If a reference or a name is not valid, or two cases have the same name.
    """
    texts: dict[str, str] = {}
    references: dict[str, str] = {}
    for function in functions:
        for text in (function.function, function.arguments):
            if isinstance(text, str) and not FUNCTION_NAME.fullmatch(text):
                raise UsageError(f"function {text!r}: expected module:name, e.g. package.module:f")
        if not function.case.isidentifier():
            raise UsageError(
                f"function {function.function}: name {function.case!r}: expected an identifier"
            )
        # Checked before rendering: Python would let the second function replace the first.
        case = f"{function.family}/{function.case}"
        if case in references:
            raise UsageError(
                f"functions {references[case]} and {function.function} are both {case}; "
                "set another name for one"
            )
        references[case] = function.function
        file = f"{function.family}/functions.py"
        # A file per package, as the family of a case is the name of its folder.
        texts[file] = texts.get(file, _HEAD) + _render_case(function)
    return texts


def _render_case(function: Function) -> str:
    options = {"devices": function.devices, "rtol": function.rtol, "atol": function.atol}
    keywords = (f"{name}={value!r}" for name, value in options.items() if value is not None)
    return (_PROGRAM if function.jit else _PROBE).format(
        options=", ".join(keywords),
        name=function.case,
        function=function.function,
        arguments=function.arguments,
    )


def is_rendered(text: str) -> bool:
    """Say whether a case file was rendered by `render_cases`."""
    return text.startswith(_HEAD)


def hash_case_files(texts: Mapping[str, str]) -> str:
    """Return a hash of rendered case files, as the name of their folder."""
    return hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:16]


SNAPSHOT: Final = "snapshot"
_SNAPSHOT_HEAD: Final = '''\
"""Calls of a script, each a case."""
# hash of the script and the modules next to it: {digest}

import importlib
import sys
import types
from pathlib import Path

from conformance.kit import Program, program

FILE = Path({file!r})
KEPT = []


class Reached(BaseException):
    """The script came to the call."""


def taken(first, last):
    """Run the script up to a call; return what is called, with its arguments."""

    def snapshot(function, /, *args, **kwargs):
        if first <= sys._getframe(1).f_lineno <= last:
            raise Reached(function, args, kwargs)
        return function(*args, **kwargs)

    importlib.import_module("conformance").snapshot = snapshot
    sys.path.insert(0, str(FILE.parent))
    script = types.ModuleType("__main__")
    script.__file__ = str(FILE)
    KEPT.append(script)  # what is called may need it
    try:
        exec(compile(FILE.read_bytes(), str(FILE), "exec", dont_inherit=True), script.__dict__)
    except Reached as call:
        function, args, kwargs = call.args
        return Program(function, args=args, kwargs=kwargs)
    raise LookupError(f"{{FILE.name}} ended without the snapshot in line {{first}}")
'''
_SNAPSHOT_CASE: Final = '''\


@program()
def {name}(env):
    """{file}, line {first}: {called}"""
    return taken({first}, {last})
'''


class SnapshotCall(NamedTuple):
    """A call of `snapshot` in a script.

    Attributes:
        name: Name of the case: that of the called function, with a number after the first call.
        called: Expression of the called function.
        first: First line of the call, from 1.
        last: Last line of the call.
    """

    name: str
    called: str
    first: int
    last: int


def find_snapshots(text: str) -> list[SnapshotCall]:
    """Return the calls of `snapshot` in a script, in order; none in a text that is not Python.

    Args:
        text: Source of the script.
    """
    # Cheaper than parsing: this runs on every Python file of a project.
    if f"{SNAPSHOT}(" not in text:
        return []
    try:
        tree = parse(text)
    except SyntaxError:
        return []
    names: set[str] = set()
    found = []
    # By position: the tree has decorators and defaults in an order that is not that of the text.
    for call in sorted(_find_calls(tree), key=lambda call: (call.lineno, call.col_offset)):
        called = ast.unparse(call.args[0])
        plain = _make_identifier(re.sub(r"\W+", "_", called).strip("_") or SNAPSHOT)
        numbered = (f"{plain}_{n}" for n in count(2))
        name = next(name for name in chain([plain], numbered) if name not in names)
        names.add(name)
        found.append(SnapshotCall(name, called, call.lineno, call.end_lineno or call.lineno))
    return found


def _find_calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls outside of functions, which run exactly when the script runs."""
    # A call within a function may run several times or never, so it has no single case.
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    if isinstance(node, ast.Call) and node.args and _is_snapshot(node.func):
        yield node
    for inner in ast.iter_child_nodes(node):
        yield from _find_calls(inner)


def _is_snapshot(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr == SNAPSHOT and ast.unparse(called.value) == "conformance"
    return isinstance(called, ast.Name) and called.id == SNAPSHOT


def render_snapshot_cases(file: Path, calls: list[SnapshotCall], digest: str) -> str:
    """Return a case file with a case for each call.

    Args:
        file: Path of the script.
        calls: Calls of `snapshot` in the script.
        digest: Hash of the files that the calls depend on; it makes the cases' hashes change.
    """
    cases = (
        _SNAPSHOT_CASE.format(
            name=call.name, file=file.name, first=call.first, last=call.last,
            # The expression becomes part of a docstring in double quotes.
            called=call.called.replace("\\", "\\\\").replace('"', "'"),
        )
        for call in calls
    )  # fmt: skip
    return _SNAPSHOT_HEAD.format(file=str(file), digest=digest) + "".join(cases)


def render_whole_script(file: Path, digest: str) -> str:
    """Return a case file whose one case runs a script from its first line to its last.

    Args:
        file: Path of the script.
        digest: Hash of the script; it makes the hash of the case change.
    """
    return _WHOLE_SCRIPT.format(file=str(file), digest=digest, name=get_script_family(file))


def find_script(text: str) -> Path | None:
    """Return the script of a case file of `render_snapshot_cases`, None for another file.

    Args:
        text: Content of the case file.
    """
    if not text.startswith(_SNAPSHOT_HEAD.partition("{")[0]):
        return None
    (quoted,) = re.findall(r"^FILE = Path\((.*)\)$", text, re.MULTILINE)
    return Path(ast.literal_eval(quoted))


def relocate_script(text: str, script: Path) -> str:
    """Return a snapshot case file with its script in the first folder of `sys.path`.

    Args:
        text: Content of the case file.
        script: Path of the script.
    """
    relocated = f"FILE = Path(sys.path[0], {script.name!r})"
    return text.replace(f"FILE = Path({str(script)!r})", relocated, 1)


def get_script_family(file: Path) -> str:
    """Return the family of a script's cases."""
    return _make_identifier(re.sub(r"\W+", "_", file.stem))


def _make_identifier(text: str) -> str:
    return text if text.isidentifier() else f"{SNAPSHOT}_{text}"
