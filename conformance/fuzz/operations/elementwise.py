"""Elementwise operations: of one, two and three operands, with jax's promotion and broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import NARROW, PARTS, ArrayType, broadcast, promote
from conformance.fuzz.operation import (
    ANY,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    REAL,
    Operation,
    make_calls,
    make_operations,
)

if TYPE_CHECKING:
    from conformance.fuzz.program import Variable
    from conformance.fuzz.scope import Scope


def name_result_dtype(operation: Operation, dtype: str) -> str:
    """Return the dtype of the result of an elementwise operation.

    Args:
        operation: `result` is `same`, `bool`, `float` (integers become float32), `part` (the real
            part of complex numbers), `int` or the name of a dtype.
        dtype: Dtype of the operands, promoted.
    """
    kind = ArrayType((), dtype).kind
    if operation.result == "part":
        return PARTS.get(dtype, dtype)
    if operation.result == "float":
        if kind in INEXACT:
            return dtype
        return "float64" if dtype in {"int64", "uint64"} else "float32"
    return dtype if operation.result == "same" else operation.result


def draw_unary(scope: Scope, operation: Operation) -> None:
    """Add an operation of one operand."""
    x = scope.pick_kind(operation.kinds, narrow=operation.narrow)
    result = x.type.with_dtype(name_result_dtype(operation, x.type.dtype))
    twin = f"{operation.twin}({{0}})" if operation.twin else ""
    scope.add(operation.name, f"{operation.name}({{0}})", [x], result, twin=twin)


def draw_unary_call(scope: Scope, operation: Operation) -> None:
    """Add a function of one operand and constants."""
    x = scope.pick_kind(operation.kinds)
    result = x.type.with_dtype(name_result_dtype(operation, x.type.dtype))
    scope.add(operation.name, operation.call, [x], result)


def pick_partner(scope: Scope, x: Variable, kinds: tuple[str, ...], *, mixed: bool) -> Variable:
    """Draw an operand that broadcasts with another one.

    Args:
        scope: Scope of the operation.
        x: The other operand.
        kinds: Kinds of dtypes of both.
        mixed: Whether its dtype may differ, and is promoted.
    """

    def accept(type_: ArrayType) -> bool:
        shape = broadcast(x.type.shape, type_.shape)
        if shape is None or type_.kind not in kinds:
            return False
        if type_.dtype == x.type.dtype:
            return True
        return mixed and not {type_.dtype, x.type.dtype} & {*NARROW}

    def make() -> ArrayType:
        if scope.length:  # two vectors hold all pairs of values
            return x.type
        dtype = x.type.dtype
        if mixed and dtype not in NARROW and scope.rarely(4):
            dtype = scope.choose_dtype(kinds)
        shape = x.type.shape
        form = scope.choose(["equal", "scalar", "ones", "suffix"])
        if form == "scalar":
            shape = ()
        elif form == "ones":
            shape = tuple(1 if scope.flip() else extent for extent in shape)
        elif form == "suffix":
            shape = shape[scope.integer(0, len(shape)) :]
        return ArrayType(shape, dtype)

    return scope.pick(accept, make)


def draw_binary(scope: Scope, operation: Operation) -> None:
    """Add an operation of two operands of `jnp`: they broadcast, and are promoted."""
    x = scope.pick_kind(operation.kinds, narrow=operation.narrow)
    may_be_literal = x.type.kind in REAL and x.type.dtype not in NARROW and not scope.length
    if may_be_literal and scope.rarely(5):
        _add_with_literal(scope, operation, x)
        return
    y = pick_partner(scope, x, operation.kinds, mixed=True)
    shape = broadcast(x.type.shape, y.type.shape)
    assert shape is not None  # noqa: S101 - `pick_partner` accepts no other
    dtype = promote(x.type.dtype, y.type.dtype, x64=scope.x64)
    result = ArrayType(shape, name_result_dtype(operation, dtype))
    # In float64 a mix of dtypes would be rounded to the promoted one elsewhere.
    same = x.type.dtype == y.type.dtype
    twin = f"{operation.twin}({{0}}, {{1}})" if operation.twin and same else ""
    operands = [y, x] if scope.flip() else [x, y]
    function = operation.call or operation.name
    scope.add(operation.name, f"{function}({{0}}, {{1}})", operands, result, twin=twin)


def _add_with_literal(scope: Scope, operation: Operation, x: Variable) -> None:
    """Add a call with a Python scalar, whose type is weak."""
    values = ["2", "1", "3", "0", "-1"] if x.type.kind != "uint" else ["2", "1", "3", "0"]
    if x.type.kind == "float" and "float" in operation.kinds:
        values = ["2.0", "0.5", "1", "-1.5", "0.0"]
    literal = scope.choose(values)
    function = operation.call or operation.name
    code = f"{function}({literal}, {{0}})" if scope.flip() else f"{function}({{0}}, {literal})"
    twin = code.replace(operation.name, operation.twin, 1) if operation.twin else ""
    result = x.type.with_dtype(name_result_dtype(operation, x.type.dtype))
    scope.add(operation.name, code, [x], result, twin=twin)


def draw_lax_binary(scope: Scope, operation: Operation) -> None:
    """Add an operation of two operands of `lax`: equal shapes and dtypes."""
    x = scope.pick_kind(operation.kinds)
    y = scope.pick(lambda type_: type_ == x.type, lambda: x.type)
    result = x.type.with_dtype(name_result_dtype(operation, x.type.dtype))
    scope.add(operation.name, f"{operation.name}({{0}}, {{1}})", [x, y], result)


def draw_ternary(scope: Scope, operation: Operation) -> None:
    """Add an operation of three operands of one type."""
    x = scope.pick_kind(operation.kinds)
    y, z = (scope.pick(lambda type_: type_ == x.type, lambda: x.type) for _ in range(2))
    twin = f"{operation.twin}({{0}}, {{1}}, {{2}})" if operation.twin else ""
    scope.add(
        operation.name, f"{operation.name}({{0}}, {{1}}, {{2}})", [x, y, z], x.type, twin=twin
    )


def draw_where(scope: Scope, operation: Operation) -> None:
    """Add a selection by a condition, which broadcasts with both branches."""
    x = scope.pick_kind(ANY)
    condition = pick_condition(scope, x.type.shape)
    y = pick_partner(scope, x, (x.type.kind,), mixed=False)
    shape = broadcast(condition.type.shape, broadcast(x.type.shape, y.type.shape) or ())
    if shape is None:
        y, shape = x, broadcast(condition.type.shape, x.type.shape)
    assert shape is not None  # noqa: S101 - the condition has the shape of `x`
    scope.add(
        operation.name, f"{operation.name}({{0}}, {{1}}, {{2}})", [condition, x, y],
        ArrayType(shape, x.type.dtype), twin=f"{operation.twin}({{0}}, {{1}}, {{2}})",
    )  # fmt: skip


def pick_condition(scope: Scope, shape: tuple[int, ...]) -> Variable:
    """Draw a boolean operand of a shape."""
    wanted = ArrayType(shape, "bool")
    return scope.pick(lambda type_: type_ == wanted, lambda: wanted)


def draw_select(scope: Scope, operation: Operation) -> None:
    """Add a `lax` selection: all of one shape."""
    x = scope.pick_kind(ANY)
    y = scope.pick(lambda type_: type_ == x.type, lambda: x.type)
    condition = pick_condition(scope, x.type.shape)
    scope.add(operation.name, f"{operation.name}({{0}}, {{1}}, {{2}})", [condition, x, y], x.type)


def draw_clip(scope: Scope, operation: Operation) -> None:
    """Add a clip between two numbers, or with one bound."""
    x = scope.pick_kind(REAL)
    low, high = scope.choose([("1", "3"), ("None", "2"), ("0", "None"), ("3", "1")])
    code = f"{{0}}, {low}, {high}"
    scope.add(operation.name, f"{operation.name}({code})", [x], x.type, twin=f"np.clip({code})")


def draw_conversion(scope: Scope, operation: Operation) -> None:
    """Add a conversion to another dtype."""
    x = scope.pick_kind(ANY, narrow=True)
    kinds = ANY if x.type.kind != "complex" else ("complex",)
    dtype = scope.choose_dtype(kinds, narrow=True)
    code = operation.call.replace("DTYPE", f'"{dtype}"')
    scope.add(operation.name, code, [x], x.type.with_dtype(dtype))


BITS: Final = {
    "float32": 32, "int32": 32, "uint32": 32, "bfloat16": 16, "float16": 16, "int16": 16,
    "uint16": 16, "uint8": 8, "int8": 8, "float8_e4m3fn": 8, "float8_e5m2": 8,
}  # fmt: skip
"""Width of dtypes whose bits can be read as another one."""


def draw_bitcast(scope: Scope, operation: Operation) -> None:
    """Add a reinterpretation of bits, between dtypes of equal or different width."""
    x = scope.pick_kind([*BITS], narrow=True)
    dtype = scope.choose([*BITS])
    have, want = BITS[x.type.dtype], BITS[dtype]
    shape = x.type.shape
    if have > want:
        shape = (*shape, have // want)
    elif have < want:
        if not shape or shape[-1] != want // have:
            return
        shape = shape[:-1]
    code = f'{operation.name}({{0}}, "{dtype}")'
    scope.add(operation.name, code, [x], ArrayType(shape, dtype))


def draw_reduce_precision(scope: Scope, operation: Operation) -> None:
    """Add a rounding to fewer bits."""
    x = scope.pick_kind(FLOAT)
    exponent, mantissa = scope.choose([(8, 7), (5, 10), (4, 3), (5, 2), (8, 0)])
    scope.add(operation.name, f"{operation.name}({{0}}, {exponent}, {mantissa})", [x], x.type)


def draw_scaling(scope: Scope, operation: Operation) -> None:
    """Add a scaling by powers of two."""
    x = scope.pick_kind(FLOAT)
    wanted = ArrayType(x.type.shape, "int32")
    n = scope.pick(lambda type_: type_ == wanted, lambda: wanted)
    scope.add(operation.name, f"{operation.name}({{0}}, {{1}})", [x, n], x.type)


def draw_view(scope: Scope, operation: Operation) -> None:
    """Add a view of the bits as another dtype of the same width."""
    x = scope.pick_kind([*BITS], narrow=True)
    dtype = scope.choose([each for each in BITS if BITS[each] == BITS[x.type.dtype]])
    scope.add(operation.name, f'{{0}}{operation.name}("{dtype}")', [x], x.type.with_dtype(dtype))


def draw_integer_power(scope: Scope, operation: Operation) -> None:
    """Add a power with a constant exponent."""
    x = scope.pick_kind(NUMBER)
    powers = [2, 3, 0, 1, 7] if x.type.kind not in INEXACT else [2, 3, 0, 1, 7, -1, -2]
    scope.add(operation.name, f"{operation.name}({{0}}, {scope.choose(powers)})", [x], x.type)


ELEMENTWISE: Final = (
    *make_operations(
        "jnp.sin jnp.cos jnp.tan jnp.sinh jnp.cosh jnp.tanh jnp.arcsin jnp.arccos jnp.arctan "
        "jnp.arcsinh jnp.arccosh jnp.arctanh jnp.exp jnp.expm1 jnp.log jnp.log1p jnp.log2 "
        "jnp.log10 jnp.sqrt jnp.exp2 jnp.sinc",
        draw_unary, INEXACT, twin=True,
    ),
    *make_operations(
        "jnp.cbrt jnp.deg2rad jnp.rad2deg jnp.degrees jnp.radians jnp.floor jnp.ceil jnp.trunc "
        "jnp.fabs jnp.rint jnp.round jnp.i0",
        draw_unary, FLOAT, twin=True,
    ),
    *make_operations("jnp.spacing", draw_unary, FLOAT),
    *make_operations(
        "jnp.square jnp.negative jnp.positive jnp.conjugate jnp.nan_to_num jnp.reciprocal",
        draw_unary, INEXACT, twin=True,
    ),
    *make_operations("jnp.square jnp.negative jnp.positive", draw_unary, INTEGER, twin=True),
    *make_operations("jnp.abs jnp.real jnp.imag", draw_unary, NUMBER, result="part", twin=True),
    *make_operations("jnp.angle", draw_unary, INEXACT, result="part", twin=True),
    *make_operations("jnp.sign", draw_unary, REAL, twin=True),
    *make_operations(
        "jnp.sin jnp.exp jnp.sqrt jnp.log1p jnp.tanh jnp.arctan jnp.cbrt jnp.reciprocal",
        draw_unary, INTEGER, result="float",
    ),
    *make_operations(
        "jnp.isnan jnp.isinf jnp.isfinite", draw_unary, INEXACT, result="bool", twin=True
    ),
    *make_operations(
        "jnp.isposinf jnp.isneginf jnp.signbit", draw_unary, FLOAT, result="bool", twin=True
    ),
    *make_operations("jnp.isreal jnp.iscomplex", draw_unary, ANY, result="bool", twin=True),
    *make_operations("jnp.logical_not", draw_unary, ANY, result="bool", twin=True),
    *make_operations(
        "jnp.invert jnp.bitwise_not", draw_unary, (*INTEGER, "bool"), twin=True
    ),
    *make_operations("jnp.bitwise_count", draw_unary, INTEGER, result="uint8", twin=True),
    *make_operations(
        "lax.erf lax.erfc lax.erf_inv lax.lgamma lax.digamma lax.bessel_i0e lax.bessel_i1e "
        "lax.ceil lax.floor",
        draw_unary, FLOAT,
    ),
    *make_operations(
        "lax.rsqrt lax.logistic lax.exp lax.log lax.tanh lax.sin lax.cos lax.tan lax.asin lax.acos "
        "lax.atan lax.sinh lax.cosh lax.asinh lax.acosh lax.atanh lax.sqrt lax.exp2 lax.log1p "
        "lax.expm1 lax.reciprocal",
        draw_unary, INEXACT,
    ),
    *make_operations("lax.cbrt", draw_unary, FLOAT),
    *make_operations("lax.neg lax.square", draw_unary, NUMBER, narrow=True),
    *make_operations("lax.sign", draw_unary, NUMBER),
    *make_operations("lax.abs", draw_unary, ("float", "int")),
    *make_operations("lax.population_count lax.clz lax.bitwise_not", draw_unary, INTEGER),
    *make_operations("lax.is_finite", draw_unary, FLOAT, result="bool"),
    *make_calls(
        [
            "lax.round({0})",
            "lax.round({0}, lax.RoundingMethod.TO_NEAREST_EVEN)",
            "jnp.round({0}, 2)",
            "lax.stop_gradient({0})", "lax.optimization_barrier({0})",
            "lax.optimization_barrier((1 / {0}, {0}))[1]",
        ],
        draw_unary_call, FLOAT,
    ),
    *make_calls(
        [
            "jnp.round({0}, -1)", "jnp.round({0}, 39)", "jnp.frexp({0})[0]", "jnp.modf({0})[0]",
            "jnp.modf({0})[1]", "jnp.ldexp({0}, 3)", "jnp.ldexp({0}, -140)", "jnp.ldexp({0}, 140)",
        ],
        draw_unary_call, FLOAT,
    ),
    *make_calls(["jnp.frexp({0})[1]"], draw_unary_call, FLOAT, result="int32"),
    *make_calls(
        ["jnp.unravel_index({0}, (3, 4))[0]", "jnp.unravel_index({0}, (3, 4))[1]"],
        draw_unary_call, INTEGER,
    ),
    *make_operations("jnp.ldexp", draw_scaling, FLOAT),
    *make_operations(".view", draw_view, REAL),
    *make_calls(["{0}.view()"], draw_unary_call, REAL),
    *make_calls(
        ["jnp.nan_to_num({0}, nan=1.0, posinf=2.0, neginf=-2.0)"], draw_unary_call, INEXACT
    ),
    *make_operations(
        "jnp.add jnp.subtract jnp.multiply", draw_binary, NUMBER, twin=True, narrow=True
    ),
    *make_operations("jnp.divide jnp.true_divide", draw_binary, INEXACT, twin=True),
    *make_operations("jnp.power", draw_binary, INEXACT, twin=True),
    *make_operations("jnp.divide jnp.float_power", draw_binary, INTEGER, result="float"),
    *make_operations(
        "jnp.floor_divide jnp.mod jnp.remainder jnp.fmod", draw_binary, REAL
    ),
    *(
        Operation(
            name="jnp.divmod", rule=draw_binary, kinds=REAL,
            call=f"(lambda a, b: jnp.divmod(a, b)[{part}])",
        )
        for part in (0, 1)
    ),
    *make_operations("jnp.power", draw_binary, INTEGER),
    *make_operations(
        "jnp.arctan2 jnp.hypot jnp.logaddexp jnp.logaddexp2 jnp.copysign jnp.heaviside",
        draw_binary, FLOAT, twin=True,
    ),
    *make_operations("jnp.logaddexp", draw_binary, ("complex",)),
    *make_operations("jnp.nextafter", draw_lax_binary, FLOAT),
    *make_operations("jnp.maximum jnp.minimum", draw_binary, ANY, twin=True),
    *make_operations("jnp.fmax jnp.fmin", draw_binary, REAL, twin=True),
    # Both never end for the least integer on any release, which would cost each campaign minutes:
    # `numerics/divisor_of_the_least_integer` observes that.
    *make_operations(
        "jnp.gcd jnp.lcm", draw_binary, INTEGER, call="(lambda a, b: {name}(a >> 1, b >> 1))"
    ),
    *make_operations(
        "jnp.bitwise_and jnp.bitwise_or jnp.bitwise_xor", draw_binary, (*INTEGER, "bool"), twin=True
    ),
    *make_operations("jnp.left_shift jnp.right_shift", draw_binary, INTEGER),
    *make_operations(
        "jnp.equal jnp.not_equal jnp.less jnp.less_equal jnp.greater jnp.greater_equal",
        draw_binary, ANY, result="bool", twin=True, narrow=True,
    ),
    *make_operations(
        "jnp.logical_and jnp.logical_or jnp.logical_xor", draw_binary, ANY, result="bool", twin=True
    ),
    *make_operations("jnp.isclose", draw_binary, NUMBER, result="bool"),
    *make_operations("lax.add lax.sub lax.mul", draw_lax_binary, NUMBER),
    *make_operations("lax.div", draw_lax_binary, NUMBER),
    *make_operations("lax.max lax.min", draw_lax_binary, ANY),
    *make_operations("lax.rem", draw_lax_binary, REAL),
    *make_operations("lax.pow", draw_lax_binary, INEXACT),
    *make_operations(
        "lax.atan2 lax.igamma lax.igammac lax.zeta lax.polygamma", draw_lax_binary, FLOAT
    ),
    *make_operations(
        "lax.nextafter lax.random_gamma_grad", draw_lax_binary, FLOAT, lacks=("forward", "reverse")
    ),
    *make_operations(
        "lax.shift_left lax.shift_right_arithmetic lax.shift_right_logical",
        draw_lax_binary, INTEGER,
    ),
    *make_operations(
        "lax.bitwise_and lax.bitwise_or lax.bitwise_xor", draw_lax_binary, (*INTEGER, "bool")
    ),
    *make_operations(
        "lax.eq lax.ne lax.lt lax.le lax.gt lax.ge", draw_lax_binary, REAL, result="bool"
    ),
    *make_operations("lax.clamp jnp.clip", draw_ternary, REAL),
    *make_operations("lax.betainc", draw_ternary, FLOAT, lacks=("forward", "reverse")),
    *make_operations("jnp.where", draw_where, ANY, twin=True),
    *make_operations("lax.select", draw_select, ANY),
    *make_operations("jnp.clip", draw_clip, REAL),
    *make_calls(
        ["{0}.astype(DTYPE)", "lax.convert_element_type({0}, DTYPE)"], draw_conversion, ANY
    ),
    *make_operations("lax.bitcast_convert_type", draw_bitcast, REAL),
    *make_operations("lax.reduce_precision", draw_reduce_precision, FLOAT),
    *make_operations("lax.integer_pow", draw_integer_power, NUMBER),
)  # fmt: skip
