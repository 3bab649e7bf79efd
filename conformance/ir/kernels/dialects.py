"""The operations of kernels: their stored properties, their spellings, and their effects.

An operation that its dialect knew is stored with its properties: attributes in the order of their
names, each as a number, which has a flag where one may be missing. The sizes of operand segments
come last. The properties of an operation that is not listed are not understood.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import TYPE_CHECKING, Final, TypeAlias

from conformance.ir.graph import Tensor
from conformance.ir.kernels.bytecode import BytecodeError, Cursor
from conformance.ir.normal.attributes import RENAMED, SPELLING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.ir.graph import Attribute, Computation, Instruction
    from conformance.ir.kernels.values import KernelValues

# Sizes of the operand groups; later releases have further groups at the end.
_SEGMENTS: Final = "operandSegmentSizes"
_FUNCTION: Final = (
    *("arg_attrs list?", "function_type", "res_attrs list?", "sym_name text"),
    "sym_visibility text?",
)
# An attribute of a later release that has no name here, and must be missing.
_UNKNOWN: Final = "unknown?"
_FLOATS: Final = (
    *("addf", "subf", "mulf", "divf", "remf", "negf", "maximumf", "minimumf", "maxnumf"),
    *("minnumf", "select", "truncf", "extf"),
)
_FAST: Final = ("fastmath text?",)

Signature: TypeAlias = tuple[str, ...]

SIGNATURES: Final[dict[str, tuple[Signature, ...]]] = {
    "math": (_FAST,),
    **{f"arith.{op}": (_FAST, (*_FAST, "roundingmode?")) for op in _FLOATS},
    **{
        f"arith.{op}": (("overflowFlags text?",),)
        for op in ("addi", "subi", "muli", "shli", "trunci")
    },
    **{f"arith.{op}": (("nonNeg truth?",),) for op in ("extui", "uitofp", "index_castui")},
    "arith.cmpf": (("fastmath text?", "predicate number"),),
    "arith.cmpi": (("predicate number",),),
    "arith.constant": (("value",),),
    "builtin.module": (("sym_name text?", "sym_visibility text?"),),
    "func.func": (_FUNCTION,),
    "func.call": (("arg_attrs list?", "callee text", "no_inline truth?", "res_attrs list?"),),
    "scf.for": (("unsignedCmp truth?",),),
    "tt.func": (_FUNCTION,),
    "tt.call": (("arg_attrs list?", "callee text", "res_attrs list?"),),
    "tt.load": (
        (
            *("boundaryCheck list?", "cache number?", "evict number?", "isVolatile truth?"),
            *("padding number?", _SEGMENTS),
        ),
        ("cache number?", "evict number?", "isVolatile truth?", _SEGMENTS),
        (_UNKNOWN, "isVolatile truth?", _SEGMENTS),
    ),
    "tt.store": (
        ("boundaryCheck list?", "cache number?", "evict number?"),
        ("cache number?", "evict number?"),
        ("cache number?", "evict number?", _UNKNOWN),
    ),
    "tt.atomic_cas": (("scope number", "sem number"),),
    "tt.atomic_rmw": (("atomic_rmw_op number", "scope number", "sem number"),),
    "tt.dot": (("inputPrecision number?", "maxNumImpreciseAcc number?"),),
    "tt.expand_dims": (("axis number",),),
    "tt.get_num_programs": (("axis number",),),
    "tt.get_program_id": (("axis number",),),
    "tt.make_range": (("end number", "start number"),),
    "tt.make_tensor_ptr": (("order list",),),
    "tt.reduce": (("axis number",),),
    "tt.reshape": (("allow_reorder truth?", "efficient_layout truth?"),),
    "tt.scan": (("axis number", "reverse truth"),),
    "tt.trans": (("order list",),),
    "tt.fp_to_fp": (("rounding number?",),),
    "tt.extern_elementwise": (("libname text", "libpath text", "pure truth", "symbol text"),),
    "tt.elementwise_inline_asm": (
        ("asm_string text", "constraints text", "packed_element number", "pure truth"),
    ),
    "tt.clampf": (("propagateNan number",),),
    "tt.print": (("hex truth", "isSigned list", "prefix text"),),
    "tt.assert": (("message text",),),
}
"""The stored attributes of operations in order, one signature for each change of that order.

By operation, or by dialect where all operations have the same.

The type of a value follows its name; `?` marks attributes that may be missing."""
_TYPES: Final[dict[str, type]] = {
    "text": str, "truth": bool, "number": int, "list": tuple, "": object,
}  # fmt: skip

# Dialects whose operations are pure, except those listed next.
_PURE_DIALECTS: Final = frozenset({"arith", "math", "index", "complex", "affine", "vector"})
_ON_MEMORY: Final = frozenset(
    {
        *("affine.load", "affine.store", "affine.vector_load", "affine.vector_store"),
        *("affine.dma_start", "affine.dma_wait", "vector.load", "vector.store"),
        *("vector.maskedload", "vector.maskedstore", "vector.gather", "vector.scatter"),
        *("vector.transfer_read", "vector.transfer_write", "vector.expandload"),
        *("vector.compressstore", "vector.print"),
    }
)
_TPU: Final = (
    *("all_reduce", "assume_layout", "assume_multiple", "bitcast", "bitcast_vreg"),
    *("broadcast_in_sublanes", "concatenate", "create_mask", "create_subelement_mask"),
    *("dynamic_gather", "dynamic_rotate", "erase_memref_layout", "extf", "fptosi", "gather"),
    *("iota", "mask_cast", "matmul", "memref_bitcast", "memref_reshape", "memref_slice"),
    *("memref_squeeze", "reciprocal", "reinterpret_cast", "relayout", "repeat", "reshape"),
    *("roll_vectors", "rotate", "sitofp", "sublane_shuffle", "transpose", "truncf"),
    *("unroll_vectors", "weird", "reduce_index", "scan", "sort", "stochastic_convert"),
)
_TRITON: Final = (
    *("addptr", "advance", "bitcast", "broadcast", "cat", "clampf", "dot", "expand_dims"),
    *("fp_to_fp", "get_num_programs", "get_program_id", "int_to_ptr", "join", "make_range"),
    *("make_tensor_ptr", "mulhiui", "precise_divf", "precise_sqrt", "ptr_to_int", "reshape"),
    *("splat", "split", "trans", "unsplat"),
)
_GPU: Final = ("block_dim", "block_id", "grid_dim", "lane_id", "subgroup_id", "thread_id")
_LLVM: Final = (
    *("extractvalue", "getelementptr", "insertvalue", "mlir.addressof", "mlir.constant"),
    *("mlir.poison", "mlir.undef", "mlir.zero", "ptrtoint", "inttoptr"),
)
_PURE: Final = frozenset(
    {
        *(f"gpu.{op}" for op in _GPU),
        *(f"llvm.{op}" for op in _LLVM),
        *(f"tpu.{op}" for op in _TPU),
        *(f"tt.{op}" for op in _TRITON),
        *("memref.cast", "memref.dim", "memref.subview", "memref.reinterpret_cast"),
        *("memref.memory_space_cast", "ub.poison", "builtin.unrealized_conversion_cast"),
    }
)
# Operations with no effect but those of their regions.
_AS_THEIR_REGIONS: Final = frozenset(
    {"scf.for", "scf.if", "scf.while", "scf.index_switch", "scf.execute_region"}
    | {"tt.reduce", "tt.scan", "tt.map_elementwise", "tpu.region", "vector.mask"}
)

# The prefix of operations in the serialization format that Mosaic promises to read later.
_STABLE: Final = re.compile(r"stable_mosaic(?:_gpu)?\.")
_VERSIONS: Final = frozenset({"stable_mosaic.version", "stable_mosaic_gpu.version"})
SIGNATURE: Final = "signature"
"""The type of a function; its region repeats it, if it has one."""
_RENAMED: Final = {
    "sym_name": "symbol",
    "sym_visibility": "visibility",
    "function_type": SIGNATURE,
    "callee": "calls",
}
# Names with a meaning for the passes over modules, which kernels use for other attributes.
_RESERVED: Final = (
    SPELLING | RENAMED.keys() | {"captured", "channel", "channel_id", "index", "inline", "kind"}
)
# Attributes that later releases write at their default, and earlier ones leave out.
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
ENTRY: Final = "main"
"""The name given to entry functions; the original name is also in the configuration."""


def read_properties(
    op: str, data: bytes, values: KernelValues
) -> list[tuple[str, Attribute]] | None:
    """Return the properties of an operation, by name.

    Args:
        op: The operation, with its dialect.
        data: The encoding.
        values: The attributes of the kernel.

    Returns:
        Names and values; None if the operation is not listed, or has other properties.
    """
    for signature in SIGNATURES.get(op) or SIGNATURES.get(op.partition(".")[0], ()):
        try:
            return _read_fields(signature, Cursor(data), values)
        except BytecodeError:
            # The layout of another release.
            continue
    return None


def _read_fields(
    signature: Signature, cursor: Cursor, values: KernelValues
) -> list[tuple[str, Attribute]]:
    found: list[tuple[str, Attribute]] = []
    for field in signature:
        if field == _SEGMENTS:
            found.append((field, _read_segments(cursor)))
            continue
        optional = field.endswith("?")
        number, is_present = cursor.read_flagged() if optional else (cursor.read_varint(), True)
        if not is_present and number:
            raise BytecodeError("an attribute, or none")
        if is_present:
            if field == _UNKNOWN:
                raise BytecodeError("no attribute")
            name, _, kind = field.removesuffix("?").partition(" ")
            value = values.attribute(number)
            if not isinstance(value, _TYPES[kind]):
                raise BytecodeError(kind)
            found.append((name, value))
    # Leftover bytes are a field of a later release: another signature may fit.
    if cursor.remaining:
        raise BytecodeError("the end of the properties")
    return found


def _read_segments(cursor: Cursor) -> Attribute:
    """Return sizes of which most are zero, with their places: `((0, 1), (2, 1))`."""
    count, is_sparse = cursor.read_flagged()
    if not is_sparse:
        numbers = [cursor.read_varint() for _ in range(count)]
        return tuple([(place, number) for place, number in enumerate(numbers) if number])
    # MLIR packs place and size into a number, the place in the lowest bits.
    bits = cursor.read_varint() if count else 0
    pairs = [cursor.read_varint() for _ in range(count)]
    return tuple(sorted([(pair & ((1 << bits) - 1), pair >> bits) for pair in pairs]))


def get_canonical_op(op: str) -> str:
    """Return the name of an operation that all releases share, e.g. `arith.addf`."""
    plain = _STABLE.sub("", op, count=1) if _STABLE.match(op) else op
    # The functions of a kernel are not those of the module around it.
    return f"kernel.{plain.removeprefix('func.')}" if plain.startswith("func.") else plain


def normalise_attributes(op: str, stored: Iterable[tuple[str, Attribute]]) -> dict[str, Attribute]:
    """Return the attributes of an operation as all releases would write them.

    Args:
        op: The operation, by its canonical name.
        stored: Its attributes as stored.

    Returns:
        Attributes by name, none of which has a meaning for the passes over modules.
    """
    kept = {}
    for name, value in stored:
        if name in _VERSIONS or (op, name) == ("builtin.module", "sym_name"):
            continue
        if (op, name) in _DEFAULTS and _DEFAULTS[op, name] == value:
            continue
        new_name, new_value = _RENAMED.get(name, name), value
        if (op, name) == ("tpu.iota", "dimension"):
            new_name, new_value = "dimensions", (value,)  # as later releases write it
        elif isinstance(value, tuple):
            # Later releases append groups, which are empty for what earlier ones express.
            if name == _SEGMENTS:
                new_value = tuple(dropwhile(lambda size: size == 0, value[::-1]))[::-1]
                if set(new_value) == {1}:  # the same as without groups
                    continue
            elif name == "value" and op.endswith(".constant") and _is_tensor(value):
                new_value = value[0]  # the type of the result repeats that of the tensor
        kept[f"kernel_{new_name}" if new_name in _RESERVED else new_name] = new_value
    return dict(sorted(kept.items()))


def _is_tensor(value: tuple[Attribute, ...]) -> bool:
    """Whether a value is the elements of a tensor with its type."""
    return len(value) == len(("elements", "type")) and isinstance(value[1], Tensor)


def name_entry(module: Computation) -> None:
    """Give the entry function of a kernel the name that all kernels share.

    Args:
        module: The kernel; its entry is the only function that no attribute refers to.
    """
    # A module transform refers to its functions by symbol, e.g. the window functions of Mosaic.
    functions = find_functions(module)
    referred: set[str] = set()
    visited: set[int] = set()
    todo = [module]
    while todo:
        for instruction in todo.pop().instructions:
            for inner in (inner for _, inner in instruction.bodies if id(inner) not in visited):
                visited.add(id(inner))
                todo.append(inner)
            for name, value in instruction.attributes.items():
                if name != "symbol":
                    referred.update(_find_symbols(value))
    unreferred = [i for i in functions if f"@{i.attributes['symbol']}" not in referred]
    taken = [i for i in functions if i.attributes["symbol"] == ENTRY]
    # With several candidates, or another function of that name, the names stay as stored.
    if len(unreferred) == 1 and taken in ([], unreferred):
        entry = unreferred[0]
        entry.attributes = {**entry.attributes, "symbol": ENTRY}
        # Functions are results in the order of their names, which has changed.
        others = [value for value in module.results if value[0] not in set(functions)]
        module.results = others + [(function, ()) for function in find_functions(module)]


def find_functions(module: Computation) -> list[Instruction]:
    """Return the functions of a module, in the order of their names."""
    functions = [i for i in module.instructions if "symbol" in i.attributes]
    return sorted(functions, key=lambda i: str(i.attributes["symbol"]))


def _find_symbols(value: Attribute) -> Iterator[str]:
    """Yield the symbols that an attribute names."""
    if isinstance(value, str):
        if value.startswith("@"):
            yield value.partition("::")[0]
    elif isinstance(value, tuple):
        for part in value:
            yield from _find_symbols(part)


def order_effects(computation: Computation, effectful: set[int]) -> None:
    """Make each operation with an effect depend on the previous such operation.

    In the graph the order of instructions is nothing: only operands say what comes first. A kernel
    loads, stores, copies and waits in order; so each of these operations takes the previous one as
    a further operand, and the last of them is a result.

    Args:
        computation: Rewritten in place, its regions before it. Functions in it are values, whose
            effects happen when they are called.
        effectful: The ids of the computations with effects; added to.
    """
    last: Instruction | None = None
    for instruction in computation.instructions:
        if _has_effect(instruction, effectful):
            if last is not None:
                instruction.inputs = [*instruction.inputs, (last, ())]
            last = instruction
    if last is not None:
        computation.results.append((last, ()))
        effectful.add(id(computation))


def _has_effect(instruction: Instruction, effectful: set[int]) -> bool:
    op = instruction.op
    if op == "parameter" or "symbol" in instruction.attributes:
        return False
    if any(id(inner) in effectful for _, inner in instruction.bodies):
        return True
    # An unknown operation is taken to have an effect: a false order is safe, a lost one is not.
    pure = op.partition(".")[0] in _PURE_DIALECTS and op not in _ON_MEMORY
    return not pure and op not in _PURE and op not in _AS_THEIR_REGIONS
