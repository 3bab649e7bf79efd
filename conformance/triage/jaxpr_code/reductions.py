"""How what takes many elements together is said: reductions, windows, sorting, products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.triage.jaxpr_code.arrays import dtype_of, lax_of, record_of
from conformance.triage.jaxpr_code.program import UnsayableError
from conformance.triage.jaxpr_code.text import dtype, one_or_tuple, plain

if TYPE_CHECKING:
    from conformance.triage.jaxpr_code.program import Program, Value
    from conformance.triage.jaxpr_code.writer import Equation, Rule

FFTS: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
REDUCTIONS: Final = {
    "reduce_sum": ("add", "0"),
    "reduce_prod": ("mul", "1"),
    "reduce_max": ("max", "-np.inf"),
    "reduce_min": ("min", "np.inf"),
    "reduce_and": ("bitwise_and", "True"),
    "reduce_or": ("bitwise_or", "False"),
    "reduce_xor": ("bitwise_xor", "0"),
}
"""Reductions by what they do with two elements, and by what they start from."""
JNP_REDUCTIONS: Final = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min"}
NAMED_REDUCTIONS = (0, 5, 1)
"""Release from which `lax.reduce_sum` and others are public."""
WIDE: Final = frozenset({"float32", "float64"})
"""Element types that `jnp.sum` and others reduce as they are."""


def _reduction(eqn: Equation) -> str:
    (value,), over = eqn.inputs, eqn.take("axes")
    if value.aval.dtype in WIDE and not value.weak and over and eqn.primitive in JNP_REDUCTIONS:
        every = len(over) == len(value.aval.shape)
        axis = "" if every else f", axis={plain(over[0] if len(over) == 1 else over)}"
        return f"jnp.{JNP_REDUCTIONS[eqn.primitive]}({value.text}{axis})"
    return reduction(eqn.program, eqn.primitive, value, plain(over))


def reduction(program: Program, primitive: str, value: Value, over: str) -> str:
    """Return the text of a reduction over some dimensions, whatever the element type."""
    if program.release >= NAMED_REDUCTIONS:
        return f"lax.{primitive}({value.text}, {over})"
    how, start = REDUCTIONS[primitive]
    if value.aval.dtype.startswith(("int", "uint")) and start.endswith("np.inf"):
        start = f"np.iinfo(np.{value.aval.dtype}).{'min' if start.startswith('-') else 'max'}"
    start = f"np.array({start}, {dtype(value.aval.dtype)})"
    return f"lax.reduce({value.text}, {start}, lax.{how}, {over})"


def _argument(eqn: Equation) -> str:
    (axis,) = eqn.take("axes")
    return lax_of(eqn, str(axis), dtype_of(eqn, "index_dtype"))


def _cumulative(eqn: Equation) -> str:
    more = ", reverse=True" if eqn.take("reverse") else ""
    return lax_of(eqn, f"axis={eqn.take('axis')}{more}")


def _sort(eqn: Equation) -> str:
    more = [f"{name}={plain(eqn.take(name))}" for name in ("dimension", "is_stable", "num_keys")]
    return f"lax.sort({one_or_tuple(eqn.texts)}, {', '.join(more)})"


def _top_k(eqn: Equation) -> str:
    (value,), axis = eqn.inputs, eqn.take("axis")
    more = [str(eqn.take("k"))]
    if axis is not None and axis != len(value.aval.shape) - 1:
        more.append(f"axis={axis}")
    if eqn.take("is_stable") is False:
        more.append("is_stable=False")
    return lax_of(eqn, *more)


def precision_of(eqn: Equation) -> list[str]:
    """Return the keyword of how precise a product is to be; none where nothing is said."""
    said = eqn.take("precision")
    if said is None:
        return []
    names = said if isinstance(said, list) else [said]
    if not all(name in {"DEFAULT", "HIGH", "HIGHEST"} for name in names):
        raise UnsayableError("precision", f"not known to be {plain(said)}")
    return [f"precision={one_or_tuple([f'lax.Precision.{name}' for name in names])}"]


def element_type_of(eqn: Equation) -> list[str]:
    """Return the keyword of the element type of a product; none where nothing is said."""
    if eqn.take("preferred_element_type") is None:
        return []
    return [f"preferred_element_type={dtype_of(eqn, 'preferred_element_type')}"]


def _dot(eqn: Equation) -> str:
    numbers = plain(eqn.take("dimension_numbers"))
    return lax_of(eqn, numbers, *precision_of(eqn), *element_type_of(eqn))


def _convolution(eqn: Equation) -> str:
    numbers = record_of(eqn, "dimension_numbers")
    said = ", ".join(f"{name}={plain(value)}" for name, value in numbers.items())
    plainly = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
    counts = ("feature_group_count", "batch_group_count")
    more = [f"{name}={plain(eqn.take(name))}" for name in plainly]
    more.append(f"dimension_numbers=lax.ConvDimensionNumbers({said})")
    more += [f"{name}={count}" for name in counts if (count := eqn.take(name)) != 1]
    return lax_of(eqn, *more, *precision_of(eqn), *element_type_of(eqn))


def _windows(eqn: Equation) -> str:
    (value,) = eqn.inputs
    how, start = REDUCTIONS[eqn.primitive.replace("_window", "")]
    said = dtype(value.aval.dtype)
    if value.aval.dtype.startswith(("int", "uint")) and start.endswith("np.inf"):
        start = f"np.iinfo(np.{value.aval.dtype}).{'min' if start.startswith('-') else 'max'}"
    names = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    more = ", ".join(f"{name}={plain(eqn.take(name))}" for name in names)
    return f"lax.reduce_window({value.text}, np.array({start}, {said}), lax.{how}, {more})"


def _fft(eqn: Equation) -> str:
    kind = eqn.take("fft_type")
    said = FFTS[kind] if isinstance(kind, int) else str(kind).rpartition(".")[2]
    return lax_of(eqn, plain(said), plain(eqn.take("fft_lengths")))


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(("argmax", "argmin"), _argument),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _cumulative),
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _windows),
    "conv_general_dilated": _convolution,
    "dot_general": _dot,
    "fft": _fft,
    "sort": _sort,
    "top_k": _top_k,
}
"""How each of these primitives is said."""
