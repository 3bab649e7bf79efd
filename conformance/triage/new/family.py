"""Finds the family of a script: its cases use the same names. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from heapq import nlargest
from math import hypot, log
from typing import TYPE_CHECKING, Final

from conformance.triage.new.script_source import collect_imported_names, resolve_callee

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SUBJECTS: Final = ("jax", "jaxlib", "flax", "optax", "orbax", "equinox")
"""Packages whose names indicate the subject of a script."""
_NUMPY_MODULES: Final = frozenset({"jax.numpy", "jax.tree_util", "jax.tree"})
_CONSTRUCTORS: Final = frozenset({
    "array", "asarray", "arange", "linspace", "ones", "zeros", "full", "eye", "ndarray", "newaxis",
    "ones_like", "zeros_like", "pi", "inf", "nan", "bool_", "bfloat16", "float16", "float32",
    "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "complex64",
})  # fmt: skip
"""Names of `jax.numpy` by which any script makes its arguments."""
_GENERIC: Final = frozenset({
    "lax", "experimental", "sharding", "numpy", "jit", "_src", "Mesh", "devices", "device_put",
    "PartitionSpec", "NamedSharding",
})  # fmt: skip
"""Names of modules, and names that scripts about any subject use."""
_CONFIG: Final = "config"
_ENVIRONMENT: Final = frozenset({
    "print_environment_info", "block_until_ready", "platform", "device_kind", "default_backend",
})  # fmt: skip
"""Names that show the environment of a program, or wait for it."""
_ARRAY_ATTRIBUTES: Final = frozenset({
    "T", "shape", "dtype", "size", "ndim", "sum", "mean", "max", "min", "reshape", "astype", "at",
    "set", "add", "copy", "append", "items", "keys", "values", "update", "format", "join",
})  # fmt: skip
"""Attributes of arrays, lists and strings: every script has some."""
_COMMON_KEYWORDS: Final = frozenset(
    {"mesh", "in_specs", "out_specs", "dtype", "shape", "axis", "name"}
)
"""Keywords that add nothing to the name of the function they are passed to."""
_COMPAT: Final = "compat"
_KIT: Final = "conformance."
"""Keywords of its functions are about the judgement of a case, not about its subject."""
_NAMES_IN_REASON: Final = 3
_NEAREST: Final = 2
"""Files of a family that count."""
CERTAIN: Final = 0.2
"""Score from which a family is chosen."""
GUESS: Final = 0.1
"""Score from which a family is guessed, and reported as a guess."""
LEAD: Final = 1.3
"""Factor by which the best family must be ahead of the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyMatch:
    """A family with its similarity to a script.

    Attributes:
        family: Its name.
        score: Its similarity.
        names: The names that both use, the most characteristic first.
    """

    family: str
    score: float
    names: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The reason for the match, in a few words."""
        names = ", ".join(self.names[:_NAMES_IN_REASON])
        return f"its cases use {names}" if names else "no name the script uses is its own"


@dataclass(frozen=True, slots=True)
class UsedNames:
    """The names of jax, and of libraries built on it, that a script or a case file uses.

    Attributes:
        typical: Names that are typical of a subject.
        numpy: Functions of `jax.numpy` and of pytrees. Nearly every script uses some, so they only
            distinguish families if a script uses nothing else.
    """

    typical: frozenset[str] = frozenset()
    numpy: frozenset[str] = frozenset()

    @property
    def every(self) -> frozenset[str]:
        """Both."""
        return self.typical | self.numpy

    def union(self, *others: UsedNames) -> UsedNames:
        """Return the names of these files together."""
        return UsedNames(
            self.typical.union(*(other.typical for other in others)),
            self.numpy.union(*(other.numpy for other in others)),
        )


def collect_used_names(tree: ast.AST) -> UsedNames:
    """Return the names that a script or a case file uses.

    Args:
        tree: The syntax tree of the file.
    """
    nodes = list(ast.walk(tree))
    names = collect_imported_names(nodes)
    used: set[str] = set()
    numpy: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            root, attributes = _split_attribute(node)
            path = [*names.get(root, root).split("."), *attributes]
            # A script spells `env.compat.NAME` of a case as `jax.NAME`.
            if _COMPAT in path:
                used.update(path[path.index(_COMPAT) + 1 :])
            elif path[0] in _SUBJECTS:
                _add_parts(path, used, numpy)
            # A method of some object: its dot keeps it apart from a function of that name.
            elif root not in names and _is_characteristic(node.attr, _ARRAY_ATTRIBUTES):
                used.add(f".{node.attr}")
        elif isinstance(node, ast.Name) and node.id in names:
            path = names[node.id].split(".")
            if path[0] in _SUBJECTS:
                _add_parts(path, used, numpy)
        elif isinstance(node, ast.Call) and not resolve_callee(node, names).startswith(_KIT):
            keywords = {keyword.arg for keyword in node.keywords if keyword.arg}
            used.update(f"{name}=" for name in keywords - _COMMON_KEYWORDS)
    return UsedNames(frozenset(used), frozenset(numpy))


def _add_parts(path: Sequence[str], used: set[str], numpy: set[str]) -> None:
    """Add the parts of a dotted name that are typical of a subject, or a function of NumPy."""
    # A setting is no subject: scripts about anything switch on 64-bit types.
    if path[1:2] == [_CONFIG]:
        return
    if ".".join(path[:2]) in _NUMPY_MODULES:
        numpy.update(part for part in path[2:] if part not in _CONSTRUCTORS)
    else:
        used.update(part for part in path[1:] if _is_characteristic(part, _GENERIC))


def _is_characteristic(name: str, excluded: frozenset[str]) -> bool:
    return not (name in excluded or name in _ENVIRONMENT or name.startswith("__"))


def _split_attribute(node: ast.Attribute) -> tuple[str, list[str]]:
    """Return the root of a dotted name, empty if it is no name, and its attributes."""
    attributes: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        attributes.append(inner.attr)
        inner = inner.value
    return (inner.id if isinstance(inner, ast.Name) else ""), attributes[::-1]


def rank_families(
    used: frozenset[str], families: Mapping[str, Sequence[frozenset[str]]]
) -> list[FamilyMatch]:
    """Return all families with their similarity to a script, the most similar first.

    The similarity to a file is the cosine between the names that both use, weighted by tf-idf: a
    name weighs more if fewer families use it. The nearest files of a family count, not all: a
    family may be about several things.

    Args:
        used: The names that a script uses.
        families: The names that each of its files uses, by name of the family.
    """
    frequency = Counter(name for files in families.values() for name in set().union(*files))
    weights = {
        # At least 1, for a name that no family uses.
        name: log(1 + len(families) / max(frequency[name], 1))
        for name in {*frequency, *used}
    }

    def length(names: frozenset[str]) -> float:
        return hypot(*(weights[name] for name in names))

    used_length = length(used)
    used_words = {word for name in used for word in name.split("_")}
    ranked = []
    for family, files in families.items():
        shares = [
            # Lengths are not zero: a name in both sets makes both positive.
            {name: weights[name] ** 2 / (used_length * length(file)) for name in used & file}
            for file in files
        ]
        # Not their mean: a family with many topics would be unlike any script.
        nearest = nlargest(_NEAREST, shares, key=lambda share: sum(share.values()))
        total = Counter[str]()
        for share in nearest:
            total.update(share)
        # Up to half more for a family whose own words are among the names.
        words = set(family.split("_"))
        named = len(words & used_words) / len(words)
        score = sum(total.values()) / max(len(nearest), 1) * (1 + named / 2)
        # By name among equal shares: the reason is printed, and the order of sets changes from run
        # to run.
        names = tuple(sorted(total, key=lambda name: (-total[name], name)))
        ranked.append(FamilyMatch(family=family, score=score, names=names))
    return sorted(ranked, key=lambda match: (-match.score, match.family))


def choose_family(ranked: Sequence[FamilyMatch]) -> FamilyMatch | None:
    """Return the family that matches with certainty, None if none does, or two are alike.

    Args:
        ranked: The families, the most similar first.
    """
    if not ranked or ranked[0].score < CERTAIN:
        return None
    second = ranked[1].score if len(ranked) > 1 else 0.0
    return ranked[0] if ranked[0].score >= LEAD * second else None


def guess_family(ranked: Sequence[FamilyMatch], threshold: float = GUESS) -> FamilyMatch | None:
    """Return the most similar family if it shares names with the script, else None.

    Args:
        ranked: The families, the most similar first.
        threshold: Score from which a family is guessed.
    """
    return ranked[0] if ranked and ranked[0].names and ranked[0].score >= threshold else None
