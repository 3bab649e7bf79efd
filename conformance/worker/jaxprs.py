"""Closed jaxprs as JSON: plain data, the same for the same meaning on every release.

Jaxprs are not nested in the document, so that the depth of a program is no limit: a jaxpr refers to
inner jaxprs, avals and sources by number, and each of them is stored once.

    {"form": 1, "name": NAME,
     "files": [FILE, ...],
     "sources": [[NAME_STACK, file number or -1, LINE], ...],
     "avals": [[DTYPE, [SIZE, ...], {MORE}?], ...],
     "jaxprs": [JAXPR, ...]}                              the first one is the entry

    JAXPR  {"consts": [[aval number, VALUE], ...],        variables 0, 1, ...
            "in": [aval number, ...],                     the next variables
            "eqns": [EQN, ...],
            "out": [ATOM, ...]}
    EQN    [PRIMITIVE, [ATOM, ...], [aval number, ...], {PARAM: VALUE}, source number]
           the results are the next variables; the effects and the context of an equation are the
           params `ctx effects`, `ctx compute_type`, `ctx xla_metadata`
    ATOM   the number of a variable, or [aval number, VALUE] for a literal
    MORE   `weak_type`: true, `vma`: axis names, `unreduced` and `reduced` likewise,
           `sharding`: SPEC, `space`: memory space; each only if it is not the default
    VALUE  null, true, 1, 1.5, "text", lists (also of tuples, and of sets, sorted), and
           {"dtype": NAME}, {"jaxpr": number}, {"aval": number}, {"text": any other value}

A mapping is a list of pairs; a named tuple or dataclass `[NAME, [FIELD, VALUE], ...]`; an enum
its name; a function its qualified name; a float without a JSON spelling `"nan"`, `"inf"`,
`"-inf"`; a complex number `["complex", RE, IM]`; a mesh `["mesh", [AXIS, SIZE, TYPE?], ...]`; a
SPEC a list of axis names for each dimension; a sharding `["sharding", MESH, SPEC, MEMORY_KIND]`;
the numbers of leaves in the parts of a flat tree `["parts", NUMBER, ...]`; an array parameter
`["array", DTYPE, [SIZE, ...], DATA]`. DATA is the flat list of its elements (for constants without
dimensions the element itself), for more than 64 elements `"sha256:..."` of their bytes, and null if
the elements cannot be read.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np
from jax._src import source_info_util

from conformance.worker.jaxpr_types import (
    encode_aval,
    encode_dtype,
    encode_mesh,
    encode_spec,
    is_dtype,
    strip_addresses,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FORM = 1
"""Version of the document."""
LARGEST = 64
"""Elements of a constant above which its hash is stored instead."""
PACKAGE = Path(__file__).resolve().parents[1]
HARNESS = (str(PACKAGE / "kit"), str(PACKAGE / "worker"))
"""Folders of the harness. Not the whole package: an installed one has the cases below `data`."""


def encode_jaxpr(closed: Any) -> str:
    """Return a closed jaxpr as a JSON document, see the module.

    Args:
        closed: A `ClosedJaxpr` of any release.

    Returns:
        One line of JSON; the same in every process.
    """
    return json.dumps(_Walk().make_document(closed), separators=(",", ":"))


class _Walk:
    """One pass over a jaxpr and all its inner jaxprs."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Any, int]] = {"avals": {}, "sources": {}, "files": {}}
        self._tables: dict[str, list[Any]] = {"avals": [], "sources": [], "files": []}
        # By identity: jaxprs keep their avals alive, so that an id is unique during the walk.
        self._seen_avals: dict[int, int] = {}
        self._seen_jaxprs: dict[int, int] = {}
        self._queue: list[Any] = []

    def make_document(self, closed: Any) -> dict[str, Any]:
        self._number_jaxpr(closed)
        jaxprs: list[dict[str, Any]] = []
        while len(jaxprs) < len(self._queue):  # walking a jaxpr may add inner ones
            jaxprs.append(self._describe_jaxpr(self._queue[len(jaxprs)]))
        return {
            "form": FORM,
            "name": _get_program_name(closed.jaxpr),
            **self._tables,
            "jaxprs": jaxprs,
        }

    def _number_jaxpr(self, jaxpr: Any) -> int:
        number = self._seen_jaxprs.get(id(jaxpr))
        if number is None:
            number = self._seen_jaxprs[id(jaxpr)] = len(self._queue)
            self._queue.append(jaxpr)  # also keeps it alive, so that its id stays unique
        return number

    def _describe_jaxpr(self, either: Any) -> dict[str, Any]:
        """Return the description of an open or closed jaxpr."""
        closed = hasattr(either, "consts")
        jaxpr = either.jaxpr if closed else either
        values = either.consts if closed else [None] * len(jaxpr.constvars)
        variables = [*jaxpr.constvars, *jaxpr.invars]
        numbers = {id(variable): number for number, variable in enumerate(variables)}
        return {
            "consts": [
                [self._number_aval(v.aval), encode_constant(value)]
                for v, value in zip(jaxpr.constvars, values, strict=True)
            ],
            "in": [self._number_aval(v.aval) for v in jaxpr.invars],
            "eqns": [self._describe_eqn(eqn, numbers) for eqn in jaxpr.eqns],
            "out": [self._describe_atom(atom, numbers) for atom in jaxpr.outvars],
        }

    def _describe_eqn(self, eqn: Any, numbers: dict[int, int]) -> list[Any]:
        inputs = [self._describe_atom(atom, numbers) for atom in eqn.invars]
        outputs = []
        for variable in eqn.outvars:
            numbers[id(variable)] = len(numbers)
            outputs.append(self._number_aval(variable.aval))
        # Parameters are keywords: their order has no meaning, and depends on the release.
        params = {str(name): self.spell_value(eqn.params[name]) for name in sorted(eqn.params)}
        context = getattr(eqn, "ctx", None)
        for name in ("compute_type", "xla_metadata"):
            if setting := getattr(context, name, None):
                params[f"ctx {name}"] = self.spell_value(setting)
        if eqn.effects:
            params["ctx effects"] = _spell_effects(eqn.effects)
        return [eqn.primitive.name, inputs, outputs, params, self._number_source(eqn.source_info)]

    def _describe_atom(self, atom: Any, numbers: dict[int, int]) -> Any:
        if hasattr(atom, "val"):
            return [self._number_aval(atom.aval), encode_literal(atom.val, atom.aval)]
        return numbers[id(atom)]

    def _number_aval(self, aval: Any) -> int:
        number = self._seen_avals.get(id(aval))
        if number is None:
            described = encode_aval(aval)
            number = self._assign_number("avals", json.dumps(described), described)
            self._seen_avals[id(aval)] = number
        return number

    def _number_source(self, source_info: Any) -> int:
        file, line = _find_user_line(source_info)
        at = self._assign_number("files", file, file) if file else -1
        entry = (str(source_info.name_stack), at, line)
        return self._assign_number("sources", entry, entry)

    def _assign_number(self, table: str, key: Any, entry: Any) -> int:
        numbers = self._numbers[table]
        if key not in numbers:
            numbers[key] = len(numbers)
            self._tables[table].append(entry)
        return numbers[key]

    def spell_value(self, value: Any) -> Any:
        """Return a parameter as plain data; jaxprs in it are walked later."""
        kind = type(value)
        # By exact type: an IntEnum is an int, and is spelled by its name.
        if value is None or kind in _PLAIN:
            return value
        spell = _SPELLING_OF.get(kind)
        if spell is None:
            spell = next(spell for applies, spell in _SPELLINGS if applies(value))
            _SPELLING_OF[kind] = spell
        return spell(self, value)

    def spell_values(self, values: Iterable[Any]) -> list[Any]:
        """Return several parameters as plain data."""
        return [self.spell_value(value) for value in values]

    def refer_to_jaxpr(self, jaxpr: Any) -> dict[str, int]:
        """Return the reference to a jaxpr, open or closed."""
        return {"jaxpr": self._number_jaxpr(jaxpr)}

    def refer_to_aval(self, aval: Any) -> dict[str, int]:
        """Return the reference to an aval."""
        return {"aval": self._number_aval(aval)}

    def spell_record(self, name: str, items: Iterable[tuple[str, Any]]) -> list[Any]:
        """Return a named tuple or dataclass as plain data, without the place of its source."""
        return [
            name,
            *([field, self.spell_value(value)] for field, value in items if field != "src_info"),
        ]


def encode_literal(value: Any, aval: Any) -> Any:
    """Return a literal's value as plain data, rounded to its type: `0.1` of f32 is an f32."""
    # Releases hold a literal as a Python number or as a NumPy scalar of its type.
    try:
        return encode_scalar(np.asarray(value).astype(aval.dtype)[()])
    except Exception:  # literals of key or opaque types have no NumPy form
        return encode_constant(value)


def encode_constant(value: Any) -> Any:
    """Return the data of a constant, see DATA of the module; None if they cannot be read."""
    if value is None or type(value) in {bool, int, float, complex}:
        return encode_scalar(value)
    try:
        if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        array = np.asarray(value)
    except Exception:  # sharded over other processes, deleted, or no array
        return None
    if array.dtype == object:
        return _spell_text(value)
    if array.size > LARGEST:
        # As little-endian bytes, so that the hash is the same on every host.
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        data = np.ascontiguousarray(little).view(np.uint8).data
        return f"sha256:{hashlib.sha256(data).hexdigest()}"
    items = [encode_scalar(item) for item in array.ravel()]
    return items if array.ndim else items[0]


def encode_scalar(value: Any) -> Any:
    """Return a number as JSON can represent it, see the module."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, complex):
        return ["complex", encode_scalar(value.real), encode_scalar(value.imag)]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns")


def _is_enum(value: Any) -> bool:
    # Enums of jaxlib up to 0.4.34 are classes of pybind11, not of Python's `enum`.
    return isinstance(value, enum.Enum) or hasattr(type(value), "@entries")


def _get_enum_name(value: Any) -> str:
    return str(value.name if isinstance(value, enum.Enum) else value.__name__)


def _spell_single_device(value: Any) -> list[Any]:
    (device,) = value.device_set
    return ["single", device.id, value.memory_kind]


def _count_parts(tree: Any) -> list[Any]:
    """Return the number of leaves in each part of a flat tree, formerly in `num_consts`."""
    return ["parts", *(len(list(part)) for part in tree.unpack())]


def _spell_text(value: Any) -> dict[str, str]:
    return {"text": strip_addresses(str(value))}


def _get_function_name(value: Any) -> str:
    while isinstance(value, functools.partial):
        value = value.func
    for attribute in ("__qualname__", "__name__"):
        name = getattr(value, attribute, None)
        if isinstance(name, str):
            return strip_addresses(name)
    return type(value).__qualname__


def _get_program_name(jaxpr: Any) -> str:
    """Return the name of the traced function."""
    # Older releases have only `func_src_info`, `NAME at FILE:LINE`.
    debug = getattr(jaxpr, "debug_info", None)
    name = getattr(debug, "func_name", None)
    if name is None:
        name = str(getattr(debug, "func_src_info", "") or "").partition(" at ")[0]
    return strip_addresses(str(name or ""))


def _spell_effects(effects: Any) -> list[str]:
    # By class: the text of an effect may contain the number of a variable or an address.
    return sorted(type(e).__name__ if not isinstance(e, type) else e.__name__ for e in effects)


def _spell_class(value: type) -> Any:
    return _spell_dtype(value) if issubclass(value, np.generic) else value.__qualname__


def _spell_dtype(value: Any) -> dict[str, str]:
    return {"dtype": encode_dtype(value)}


@functools.cache
def _frames_take_source_info() -> bool:
    """Say whether `user_frames` takes the source info; newer releases take its traceback."""
    return "source_info" in inspect.signature(source_info_util.user_frames).parameters


def _find_user_line(source_info: Any) -> tuple[str, int]:
    """Return file and line of the innermost frame of an equation outside jax and the harness."""
    argument = source_info if _frames_take_source_info() else source_info.traceback
    for frame in source_info_util.user_frames(argument):
        if not frame.file_name.startswith(HARNESS):
            return frame.file_name, frame.start_line
    return "", 0


def _has_class_name(*names: str) -> Callable[[Any], bool]:
    """Return a test for classes that move from module to module, or are private."""
    # By name: an import of such a class would break on the releases that lack it.
    return lambda value: not _collect_names(type(value)).isdisjoint(names)


def _collect_names(kind: type) -> set[str]:
    """Return the names of a class and its base classes."""
    return {base.__name__ for base in kind.__mro__}


def _is_a(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: all(hasattr(value, name) for name in names)


_PLAIN = {bool, int, str}
"""Types of values that JSON has."""
_Test: TypeAlias = "Callable[[Any], bool]"
_Spell: TypeAlias = "Callable[[_Walk, Any], Any]"
_SPELLING_OF: dict[type, _Spell] = {}
"""Spellings by class, so that the tests run once for each class."""
# The order matters: a named tuple is a tuple, a PartitionSpec is one before 0.6.1, and objects of
# many classes are callable.
_SPELLINGS: tuple[tuple[_Test, _Spell], ...] = (
    (_is_a(type), lambda _, v: _spell_class(v)),
    (_is_jaxpr, _Walk.refer_to_jaxpr),
    (_is_a(jax.core.AbstractValue), _Walk.refer_to_aval),
    (_is_enum, lambda _, v: _get_enum_name(v)),
    (_is_a(bool, int, float, complex, np.generic), lambda _, v: encode_scalar(v)),
    (_is_a(str), lambda _, v: str(v)),
    (is_dtype, lambda _, v: _spell_dtype(v)),
    (
        _has("__array__"),
        lambda _, v: ["array", encode_dtype(v.dtype), [*v.shape], encode_constant(v)],
    ),
    (_is_a(jax.sharding.PartitionSpec), lambda _, v: encode_spec(v)),
    (
        _is_a(jax.sharding.NamedSharding),
        lambda _, v: ["sharding", encode_mesh(v.mesh), encode_spec(v.spec), v.memory_kind],
    ),
    (_is_a(jax.sharding.SingleDeviceSharding), lambda _, v: _spell_single_device(v)),
    (_has_class_name("DeprecatedArg"), lambda _, __: None),
    (_has_class_name("UnspecifiedValue"), lambda _, __: "unspecified"),
    (_has_class_name("ResourceEnv"), lambda _, v: encode_mesh(v.physical_mesh)),
    (_has_class_name("PRNGImpl"), lambda _, v: str(v.tag)),
    (_has_class_name("FlatTree"), lambda _, v: _count_parts(v)),
    (_has_class_name("PyTreeDef"), lambda _, v: str(v)),
    (_has_class_name("Effect"), lambda _, v: type(v).__name__),
    (_has("axis_names", "shape"), lambda _, v: encode_mesh(v)),
    (_has("platform", "id"), lambda _, v: ["device", v.id]),
    (
        _is_a(set, frozenset),
        lambda walk, v: sorted(walk.spell_values(v), key=json.dumps),
    ),
    (_is_a(Mapping), lambda walk, v: [walk.spell_values(item) for item in v.items()]),
    (
        _has("_fields"),
        lambda walk, v: walk.spell_record(type(v).__name__, zip(v._fields, v, strict=True)),
    ),
    (_is_a(tuple, list), _Walk.spell_values),
    (lambda v: callable(v) or hasattr(v, "__name__"), lambda _, v: _get_function_name(v)),
    (
        dataclasses.is_dataclass,
        lambda walk, v: walk.spell_record(
            type(v).__name__, ((f.name, getattr(v, f.name)) for f in dataclasses.fields(v))
        ),
    ),
    (lambda _: True, lambda _, v: _spell_text(v)),
)
"""Tests of values, each with a spelling: the first test that a value passes decides.

Results of the tests depend on the class of the value only."""
