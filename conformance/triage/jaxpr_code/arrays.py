"""How primitives on whole arrays are said: element by element, shapes, reductions, products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.program import UnsayableError
from conformance.triage.jaxpr_code.text import dtype, plain, tuple_of

if TYPE_CHECKING:
    from conformance.triage.jaxpr_code.program import Value
    from conformance.triage.jaxpr_code.writer import Equation, Rule

OPERATORS: Final = {
    "add": "+",
    "add_any": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and": "&",
    "or": "|",
    "xor": "^",
}
"""Primitives of two operands by their operator; the function is that of the same name in `lax`."""
FUNCTIONS: Final = {"add_any": "add", "and": "bitwise_and", "or": "bitwise_or"} | {
    "xor": "bitwise_xor",
    "not": "bitwise_not",
    "cumlogsumexp": "cumlogsumexp",
    "shift_right_logical": "shift_right_logical",
    "regularized_incomplete_beta": "betainc",
}
"""Functions of `lax` that do not go by the name of their primitive."""
BITWISE: Final = frozenset({"and", "or", "xor"})
COMPARING: Final = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
JNP: Final = frozenset(
    {
        *("sin", "cos", "tan", "tanh", "exp", "log", "log1p", "expm1", "sqrt", "floor", "ceil"),
        *("sinh", "cosh"),
    }
)
"""Functions of `jnp` that are their primitive and no more, for floating point numbers."""
LAX: Final = frozenset(
    {
        *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e"),
        *("bessel_i1e", "cbrt", "ceil", "clamp", "clz", "complex", "cos", "cosh", "digamma", "erf"),
        *("erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "igamma", "igamma_grad_a", "igammac"),
        *("imag", "is_finite", "lgamma", "log", "log1p", "log2", "logistic", "max", "min", "mulhi"),
        *("nextafter", "not", "one_minus_square", "polygamma", "population_count", "pow"),
        *("random_gamma_grad", "real", "regularized_incomplete_beta", "rem", "rsqrt"),
        *("shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh"),
        *("sqrt", "square", "stop_gradient", "tan", "tanh", "zeta"),
    }
)
"""Functions of `lax` that take the operands of their primitive, and nothing else."""
INT32: Final = 2**31


def _floating(value: Value) -> bool:
    return value.aval.dtype.startswith(("float", "bfloat", "complex"))


def lax_of(eqn: Equation, *more: str) -> str:
    """Return a call of the function of `lax` that goes by the name of the primitive."""
    name = FUNCTIONS.get(eqn.primitive, eqn.primitive)
    return f"lax.{name}({', '.join([*eqn.texts, *more])})"


def _elementwise(eqn: Equation) -> str:
    eqn.take("accuracy_mode")
    if eqn.primitive in JNP and _floating(eqn.inputs[0]):
        return f"jnp.{eqn.primitive}({eqn.texts[0]})"
    return lax_of(eqn)


def _binary(eqn: Equation) -> str:
    left, right = eqn.inputs
    if (out := eqn.take("out_dtype")) is not None and out != {"dtype": left.aval.dtype}:
        raise UnsayableError("out_dtype", f"not known to be {plain(out)}")
    if not _operator_is_same(eqn.primitive, left, right):
        return lax_of(eqn)
    return f"{left.bare or left.text} {OPERATORS[eqn.primitive]} {right.bare or right.text}"


def _operator_is_same(primitive: str, left: Value, right: Value) -> bool:
    """Say whether the operator between two values is the primitive, and nothing beside it."""
    kind, both = left.aval.dtype, (left, right)
    return (
        kind == right.aval.dtype
        and left.weak == right.weak
        and any(value.traced for value in both)
        and all(_is_pythons(value) for value in both)
        and (kind != "bool" or primitive in BITWISE)
        and (primitive != "div" or _floating(left))
        and not (primitive in COMPARING and kind.startswith("complex"))
    )


def _is_pythons(value: Value) -> bool:
    """Say whether the value's operators are jax's, or a number of Python's may stand for it."""
    if value.traced:
        return True
    whole = value.aval.dtype.startswith(("int", "uint"))
    return bool(value.bare) and not (whole and not -INT32 <= int(value.bare) < INT32)


def _negative(eqn: Equation) -> str:
    (value,) = eqn.inputs
    return f"-{value.text}" if value.traced else f"lax.neg({value.text})"


def _integer_pow(eqn: Equation) -> str:
    return f"lax.integer_pow({eqn.texts[0]}, {eqn.take('y')})"


def _round(eqn: Equation) -> str:
    method = eqn.take("rounding_method")
    return f"lax.round({eqn.texts[0]}, lax.RoundingMethod.{method})"


def _conj(eqn: Equation) -> str:
    eqn.take("input_dtype")
    return lax_of(eqn)


def _copy(eqn: Equation) -> str:
    return f"jnp.copy({eqn.texts[0]})"


def dtype_of(eqn: Equation, parameter: str) -> str:
    """Return the text of a parameter that is an element type."""
    match eqn.take(parameter):
        case {"dtype": str(name)} if (said := dtype(name)) is not None:
            return said
        case other:
            raise UnsayableError(parameter, f"{plain(other)} has no public name")


def record_of(eqn: Equation, parameter: str) -> dict[str, Any]:
    """Return the fields of a parameter that is a named tuple."""
    match eqn.take(parameter):
        case [str(), *fields]:
            return dict(fields)
        case other:
            raise UnsayableError(parameter, f"expected a record, got {plain(other)}")


def _convert(eqn: Equation) -> str | list[Value]:
    (value,) = eqn.inputs
    if eqn.outputs[0].dtype == value.aval.dtype and eqn.outputs[0].more == value.aval.more:
        eqn.take("new_dtype")
        return eqn.inputs
    if eqn.outputs[0].more.weak_type:
        raise UnsayableError("weak_type", "no public function makes a type weak")
    said = dtype_of(eqn, "new_dtype")
    if not value.aval.dtype.startswith("complex"):
        return f"{value.staged}.astype({said})"
    return f"lax.convert_element_type({value.text}, {said})"


def _bitcast(eqn: Equation) -> str:
    return f"lax.bitcast_convert_type({eqn.texts[0]}, {dtype_of(eqn, 'new_dtype')})"


def _reduce_precision(eqn: Equation) -> str:
    bits = f"exponent_bits={eqn.take('exponent_bits')}, mantissa_bits={eqn.take('mantissa_bits')}"
    return f"lax.reduce_precision({eqn.texts[0]}, {bits})"


def _broadcast(eqn: Equation) -> str:
    (value,), shape = eqn.inputs, plain(eqn.take("shape"))
    dimensions = eqn.take("broadcast_dimensions")
    if value.bare and not value.weak:
        return f"jnp.full({shape}, {value.bare}, {dtype(value.aval.dtype)})"
    return f"lax.broadcast_in_dim({value.text}, {shape}, {plain(dimensions)})"


def _reshape(eqn: Equation) -> str:
    if (order := eqn.take("dimensions")) is not None:
        return f"lax.reshape({eqn.texts[0]}, {plain(eqn.take('new_sizes'))}, {plain(order)})"
    return f"jnp.reshape({eqn.texts[0]}, {plain(eqn.take('new_sizes'))})"


def _squeeze(eqn: Equation) -> str:
    return f"lax.squeeze({eqn.texts[0]}, {plain(eqn.take('dimensions'))})"


def _transpose(eqn: Equation) -> str:
    return f"jnp.transpose({eqn.texts[0]}, {plain(eqn.take('permutation'))})"


def _reverse(eqn: Equation) -> str:
    return f"lax.rev({eqn.texts[0]}, {plain(eqn.take('dimensions'))})"


def _slice(eqn: Equation) -> str:
    parts = [plain(eqn.take("start_indices")), plain(eqn.take("limit_indices"))]
    if (strides := eqn.take("strides")) is not None:
        parts.append(plain(strides))
    return lax_of(eqn, *parts)


def _split(eqn: Equation) -> str:
    said = lax_of(eqn, plain(eqn.take("sizes")), f"axis={eqn.take('axis')}")
    return f"{said}[0]" if len(eqn.outputs) == 1 else said


def _pad(eqn: Equation) -> str:
    return lax_of(eqn, plain(eqn.take("padding_config")))


def _concatenate(eqn: Equation) -> str:
    return f"lax.concatenate([{', '.join(eqn.texts)}], dimension={eqn.take('dimension')})"


def _iota(eqn: Equation) -> str:
    shape, said = eqn.take("shape"), dtype_of(eqn, "dtype")
    dimension = eqn.take("dimension")
    if len(shape) == 1:
        return f"lax.iota({said}, {shape[0]})"
    return f"lax.broadcasted_iota({said}, {plain(shape)}, {dimension})"


def _select(eqn: Equation) -> str:
    which, *cases = eqn.texts
    if len(cases) == 2 and eqn.inputs[0].aval.dtype == "bool":  # noqa: PLR2004
        return f"lax.select({which}, {cases[1]}, {cases[0]})"
    return lax_of(eqn)


def _empty(eqn: Equation) -> str:
    if eqn.take("memory_space") not in {None, "Device"}:
        raise UnsayableError("memory_space", "only the device's own is known")
    return f"lax.empty({plain(eqn.outputs[0].shape)}, {dtype_of(eqn, 'dtype')})"


def _stack(eqn: Equation) -> str:
    return f"lax.stack([{', '.join(eqn.texts)}], axis={eqn.take('axis')})"


def _unstack(eqn: Equation) -> str:
    said = lax_of(eqn, f"axis={eqn.take('axis')}")
    return f"{said}[0]" if len(eqn.outputs) == 1 else said


def _tile(eqn: Equation) -> str:
    return lax_of(eqn, plain(eqn.take("reps")))


def _polynomial(eqn: Equation) -> str:
    value, *coefficients = eqn.texts
    return f"lax.polynomial({value}, [{', '.join(coefficients)}])"


def _barrier(eqn: Equation) -> str:
    if len(eqn.outputs) == 1:
        return f"lax.optimization_barrier({eqn.texts[0]})"
    return f"lax.optimization_barrier({tuple_of(eqn.texts)})"


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(LAX, _elementwise),
    **dict.fromkeys(OPERATORS, _binary),
    "bitcast_convert_type": _bitcast,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "conj": _conj,
    "convert_element_type": _convert,
    "copy": _copy,
    "empty2": _empty,
    "integer_pow": _integer_pow,
    "iota": _iota,
    "neg": _negative,
    "optimization_barrier": _barrier,
    "pad": _pad,
    "polynomial": _polynomial,
    "reduce_precision": _reduce_precision,
    "reshape": _reshape,
    "rev": _reverse,
    "round": _round,
    "select_n": _select,
    "slice": _slice,
    "split": _split,
    "stack": _stack,
    "squeeze": _squeeze,
    "tile": _tile,
    "transpose": _transpose,
    "unstack": _unstack,
}
"""How each of these primitives is said."""
