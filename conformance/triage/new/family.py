"""Which family a script belongs to: the one whose cases use what it uses. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from heapq import nlargest
from math import hypot, log
from typing import TYPE_CHECKING, Final

from conformance.triage.new.source import called, imported_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SUBJECTS: Final = ("jax", "jaxlib", "flax", "optax", "orbax", "equinox")
"""Packages whose names say what a script is about."""
_NUMBERS: Final = frozenset({"jax.numpy", "jax.tree_util", "jax.tree"})
_MAKERS: Final = frozenset({
    "array", "asarray", "arange", "linspace", "ones", "zeros", "full", "eye", "ndarray", "newaxis",
    "ones_like", "zeros_like", "pi", "inf", "nan", "bool_", "bfloat16", "float16", "float32",
    "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "complex64",
})  # fmt: skip
"""Names of `jax.numpy` by which a script makes its arguments, whatever it is about."""
_PLACES: Final = frozenset({
    "lax", "experimental", "sharding", "numpy", "jit", "_src", "Mesh", "devices", "device_put",
    "PartitionSpec", "NamedSharding",
})  # fmt: skip
"""Names that only set the scene, or say where others are."""
_SETTINGS: Final = "config"
_ENVIRONMENT: Final = frozenset({
    "print_environment_info", "block_until_ready", "platform", "device_kind", "default_backend",
})  # fmt: skip
"""Names that show where a program runs, or wait for it."""
_ARRAY: Final = frozenset({
    "T", "shape", "dtype", "size", "ndim", "sum", "mean", "max", "min", "reshape", "astype", "at",
    "set", "add", "copy", "append", "items", "keys", "values", "update", "format", "join",
})  # fmt: skip
"""Attributes of arrays, lists and texts: every script has some."""
_BESIDE: Final = frozenset({"mesh", "in_specs", "out_specs", "dtype", "shape", "axis", "name"})
"""Keywords that say no more than the function they are given to."""
_COMPAT: Final = "compat"
_KIT: Final = "conformance."
"""Keywords given to what it has say how a case is judged, not what it does."""
_TOLD: Final = 3
"""Names that a reason tells."""
_NEAREST: Final = 2
"""Files of a family that count."""
ENOUGH: Final = 0.2
"""Score from which a family is meant."""
GUESSED: Final = 0.1
"""Score from which a family is worth a guess, which is said to be one."""
AHEAD: Final = 1.3
"""How far the best family must be ahead of the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well a family fits.

    Attributes:
        family: Its name.
        score: How much of what the script uses is its own.
        names: The names that tell so, the one that tells most first.
    """

    family: str
    score: float
    names: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        told = ", ".join(self.names[:_TOLD])
        return f"its cases use {told}" if told else "nothing the script uses is its own"


def uses(tree: ast.AST, *, numbers: bool = False) -> frozenset[str]:
    """Return the names of jax, and of libraries built on it, that a script or a case file uses.

    Args:
        tree: The syntax tree of the file.
        numbers: Whether functions of `jax.numpy` and of pytrees count, too. Nearly every script
            uses some, so they only tell families apart where a script uses nothing else.
    """
    names = imported_names(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, parts = _path(node)
            path = [*names.get(root, root).split("."), *parts]
            if _COMPAT in path:
                found.update(path[path.index(_COMPAT) + 1 :])
            elif path[0] in _SUBJECTS:
                found.update(_telling(path, numbers=numbers))
            elif root not in names and node.attr not in _ARRAY and _is_telling(node.attr):
                found.add(f".{node.attr}")
        elif isinstance(node, ast.Name) and node.id in names:
            path = names[node.id].split(".")
            found.update(_telling(path, numbers=numbers) if path[0] in _SUBJECTS else ())
        elif isinstance(node, ast.Call) and not called(node, names).startswith(_KIT):
            given = {keyword.arg for keyword in node.keywords if keyword.arg}
            found.update(f"{name}=" for name in given - _BESIDE)
    return frozenset(found)


def _telling(path: Sequence[str], *, numbers: bool) -> list[str]:
    """Return the parts of a dotted name that say what it is about."""
    if path[1:2] == [_SETTINGS]:
        return []
    if ".".join(path[:2]) in _NUMBERS:
        return [part for part in path[2:] if part not in _MAKERS] if numbers else []
    return [part for part in path[1:] if part not in _PLACES and _is_telling(part)]


def _is_telling(name: str) -> bool:
    return name not in _ENVIRONMENT and not name.startswith("__")


def _path(node: ast.Attribute) -> tuple[str, list[str]]:
    """Return the root of a dotted name, and its attributes; no root where it is another's."""
    parts: list[str] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    return (at.id if isinstance(at, ast.Name) else ""), parts[::-1]


def fits(used: frozenset[str], families: Mapping[str, Sequence[frozenset[str]]]) -> list[Fit]:
    """Return how well each family fits, the best first.

    By the cosine between what the script uses and what a file does, where a name weighs the more,
    the fewer families use it (tf-idf). The nearest files of a family count: it may be about more
    than one thing.

    Args:
        used: The names that a script uses.
        families: By name, what each of its files uses.
    """
    heard_in = Counter(name for files in families.values() for name in set().union(*files))
    weights = {name: log(1 + len(families) / max(heard_in[name], 1)) for name in {*heard_in, *used}}
    length = _length(used, weights)
    found = []
    for family, files in families.items():
        shares = [_shared(used, file, weights, length) for file in files]
        near = nlargest(_NEAREST, shares, key=lambda share: sum(share.values()))
        told = Counter[str]()
        for share in near:
            told.update(share)
        score = sum(told.values()) / max(len(near), 1) * (1 + _named(used, family) / 2)
        names = tuple(sorted(told, key=lambda name: (-told[name], name)))
        found.append(Fit(family=family, score=score, names=names))
    return sorted(found, key=lambda fit: (-fit.score, fit.family))


def _length(names: Iterable[str], weights: Mapping[str, float]) -> float:
    return hypot(*(weights[name] for name in names))


def _shared(
    used: frozenset[str], file: frozenset[str], weights: Mapping[str, float], length: float
) -> dict[str, float]:
    """Return what each name that both use adds to their cosine; `length` is that of the first."""
    scale = length * _length(file, weights)
    return {name: weights[name] ** 2 / scale for name in used & file}


def _named(used: Iterable[str], family: str) -> float:
    """Return how much of a family's name the names say that a script uses."""
    said = {word for name in used for word in name.split("_")}
    words = set(family.split("_"))
    return len(words & said) / len(words)


def chosen(found: Sequence[Fit]) -> Fit | None:
    """Return the family that is meant, None where none is, or two are alike.

    Args:
        found: How well each fits, the best first.
    """
    if not found or found[0].score < ENOUGH:
        return None
    second = found[1].score if len(found) > 1 else 0.0
    return found[0] if found[0].score >= AHEAD * second else None


def guessed(found: Sequence[Fit], enough: float = GUESSED) -> Fit | None:
    """Return the best of the families where it shares names worth a guess, else None.

    Args:
        found: How well each fits, the best first.
        enough: Score from which names are worth a guess.
    """
    return found[0] if found and found[0].names and found[0].score >= enough else None
