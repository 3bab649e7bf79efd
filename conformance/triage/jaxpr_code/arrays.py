"""Rules for primitives on arrays: mostly one template each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.triage.jaxpr_code.literals import render_dtype, render_plain, render_tuple
from conformance.triage.jaxpr_code.template import fill
from conformance.triage.jaxpr_code.writer import Assignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.triage.jaxpr_code.program import CodeValue, WrittenProgram
    from conformance.triage.jaxpr_code.writer import Equation, Rule

OPERATORS: Final = {
    "add": ("+", "add = lax.add({*})"),
    "add_any": ("+", "add = lax.add({*})"),
    "sub": ("-", "difference = lax.sub({*})"),
    "mul": ("*", "product = lax.mul({*})"),
    "div": ("/", "lax.div({*})"),
    "lt": ("<", "less = lax.lt({*})"),
    "le": ("<=", "at_most = lax.le({*})"),
    "gt": (">", "greater = lax.gt({*})"),
    "ge": (">=", "at_least = lax.ge({*})"),
    "eq": ("==", "equal = lax.eq({*})"),
    "ne": ("!=", "differs = lax.ne({*})"),
    "and": ("&", "both = lax.bitwise_and({*})"),
    "or": ("|", "either = lax.bitwise_or({*})"),
    "xor": ("^", "lax.bitwise_xor({*})"),
}
"""Primitives of two operands: operator and function."""
BITWISE: Final = frozenset({"and", "or", "xor"})
COMPARING: Final = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
JNP: Final = frozenset({
    "sin", "cos", "tan", "tanh", "exp", "log", "log1p", "expm1", "sqrt", "floor", "ceil", "sinh",
    "cosh",
})  # fmt: skip
"""Functions of `jnp` that trace to their primitive alone, for floating point numbers."""
LAX: Final = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e", "bessel_i1e", "cbrt",
    "clamp", "clz", "complex", "conj", "digamma", "erf", "erf_inv", "erfc", "exp2", "igamma",
    "igamma_grad_a", "igammac", "imag", "is_finite", "lgamma", "log2", "logistic", "mulhi",
    "nextafter", "one_minus_square", "polygamma", "population_count", "random_gamma_grad", "real",
    "rem", "rsqrt", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "stop_gradient", "zeta",
})  # fmt: skip
"""Functions of `lax` whose only arguments are the operands of their primitive."""
REDUCTIONS: Final = {
    "reduce_sum": ("total", "add", "0"),
    "reduce_prod": ("reduce_prod", "mul", "1"),
    "reduce_max": ("largest", "max", "-np.inf"),
    "reduce_min": ("smallest", "min", "np.inf"),
    "reduce_and": ("reduce_and", "bitwise_and", "True"),
    "reduce_or": ("reduce_or", "bitwise_or", "False"),
    "reduce_xor": ("reduce_xor", "bitwise_xor", "0"),
}
"""Reductions: a name for the result, the binary function, and the initial value."""
JNP_REDUCTIONS: Final = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min"}
UNCONVERTED: Final = frozenset({"float32", "float64"})
"""Dtypes that `jnp.sum` and others do not convert before they reduce."""
INT32: Final = 2**31
"""Python integers from this on are no weak int32."""
NAMED_REDUCTIONS = (0, 5, 1)
"""Release from which `lax.reduce_sum` and others are public."""
PLAIN_INDICES = (0, 5, 3)
"""Release from which `allow_negative_indices=False` avoids equations that wrap indices."""
_INDEXING = "{=indices_are_sorted?}{=unique_indices?}{=mode?:mode}"
_PRECISION = "{=precision?:precision}{=preferred_element_type?:dtype}"


def _is_floating(value: CodeValue) -> bool:
    return value.aval.dtype.startswith(("float", "bfloat", "complex"))


def _is_integer(value: CodeValue) -> bool:
    return value.aval.dtype.startswith(("int", "uint"))


def _write_floating(eqn: Equation) -> str:
    module = "jnp" if _is_floating(eqn.inputs[0]) else "lax"
    return fill(eqn, f"{module}.{{primitive}}({{0}})")


def _write_binary(eqn: Equation) -> str:
    left, right = eqn.inputs
    if (out := eqn.take("out_dtype")) is not None and out != {"dtype": left.aval.dtype}:
        raise eqn.make_error("out_dtype")
    operator, template = OPERATORS[eqn.primitive]
    if not _is_operator(eqn.primitive, left, right):
        return fill(eqn, template)
    named = template.partition("lax.")[0]
    # A bare number takes the dtype of the other operand, which is its own.
    return f"{named}{left.bare or left.text} {operator} {right.bare or right.text}"


def _is_operator(primitive: str, left: CodeValue, right: CodeValue) -> bool:
    """Return whether the operator between two values traces to the primitive alone."""
    kind, both = left.aval.dtype, (left, right)
    return (
        # Operands of two dtypes, or of which one is weak, are converted first.
        kind == right.aval.dtype
        and left.is_weak == right.is_weak
        # Python would compute an operation on two numbers itself.
        and any(value.is_traced for value in both)
        and all(value.is_traced or _is_python_number(value) for value in both)
        # `+` of booleans is a logical or, and `-` fails.
        and (kind != "bool" or primitive in BITWISE)
        # `/` of integers converts them to floating point numbers.
        and (primitive != "div" or _is_floating(left))
        # `jnp` compares complex numbers in lexicographic order, by several equations.
        and not (primitive in COMPARING and kind.startswith("complex"))
    )


def _is_python_number(value: CodeValue) -> bool:
    """Return whether a value may be written as a Python number."""
    return bool(value.bare) and not (_is_integer(value) and not -INT32 <= int(value.bare) < INT32)


def _write_neg(eqn: Equation) -> str:
    # Python would negate a number itself.
    return f"-{eqn.texts[0]}" if eqn.inputs[0].is_traced else fill(eqn, "lax.neg({0})")


def _write_convert(eqn: Equation) -> str | list[CodeValue]:
    (value,), (out,) = eqn.inputs, eqn.outputs
    # A conversion to the same type has no public spelling, and no effect.
    if out.dtype == value.aval.dtype and out.more == value.aval.more:
        eqn.take("new_dtype")
        return eqn.inputs
    if out.more.weak_type:
        raise eqn.make_error("weak_type", "no public function makes a type weak")
    # `astype` warns about the imaginary part, or compares with 0 for a boolean.
    if value.aval.dtype.startswith("complex"):
        return fill(eqn, "cast = lax.convert_element_type({0}, {new_dtype:dtype})")
    return fill(eqn, "cast = {staged}.astype({new_dtype:dtype})")


def _write_broadcast(eqn: Equation) -> str:
    (value,) = eqn.inputs
    eqn.take("broadcast_dimensions")
    # `jnp.full` makes no weak type.
    if value.bare and not value.is_weak:
        return fill(
            eqn, f"wide = jnp.full({{shape}}, {value.bare}, {render_dtype(value.aval.dtype)})"
        )
    return fill(eqn, "wide = lax.broadcast_in_dim({0}, {shape}, {broadcast_dimensions})")


def _write_reshape(eqn: Equation) -> str:
    # Only `lax.reshape` takes an order of dimensions.
    module = "jnp" if eqn.take("dimensions") is None else "lax"
    return fill(eqn, f"{module}.reshape({{0}}, {{new_sizes}}{{dimensions?null}})")


def _write_iota(eqn: Equation) -> str:
    eqn.take("dimension")
    if len(eqn.take("shape")) == 1:
        return fill(eqn, "lax.iota({dtype:dtype}, {shape:only})")
    return fill(eqn, "lax.broadcasted_iota({dtype:dtype}, {shape}, {dimension})")


def _write_select(eqn: Equation) -> str:
    match eqn.inputs:
        case [which, _, _] if which.aval.dtype == "bool":
            # `lax.select` takes the case for true first, the primitive the case for false.
            return fill(eqn, "chosen = lax.select({0}, {2}, {1})")
        case _:
            return fill(eqn, "chosen = lax.select_n({*})")


def _write_empty(eqn: Equation) -> str:
    if eqn.take("memory_space") not in {None, "Device"}:
        raise eqn.make_error("memory_space", "only the device's own is known")
    return fill(eqn, f"lax.empty({render_plain(eqn.outputs[0].shape)}, {{dtype:dtype}})")


def _write_reduction(eqn: Equation) -> str:
    (value,), over = eqn.inputs, eqn.take("axes")
    name = REDUCTIONS[eqn.primitive][0]
    if (
        value.aval.dtype in UNCONVERTED
        and not value.is_weak
        and over
        and eqn.primitive in JNP_REDUCTIONS
    ):
        every = len(over) == len(value.aval.shape)
        axis = "" if every else f", axis={render_plain(over[0] if len(over) == 1 else over)}"
        return f"{name} = jnp.{JNP_REDUCTIONS[eqn.primitive]}({value.text}{axis})"
    return f"{name} = {render_reduction(eqn.program, eqn.primitive, value, render_plain(over))}"


def render_reduction(program: WrittenProgram, primitive: str, value: CodeValue, over: str) -> str:
    """Return the text of a reduction over some dimensions, for any dtype."""
    if program.release >= NAMED_REDUCTIONS:
        return f"lax.{primitive}({value.text}, {over})"
    # `lax.reduce` traces to the primitive if it recognizes the function and its initial value.
    function, start = _monoid(primitive, value)
    return f"lax.reduce({value.text}, {start}, lax.{function}, {over})"


def _monoid(primitive: str, value: CodeValue) -> tuple[str, str]:
    """Return the function and the initial value of a reduction."""
    _, function, start = REDUCTIONS[primitive]
    # Integers have no infinity.
    if _is_integer(value) and start.endswith("np.inf"):
        start = f"np.iinfo(np.{value.aval.dtype}).{'min' if start.startswith('-') else 'max'}"
    return function, f"np.array({start}, {render_dtype(value.aval.dtype)})"


def _write_windows(eqn: Equation) -> str:
    # As `lax.reduce`, `lax.reduce_window` recognizes known functions.
    function, start = _monoid(eqn.primitive.replace("_window", ""), eqn.inputs[0])
    return fill(
        eqn,
        f"lax.reduce_window({{0}}, {start}, lax.{function}, {{=window_dimensions}}, "
        "{=window_strides}, {=padding}, {=base_dilation}, {=window_dilation})",
    )


def _write_top_k(eqn: Equation) -> str:
    last = len(eqn.inputs[0].aval.shape) - 1
    # Older releases have neither this parameter nor `axis`.
    stable = ", is_stable=False" if eqn.take("is_stable") is False else ""
    return fill(eqn, f"lax.top_k({{*}}, {{k}}{{=axis?{last}}}{stable})")


def _write_dynamic_slice(eqn: Equation) -> str:
    starts, keyword = _render_starts(eqn, eqn.inputs[1:])
    return fill(eqn, f"part = lax.dynamic_slice({{0}}, {starts}, {{slice_sizes}}{keyword})")


def _write_dynamic_update(eqn: Equation) -> str:
    starts, keyword = _render_starts(eqn, eqn.inputs[2:])
    return fill(eqn, f"lax.dynamic_update_slice({{0}}, {{1}}, {starts}{keyword})")


def _render_starts(eqn: Equation, starts: Sequence[CodeValue]) -> tuple[str, str]:
    """Return the start of a slice, and the keyword that makes no index count from the end."""
    if eqn.program.release >= PLAIN_INDICES:
        return render_tuple(start.text for start in starts), ", allow_negative_indices=False"
    return render_tuple(
        # Before 0.5.3 public functions add the size to a negative start; the primitive takes it for
        # 0.
        str(max(0, int(start.bare)))
        if start.bare
        else f"lax.max({start.text}, np.{start.aval.dtype}(0))"
        for start in starts
    ), ""


def _write_svd(eqn: Equation) -> str | Assignment:
    call = fill(
        eqn, "lax.linalg.svd({0}{=full_matrices?null}{=compute_uv?null}{=subset_by_index?null})"
    )
    if len(eqn.outputs) == 1:
        return call
    # The primitive returns the singular values first, the function second.
    values, left, right = names = eqn.make_names("svd")
    return Assignment(f"{left}, {values}, {right}", call, names)


def _write_linear_solve(eqn: Equation) -> list[CodeValue]:
    """Write the solver only: the transposed system and the product are for derivatives."""
    match eqn.take("const_lengths"), eqn.take("jaxprs"):
        case [str(), *lengths], [str(), *jaxprs]:
            counts, solvers = dict(lengths), dict(jaxprs)
        case _:
            raise eqn.make_error("jaxprs", "expected those of a linear system")
    start = counts["matvec"] + counts["vecmat"]
    consts = eqn.inputs[start : start + counts["solve"]]
    right_hand_sides = eqn.inputs[sum(counts.values()) :]
    solver = eqn.program.document.jaxprs[solvers["solve"]["jaxpr"]]
    return eqn.body.write_equations(solver, [*consts, *right_hand_sides])


RULES: Final[dict[str, str | Rule]] = {
    **dict.fromkeys(LAX, "lax.{primitive}({*})"),
    **dict.fromkeys(JNP, _write_floating),
    **dict.fromkeys(OPERATORS, _write_binary),
    **dict.fromkeys(REDUCTIONS, _write_reduction),
    **dict.fromkeys(("argmax", "argmin"), "lax.{primitive}({*}, {axes:only}, {index_dtype:dtype})"),
    **dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"),
        "lax.{primitive}({*}, {=axis}{=reverse?})",
    ),
    **dict.fromkeys(
        ("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _write_windows
    ),
    **dict.fromkeys(
        ("householder_product", "lu", "lu_pivots_to_permutation"),
        "lax.linalg.{primitive}({*}{=permutation_size?})",
    ),
    **{
        # Releases spell these primitives `scatter-add` or `scatter_add`.
        f"scatter{kind and dash + kind}": (
            f"lax.scatter{kind and '_' + kind}({{*}}, dimension_numbers="
            f"lax.ScatterDimensionNumbers({{dimension_numbers:fields}}){_INDEXING})"
        )
        for kind in ("", "add", "mul", "min", "max", "sub")
        for dash in "-_"
    },
    "abs": "magnitude = lax.abs({*})",
    "bitcast_convert_type": "lax.bitcast_convert_type({0}, {new_dtype:dtype})",
    "broadcast_in_dim": _write_broadcast,
    # By default the public functions also symmetrize their operand, by additional equations.
    "cholesky": "lax.linalg.cholesky({0}, symmetrize_input=False)",
    "concatenate": "joined = lax.concatenate([{*}], {=dimension})",
    "conv_general_dilated": (
        "lax.conv_general_dilated({*}, {=window_strides}, {=padding}, {=lhs_dilation}, "
        "{=rhs_dilation}, dimension_numbers=lax.ConvDimensionNumbers({dimension_numbers:fields})"
        f"{{=feature_group_count?1}}{{=batch_group_count?1}}{_PRECISION})"
    ),
    "convert_element_type": _write_convert,
    "copy": "jnp.copy({0})",
    "custom_linear_solve": _write_linear_solve,
    "dot_general": f"dot = lax.dot_general({{*}}, {{dimension_numbers}}{_PRECISION})",
    "dynamic_slice": _write_dynamic_slice,
    "dynamic_update_slice": _write_dynamic_update,
    "eigh": (
        "lax.linalg.eigh({0}{=lower?null}{=sort_eigenvalues?null}{=subset_by_index?null}, "
        "symmetrize_input=False)"
    ),
    "empty2": _write_empty,
    "fft": "lax.fft({*}, {fft_type:fft}, {fft_lengths})",
    "gather": (
        "lax.gather({*}, dimension_numbers=lax.GatherDimensionNumbers({dimension_numbers:fields}), "
        f"{{=slice_sizes}}{_INDEXING}{{=fill_value?null:number}})"
    ),
    "integer_pow": "power = lax.integer_pow({0}, {y})",
    "iota": _write_iota,
    "max": "larger = lax.max({*})",
    "min": "smaller = lax.min({*})",
    "neg": _write_neg,
    "not": "negated = lax.bitwise_not({*})",
    "optimization_barrier": "lax.optimization_barrier({()})",
    "pad": "lax.pad({*}, {padding_config})",
    "polynomial": "lax.polynomial({0}, [{1*}])",
    "pow": "power = lax.pow({*})",
    "qr": "lax.linalg.qr({0}{=full_matrices?null}{=pivoting?})",
    # Functions of keys make one array of bits; the primitives also take arrays of keys.
    "random_bits": "jax.random.bits({key}, {shape}, jnp.uint{bit_width})",
    "random_clone": "jax.random.clone({0})",
    "random_fold_in": "jax.random.fold_in({key}, {1})",
    "random_seed": "jax.random.key({0}, {=impl:generator})",
    "random_split": "jax.random.split({key}, {shape})",
    "random_unwrap": "jax.random.key_data({0})",
    "random_wrap": "jax.random.wrap_key_data({0}, {=impl:generator})",
    "reduce_precision": "lax.reduce_precision({0}, {=exponent_bits}, {=mantissa_bits})",
    "regularized_incomplete_beta": "lax.betainc({*})",
    "reshape": _write_reshape,
    "rev": "lax.rev({0}, {dimensions})",
    "rng_bit_generator": (
        "lax.rng_bit_generator({0}, {shape}, {dtype:dtype}, "
        "algorithm=lax.RandomAlgorithm.{algorithm:member})"
    ),
    "round": "lax.round({0}, lax.RoundingMethod.{rounding_method:member})",
    "select_n": _write_select,
    "slice": "part = lax.slice({*}, {start_indices}, {limit_indices}{strides?})",
    "sort": "lax.sort({()}, {=dimension}, {=is_stable}, {=num_keys})",
    "split": "lax.split({*}, {sizes}, {=axis}){first}",
    "square": "squared = lax.square({*})",
    "squeeze": "lax.squeeze({0}, {dimensions})",
    "stack": "lax.stack([{*}], {=axis})",
    "svd": _write_svd,
    # No public function traces to this primitive alone.
    "threefry2x32": "threefry2x32_p.bind({*})",
    "tile": "lax.tile({*}, {reps})",
    "top_k": _write_top_k,
    "transpose": "jnp.transpose({0}, {permutation})",
    "triangular_solve": (
        "lax.linalg.triangular_solve({*}, {=left_side}, {=lower}, {=transpose_a}, {=conjugate_a}, "
        "{=unit_diagonal})"
    ),
    "unstack": "lax.unstack({*}, {=axis}){first}",
}
"""The rule of each primitive: a function, or a template."""
