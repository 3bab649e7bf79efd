"""Cases of calls: what a script hands to `conformance.snapshot`, written out.

A script is read without being run: each call of `snapshot` outside of its functions becomes a case,
which runs the script in the cell up to that call, and takes its function and its arguments.
"""

from __future__ import annotations

import ast
import re
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.corpus.python_source import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLED: Final = "snapshot"
_TEXT: Final = '''\
"""Calls of a script, each a case."""
# the script and what lies beside it: {digest}

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
_CASE: Final = '''\


@program()
def {name}(env):
    """{file}, line {first}: {called}"""
    return taken({first}, {last})
'''


class SnapshotCall(NamedTuple):
    """A call of `snapshot`.

    Attributes:
        name: What its case is called: as what is called, with a number where that is called again.
        called: What is called, as it stands there.
        first: Line in which the call begins, from 1.
        last: Line in which it ends.
    """

    name: str
    called: str
    first: int
    last: int


def find_snapshots(text: str) -> list[SnapshotCall]:
    """Return the calls of `snapshot` in a script, in order; none in what is no Python.

    Args:
        text: The script.
    """
    if f"{CALLED}(" not in text:
        return []
    try:
        tree = parse(text)
    except SyntaxError:
        return []
    names: set[str] = set()
    found = []
    for call in sorted(_calls(tree), key=lambda call: (call.lineno, call.col_offset)):
        called = ast.unparse(call.args[0])
        plain = re.sub(r"\W+", "_", called).strip("_") or CALLED
        plain = plain if plain.isidentifier() else f"{CALLED}_{plain}"
        numbered = (f"{plain}_{n}" for n in count(2))
        name = next(name for name in chain([plain], numbered) if name not in names)
        names.add(name)
        found.append(SnapshotCall(name, called, call.lineno, call.end_lineno or call.lineno))
    return found


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that run when the script does, not when one of its functions does."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    if isinstance(node, ast.Call) and node.args and _is_snapshot(node.func):
        yield node
    for inner in ast.iter_child_nodes(node):
        yield from _calls(inner)


def _is_snapshot(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr == CALLED and ast.unparse(called.value) == "conformance"
    return isinstance(called, ast.Name) and called.id == CALLED


def render_snapshot_cases(file: Path, found: list[SnapshotCall], digest: str) -> str:
    """Return a case file with a case for each call.

    Args:
        file: The script.
        found: Its calls of `snapshot`.
        digest: Hash of what they depend on: with another one they are other cases.
    """
    cases = (
        _CASE.format(
            name=one.name, file=file.name, first=one.first, last=one.last,
            called=one.called.replace("\\", "\\\\").replace('"', "'"),
        )
        for one in found
    )  # fmt: skip
    return _TEXT.format(file=str(file), digest=digest) + "".join(cases)


def find_script(text: str) -> Path | None:
    """Return the script of a case file of `render_snapshot_cases`, None for any other file.

    Args:
        text: The case file.
    """
    if not text.startswith(_TEXT.partition("{")[0]):
        return None
    (quoted,) = re.findall(r"^FILE = Path\((.*)\)$", text, re.MULTILINE)
    return Path(ast.literal_eval(quoted))


def carried_script(text: str, script: Path) -> str:
    """Return a snapshot case file whose script is in the first folder of `sys.path`.

    Args:
        text: The case file.
        script: Its script.
    """
    there = f"FILE = Path(sys.path[0], {script.name!r})"
    return text.replace(f"FILE = Path({str(script)!r})", there, 1)


def family_of(file: Path) -> str:
    """Return the family of a script's cases."""
    plain = re.sub(r"\W+", "_", file.stem)
    return plain if plain.isidentifier() else f"{CALLED}_{plain}"
