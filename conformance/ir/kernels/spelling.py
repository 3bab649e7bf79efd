"""Canonical spelling of the operations of a kernel, the same for every release."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from conformance.ir.graph import Tensor
from conformance.ir.normal.attributes import RENAMED, SPELLING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.ir.graph import Attribute, Computation

_STABLE: Final = re.compile(r"stable_mosaic(?:_gpu)?\.")
"""How the names of operations begin in what Mosaic promises to read later."""
_VERSIONS: Final = frozenset({"stable_mosaic.version", "stable_mosaic_gpu.version"})
SIGNATURE: Final = "signature"
"""The type of a function, which its region says as well if it has one."""
_RENAMED: Final = {
    "sym_name": "symbol",
    "sym_visibility": "visibility",
    "function_type": SIGNATURE,
    "callee": "calls",
}
_TAKEN: Final = (
    SPELLING | RENAMED.keys() | {"captured", "channel", "channel_id", "index", "inline", "kind"}
)
"""Names that mean something else, or nothing, outside of kernels."""
_DEFAULTS: Final[dict[tuple[str, str], Attribute]] = {
    ("kernel.func", "tpu.core_type"): "#tpu.core_type<tc>",
    ("tpu.enqueue_dma", "strict_ordering"): False,
    ("tpu.matmul", "transpose_lhs_hint"): False,
    ("tpu.vector_store", "add"): False,
    ("tpu.wait_dma2", "strict_ordering"): False,
    **{(op, name): 1 for op in ("tt.load", "tt.store") for name in ("cache", "evict")},
    **{(op, "boundaryCheck"): () for op in ("tt.load", "tt.store")},
    ("tt.load", "isVolatile"): False,
}
"""Attributes that later releases write out and earlier ones leave to be understood."""
_SEGMENTS: Final = "operandSegmentSizes"
"""How many operands each group has; later releases have further groups at the end."""
ENTRY: Final = "main"
"""What the function is called that a kernel begins with: its own name is in the configuration."""


def canonical_op(op: str) -> str:
    """Return the name of an operation, `arith.addf`."""
    found = _STABLE.match(op)
    plain = op if found is None else op[found.end() :]
    # A `func.call` of a kernel calls nothing that is outside of it.
    return f"kernel.{plain.removeprefix('func.')}" if plain.startswith("func.") else plain


def meant(op: str, attributes: Iterable[tuple[str, Attribute]]) -> dict[str, Attribute]:
    """Return the canonical attributes of an operation.

    Args:
        op: The operation.
        attributes: As they are stored.

    Returns:
        Under names to which other passes give no meaning.
    """
    kept = {}
    for name, value in attributes:
        if name in _VERSIONS:
            continue
        if (op, name) in _DEFAULTS and _DEFAULTS[op, name] == value:
            continue
        if op == "builtin.module" and name == "sym_name":
            continue
        if (op, name) == ("tpu.iota", "dimension"):
            name, value = "dimensions", (value,)  # noqa: PLW2901 - as later releases say it
        if name == _SEGMENTS and isinstance(value, tuple):
            value = _without_zeros(value)  # noqa: PLW2901
            if set(value) == {1}:  # as where there are no groups
                continue
        if op.endswith(".constant") and isinstance(value, tuple) and name == "value":
            value = value[0] if _is_tensor(value) else value  # noqa: PLW2901
        own = _RENAMED.get(name, name)
        kept[f"kernel_{own}" if own in _TAKEN else own] = value
    return dict(sorted(kept.items()))


def _is_tensor(value: tuple[Attribute, ...]) -> bool:
    """Say whether a value is a tensor's elements with its type; a result has that too."""
    return len(value) == 2 and isinstance(value[1], Tensor)  # noqa: PLR2004


def _without_zeros(sizes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    """Return the sizes of groups without the empty ones at the end."""
    count = len(sizes)
    while count and sizes[count - 1] == 0:
        count -= 1
    return sizes[:count]


def name_entry(module: Computation) -> None:
    """Name the function that a kernel begins with, whatever it is called in the source.

    Args:
        module: The kernel; the only function that no other names gets another name.
    """
    functions = [i for i in module.instructions if "symbol" in i.attributes]
    named: set[str] = set()
    seen: set[int] = set()
    todo = [module]
    while todo:
        for instruction in todo.pop().instructions:
            for inner in (inner for _, inner in instruction.bodies if id(inner) not in seen):
                seen.add(id(inner))
                todo.append(inner)
            for name, value in instruction.attributes.items():
                if name != "symbol":
                    named.update(_symbols(value))
    unnamed = [i for i in functions if f"@{i.attributes['symbol']}" not in named]
    taken = [i for i in functions if i.attributes["symbol"] == ENTRY]
    if len(unnamed) == 1 and taken in ([], unnamed):
        entry = unnamed[0]
        entry.attributes = {**entry.attributes, "symbol": ENTRY}
        functions.sort(key=lambda i: str(i.attributes["symbol"]))
        rest = [value for value in module.results if value[0] not in set(functions)]
        module.results = rest + [(function, ()) for function in functions]


def _symbols(value: Attribute) -> Iterator[str]:
    """Yield the symbols an attribute names."""
    if isinstance(value, str):
        if value.startswith("@"):
            yield value.partition("::")[0]
    elif isinstance(value, tuple):
        for part in value:
            yield from _symbols(part)
