"""The number of devices that a program needs, by its source and by the error that ends it on one.

Pure.
"""

from __future__ import annotations

import ast
import re
from math import prod
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import parse
from conformance.triage.programs.report_facts import MOST_DEVICES, sets_device_count

if TYPE_CHECKING:
    from conformance.model.record import ErrorInfo

_TOO_FEW_DEVICES: Final = re.compile(
    r"requires (?P<count>\d+) logical devices, but only 1 "
    r"|Number of devices 1 must (?:be >=|equal) the product of mesh_shape \((?P<mesh>[\d, ]+)\)"
)
_RESHAPED: Final = re.compile(
    r"cannot reshape array of size 1 into shape \((?P<shape>(?:\d+|newaxis|[, ])+)\)"
)
"""The message of NumPy for `np.array(jax.devices()).reshape(...)`, and for other arrays."""
_OPEN_AXIS: Final = 2
"""Devices of an axis whose size the program leaves open."""
_LISTS: Final = {"devices", "local_devices"}
_COUNTS: Final = {"device_count", "local_device_count"}


def count_needed_devices(error: ErrorInfo | None, source: str) -> int:
    """Return the number of devices that a program with one device needs, 0 if one is enough.

    Args:
        error: The error that ended the program, if any.
        source: Source of the program, empty if unknown.
    """
    message = "" if error is None else error.message
    match = _TOO_FEW_DEVICES.search(message)
    if match is None and ".devices()" in source:
        match = _RESHAPED.search(message)
    if match is None:
        return 0
    sizes = re.findall(r"\d+|newaxis", next(filter(None, match.groups())))
    return _limit(prod(_OPEN_AXIS if size == "newaxis" else int(size) for size in sizes))


def count_named_devices(source: str) -> int:
    """Return the number of devices that the source of a program names, 0 if it names none.

    It names some with `jax.devices()[:4]`, `jax.devices()[3]`, and with an `assert` about their
    number. With fewer, a slice is silently shorter.

    Args:
        source: Source of the program; it names none if it sets the number itself.
    """
    try:
        tree = parse(source)
    except SyntaxError:
        return 0
    found = [count for node in ast.walk(tree) for count in _read_counts(node)]
    return 0 if not found or sets_device_count(tree) else _limit(max(found))


def _limit(count: int) -> int:
    return count if 1 < count <= MOST_DEVICES else 0


def _read_counts(node: ast.AST) -> list[int]:
    """Return the numbers of devices that a subscript or an assertion names."""
    match node:
        case ast.Subscript(value=value, slice=ast.Slice(upper=ast.Constant(value=int(stop)))):
            return [stop] if _is_call(value, _LISTS) else []
        case ast.Subscript(value=value, slice=ast.Constant(value=int(index))):
            return [index + 1] if _is_call(value, _LISTS) else []
        case ast.Assert(test=test):
            return [count for part in ast.walk(test) for count in _read_comparison(part)]
        case _:
            return []


def _read_comparison(node: ast.AST) -> list[int]:
    match node:
        case ast.Compare(
            left=left, ops=[ast.Eq() | ast.GtE()], comparators=[ast.Constant(value=int(count))]
        ):
            return [count] if _is_call(left, _COUNTS) or _is_length(left) else []
        case _:
            return []


def _is_length(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[argument]):
            return _is_call(argument, _LISTS)
        case _:
            return False


def _is_call(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in names
        case _:
            return False
