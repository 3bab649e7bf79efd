"""Properties of operations: attributes that bytecode stores without their names.

An operation that its dialect knew is stored with its attributes in the order of their names, each
as a number, which has a flag where one may be missing. How many operands each group has comes last.
Operations of kernels that are known are listed here; the properties of others are not understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from conformance.ir.kernels.container import FormatVersion
from conformance.ir.kernels.cursor import Cursor, NotReadError

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute
    from conformance.ir.kernels.values import KernelValues

_FUNCTION: Final = (
    *("arg_attrs list?", "function_type", "res_attrs list?", "sym_name text"),
    "sym_visibility text?",
)
_SEGMENTS: Final = "operandSegmentSizes"
_NOTHING: Final = "nothing?"
"""Something of a later release that is not known here, and must not be there."""
_FLOATS: Final = (
    *("addf", "subf", "mulf", "divf", "remf", "negf", "maximumf", "minimumf", "maxnumf"),
    *("minnumf", "select", "truncf", "extf"),
)
_MATHS: Final = (
    *("absf", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil"),
    *("copysign", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "fpowi"),
    *("isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "powf", "round"),
    *("roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
_FAST: Final = ("fastmath text?",)

Signature: TypeAlias = tuple[str, ...]

SIGNATURES: Final[dict[str, tuple[Signature, ...]]] = {
    **{f"math.{op}": (_FAST,) for op in _MATHS},
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
        (_NOTHING, "isVolatile truth?", _SEGMENTS),
    ),
    "tt.store": (
        ("boundaryCheck list?", "cache number?", "evict number?"),
        ("cache number?", "evict number?"),
        ("cache number?", "evict number?", _NOTHING),
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
"""By operation, the attributes in the order in which they are stored; one line for each time that
this has changed. What a value is comes after the name; `?` marks those that may be missing."""
_IS: Final[dict[str, type]] = {"text": str, "truth": bool, "number": int, "list": tuple, "": object}


def properties(
    op: str, data: bytes, values: KernelValues, version: int
) -> list[tuple[str, Attribute]] | None:
    """Return the properties of an operation.

    Args:
        op: The operation.
        data: How they are stored.
        values: The attributes of the kernel.
        version: Version of the bytecode.

    Returns:
        Names and values; None if the operation is not known, or has others than are known.
    """
    for signature in SIGNATURES.get(op, ()):
        if _SEGMENTS in signature and version < FormatVersion.SPARSE_SEGMENTS:
            continue
        try:
            return _read(signature, Cursor(data), values)
        except NotReadError:
            continue
    return None


def _read(
    signature: Signature, cursor: Cursor, values: KernelValues
) -> list[tuple[str, Attribute]]:
    found: list[tuple[str, Attribute]] = []
    for field in signature:
        if field == _SEGMENTS:
            found.append((field, _sparse(cursor)))
            continue
        number, there = cursor.varint(), True
        if field.endswith("?"):
            number, there = number >> 1, bool(number & 1)
            if number and not there:
                raise NotReadError("an attribute, or none")
            if field == _NOTHING and there:
                raise NotReadError("no attribute")
        if there:
            name, _, kind = field.removesuffix("?").partition(" ")
            value = values.attribute(number)
            if not isinstance(value, _IS[kind]):
                raise NotReadError(kind)
            found.append((name, value))
    if cursor.left:
        raise NotReadError("the end of the properties")
    return found


def _sparse(cursor: Cursor) -> Attribute:
    """Return numbers of which most are zero, with their places: `((0, 1), (2, 1))`."""
    count, sparse = cursor.flagged()
    if not sparse:
        numbers = [cursor.varint() for _ in range(count)]
        return tuple([(place, number) for place, number in enumerate(numbers) if number])
    bits = cursor.varint() if count else 0
    pairs = [cursor.varint() for _ in range(count)]
    return tuple(sorted([(pair & ((1 << bits) - 1), pair >> bits) for pair in pairs]))
