"""Custom calls that embed a kernel: the operations of the kernel replace its bytes.

The configuration of such a call is JSON, an MLIR dictionary, or the text of one of them. The kernel
in it is bytecode, for Mosaic in base64. Mosaic GPU wrote MLIR text up to jax 0.8.0, which stays
text, without its locations.
"""

from __future__ import annotations

import binascii
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.ir.graph import IrSyntaxError, Opaque, Sharding, Tensor, freeze
from conformance.ir.kernels.bytecode import MAGIC, BytecodeError
from conformance.ir.kernels.operations import read_kernel
from conformance.ir.kernels.values import hash_bytes
from conformance.ir.mlir.attributes import Attributes
from conformance.ir.mlir.scan import Scanner
from conformance.ir.mlir.tensors import Types

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Computation, Instruction, Module

ROLE: Final = "kernel"
"""Role of a kernel in the custom call that runs it."""
DEEPEST: Final = 64
"""Limit of the nesting of a configuration; deeper parts are kept as they are."""
_CALLS: Final = frozenset({"custom-call", "stablehlo.custom_call", "mhlo.custom_call"})
_CONFIG: Final = "backend_config"
_FRONTEND: Final = "frontend_attributes"
# A frontend attribute that some releases write even when it is empty.
_NO_METADATA: Final = ("kernel_metadata", "{}")
# HLO text holds raw bytes as Latin-1 characters; the base64 of the first bytes is always this.
_RAW: Final = MAGIC.decode("latin-1")
_BASE64: Final = "TUzvU"
_TEXT: Final = "builtin.module"
# The definition of a location on a line of its own, or a location behind what it belongs to; a
# string with the same characters is matched first, and kept.
_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_PART: Final = rf'[^()"\n]|{_STRING}'
_LOCATION: Final = re.compile(
    rf"(?P<kept>{_STRING})|^#loc\d* = .*\n?| loc\((?:{_PART}|\((?:{_PART})*\))*\)", re.MULTILINE
)
# Keys about the source, the storage or the estimated cost of a kernel.
_NOISE: Final = frozenset(
    {
        *("debug_locations", "serialization_format", "cost_estimate", "cost_estimate_json"),
        *("kernel_hash", "operand_to_metadata", "debug", "source_info"),
    }
)


def read_kernels(module: Module) -> None:
    """Move the kernels that custom calls embed as bytecode into the bodies of these calls.

    The source location, the host and the release that wrote a kernel leave no trace. Bytecode that
    is not understood becomes an attribute, the digest of its bytes.

    Args:
        module: Rewritten in place; its attributes have their canonical names already.
    """
    # Equal bytecode is read once: a model calls the same kernel in each layer.
    kernels: dict[bytes, Computation | None] = {}
    for instruction in module.walk():
        if instruction.op in _CALLS and _CONFIG in instruction.attributes:
            _read_kernels_of(instruction, module, kernels)


def _read_kernels_of(
    call: Instruction, module: Module, kernels: dict[bytes, Computation | None]
) -> None:
    config = call.attributes[_CONFIG]
    if isinstance(config, str):
        # A look for the magic number, raw, in base64 or escaped, and for text, before any parsing.
        if not any(mark in config for mark in (_RAW, _BASE64, "ML\\EFR", _TEXT)):
            return
        config = _parse_config(config)
    found: list[tuple[str, bytes | None]] = []
    # Frontends nest the kernel differently: `custom_call_config.body` for Mosaic, `ir` for Triton.
    rest = _split_kernels(config, ROLE, found, 0)
    if not found:
        return
    # A new dictionary, because calls with equal attributes share one.
    attributes = {**call.attributes, _CONFIG: rest}
    bytecode = [(key, data) for key, data in found if data is not None]
    for number, (key, data) in enumerate(bytecode):
        role = ROLE if number == 0 else f"{ROLE} {number}"
        if data not in kernels:
            kernels[data] = _read_kernel(data, module)
        body = kernels[data]
        if body is None:
            target = call.attributes.get("custom_call_target", key)
            module.not_understood[f"{ROLE} of {target}"] += 1
            attributes[role] = hash_bytes(data)
        else:
            call.bodies += ((role, body),)
    notes = attributes.get(_FRONTEND)
    if isinstance(notes, tuple):
        attributes[_FRONTEND] = kept = tuple([note for note in notes if note != _NO_METADATA])
        if not kept:
            del attributes[_FRONTEND]
    call.attributes = attributes


def _read_kernel(data: bytes, module: Module) -> Computation | None:
    not_understood: Counter[str] = Counter()
    try:
        kernel = read_kernel(data, not_understood)
    except BytecodeError:
        # A newer format must not make the whole module unreadable: its digest is compared instead.
        return None
    module.not_understood.update(not_understood)
    return kernel


def _parse_config(text: str) -> Attribute:
    """Return the content of JSON or of an MLIR dictionary; any other text unchanged."""
    try:
        return freeze(json.loads(text, parse_constant=str))
    except (ValueError, RecursionError):
        pass
    found: dict[str, Attribute] = {}
    unknown: list[str] = []
    try:
        scan = Scanner(text)
        Attributes({}, Types({}, unknown), unknown).read_dictionary(scan, found)
    except IrSyntaxError:
        return text
    # A text that is understood in part is compared as a whole.
    return text if scan.next or unknown else tuple(sorted(found.items()))


def _split_kernels(
    value: Attribute, key: str, kernels: list[tuple[str, bytes | None]], depth: int
) -> Attribute:
    """Return a configuration without its kernels, noise and empty entries.

    Args:
        value: The configuration, or a part of it.
        key: Name of the part.
        kernels: Key and bytecode of each kernel found, None for text; added to.
        depth: How deep the part is nested.
    """
    if isinstance(value, str):
        data = _decode_bytecode(value)
        if data is None and _TEXT not in value:
            return value
        kernels.append((key, data))
        return () if data is not None else _LOCATION.sub(r"\g<kept>", value)
    # Named tuples are tuples in Python, but values and not lists of parts.
    if not isinstance(value, tuple) or isinstance(value, Sharding | Opaque | Tensor):
        return value
    if depth > DEEPEST:
        return value
    found: list[Attribute] = []
    for item in value:
        match item:
            case (str(name), _) if name in _NOISE:
                pass
            case (str(name), inner):
                rest = _split_kernels(inner, name, kernels, depth + 1)
                # Releases differ in whether they write an unset entry.
                if rest not in ((), None):
                    found.append((name, rest))
            case _:
                found.append(_split_kernels(item, key, kernels, depth + 1))
    return tuple(found)


def _decode_bytecode(text: str) -> bytes | None:
    """Return the bytecode in a text, None if it holds none."""
    if text.startswith(_RAW):
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:
            # It begins like bytecode and is none: the reader fails, and the call gets a digest.
            return text.encode("utf-8", "surrogatepass")
    if text.startswith(_BASE64):
        try:
            return binascii.a2b_base64(text)
        except ValueError:
            return text.encode("utf-8", "surrogatepass")
    return None
