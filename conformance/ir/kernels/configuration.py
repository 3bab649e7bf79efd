"""The configuration of a custom call that embeds a kernel: where the kernel is, what else counts.

It is JSON, an MLIR dictionary, or the text of one of them; the kernel in it is bytecode, for
Mosaic in base64.
"""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.ir.graph import IrSyntaxError, Opaque, Sharding, Tensor
from conformance.ir.kernels.container import MAGIC
from conformance.ir.mlir.attributes import Attributes
from conformance.ir.mlir.scan import Scanner
from conformance.ir.mlir.tensors import Types

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute

DEEPEST: Final = 64
"""How deep a configuration may nest."""
_RAW: Final = MAGIC.decode("latin-1")
_BASE64: Final = "TUzvU"
_NOISE: Final = frozenset(
    {
        *("debug_locations", "serialization_format", "cost_estimate", "cost_estimate_json"),
        *("kernel_hash", "operand_to_metadata", "debug", "source_info"),
    }
)
"""Keys that say where a kernel comes from, how it is stored or what it may cost."""


class Configuration(NamedTuple):
    """The configuration of a custom call.

    Attributes:
        rest: All but the kernels and what says nothing about them.
        kernels: Their bytecode, each with the key it stands under.
    """

    rest: Attribute
    kernels: tuple[tuple[str, bytes], ...]


def configuration(value: Attribute) -> Configuration | None:
    """Find the kernels in a configuration.

    Args:
        value: The attribute `backend_config`.

    Returns:
        What it says; None if there is no kernel in it.
    """
    if isinstance(value, str):
        if _RAW not in value and _BASE64 not in value and "ML\\EFR" not in value:
            return None
        value = _parse(value)
    kernels: list[tuple[str, bytes]] = []
    rest = _remove_kernels(value, "kernel", kernels, 0)
    return Configuration(rest, tuple(kernels)) if kernels else None


def _parse(text: str) -> Attribute:
    """Return what a text says, or itself."""
    try:
        return _freeze(json.loads(text, parse_constant=str))
    except (ValueError, RecursionError):
        pass
    found: dict[str, Attribute] = {}
    unknown: list[str] = []
    try:
        scan = Scanner(text)
        Attributes({}, Types({}, unknown), unknown).dictionary(scan, found)
    except IrSyntaxError:
        return text
    return text if scan.next or unknown else tuple(sorted(found.items()))


def _freeze(value: Any) -> Attribute:
    if isinstance(value, dict):
        return tuple([(key, _freeze(value[key])) for key in sorted(value)])
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _remove_kernels(
    value: Attribute, key: str, kernels: list[tuple[str, bytes]], depth: int
) -> Attribute:
    """Return a configuration without its kernels; what is empty says nothing either."""
    if isinstance(value, str):
        data = _find_bytecode(value)
        if data is None:
            return value
        kernels.append((key, data))
        return ()
    if not isinstance(value, tuple) or isinstance(value, Sharding | Opaque | Tensor):
        return value
    if depth > DEEPEST:
        return value
    found: list[Attribute] = []
    for item in value:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):  # noqa: PLR2004
            name = item[0]
            if name in _NOISE:
                continue
            inner = _remove_kernels(item[1], name, kernels, depth + 1)
            if inner not in ((), None):
                found.append((name, inner))
        else:
            found.append(_remove_kernels(item, key, kernels, depth + 1))
    return tuple(found)


def _find_bytecode(text: str) -> bytes | None:
    """Return the bytecode that a text is, if it is some."""
    if text.startswith(_RAW):
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:
            return text.encode("utf-8", "surrogatepass")
    if text.startswith(_BASE64):
        try:
            return binascii.a2b_base64(text)
        except ValueError:
            return text.encode("utf-8", "surrogatepass")
    return None
