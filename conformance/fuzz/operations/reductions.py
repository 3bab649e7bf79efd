"""Reductions, cumulative operations, sorting and searching, along an axis or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import PARTS, ArrayType
from conformance.fuzz.operation import (
    ANY,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    REAL,
    SINGLE,
    Operation,
    make_operations,
)

if TYPE_CHECKING:
    from conformance.fuzz.program import Variable
    from conformance.fuzz.scope import Scope

SUMMED: Final = {
    "bool": "int32", "uint8": "uint32", "uint16": "uint32", "int8": "int32", "int16": "int32",
}  # fmt: skip
"""Dtype of the sum of small integers; in 64 bits it is the dtype of 64 bits."""


def name_reduced_dtype(scope: Scope, operation: Operation, dtype: str) -> str:
    """Return the dtype of a reduction.

    Args:
        scope: Scope of the operation.
        operation: `result` is `same`, `sum` (small integers become large), `mean` (integers become
            floating-point), `part` (the real part), `index`, or the name of a dtype.
        dtype: Dtype of the operand.
    """
    kind = ArrayType((), dtype).kind
    bits = 64 if scope.x64 else 32
    match operation.result:
        case "bool":
            return "bool"
        case "index":
            return f"int{bits}"
        case "part" if kind in INEXACT:
            return PARTS.get(dtype, dtype)
        case "mean" | "part" if kind not in INEXACT:
            return f"float{bits}"
        case "sum" if kind not in INEXACT:
            wide = "uint64" if kind == "uint" else "int64"
            return wide if scope.x64 else SUMMED.get(dtype, dtype)
    return dtype


def _reduce(shape: tuple[int, ...], axes: tuple[int, ...], *, keep: bool) -> tuple[int, ...]:
    axes = tuple(axis % len(shape) for axis in axes)
    if keep:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def draw_reduction(scope: Scope, operation: Operation) -> None:
    """Add a reduction over one axis, several or all; `call` has further keywords."""
    least = 0 if operation.result in {"sum", "bool"} else 1
    x = scope.pick_kind(operation.kinds, least=least)
    keep = scope.flip()
    axes: tuple[int, ...] = tuple(range(x.type.rank))
    form = scope.choose(["all", "one", "several"]) if x.type.rank else "all"
    words = []
    if form == "one":
        axis = scope.choose_axis(x.type)
        assert axis is not None  # noqa: S101 - its rank is not zero
        axes = (axis,)
        words.append(f"axis={axis}")
    elif form == "several" and "arg" not in operation.name:
        axes = tuple(axis for axis in axes if axis == 0 or scope.flip())
        words.append(f"axis={axes}")
    if keep:
        words.append("keepdims=True")
    if operation.call:
        words.append(operation.call)
    result = name_reduced_dtype(scope, operation, x.type.dtype)
    shape = _reduce(x.type.shape, axes, keep=keep) if x.type.rank else ()
    arguments = ", ".join(["{0}", *words])
    twin = ""
    if operation.twin and not operation.call:
        # NumPy sums integers in 64 bits.
        more = (
            f', dtype="{result}"'
            if operation.result == "sum" and x.type.kind not in INEXACT
            else ""
        )
        twin = f"{operation.twin}({arguments}{more})"
    scope.add(operation.name, f"{operation.name}({arguments})", [x], ArrayType(shape, result),
              twin=twin)  # fmt: skip


def draw_quantile(scope: Scope, operation: Operation) -> None:
    """Add a quantile along an axis."""
    x = scope.pick_kind(FLOAT, smallest=1, least=1)
    axis = scope.choose_axis(x.type)
    assert axis is not None  # noqa: S101 - its rank is not zero
    q = scope.choose(["0.5", "0.25", "1.0", "0.0"])
    q = str(float(q) * 100) if "percentile" in operation.name else q
    method = scope.choose(["", ', method="lower"', ', method="nearest"', ', method="midpoint"'])
    result = ArrayType(_reduce(x.type.shape, (axis,), keep=False), x.type.dtype)
    code = f"{operation.name}({{0}}, {q}, axis={axis}{method})"
    scope.add(operation.name, code, [x], result)


def draw_cumulative(scope: Scope, operation: Operation) -> None:
    """Add a cumulative operation of `jnp` along an axis."""
    x = scope.pick_kind(operation.kinds, smallest=1)
    axis = scope.choose_axis(x.type)
    assert axis is not None  # noqa: S101 - its rank is not zero
    dtype = name_reduced_dtype(scope, operation, x.type.dtype)
    twin = f"{operation.twin}({{0}}, axis={axis}"
    twin += f', dtype="{dtype}")' if x.type.kind not in INEXACT else ")"
    scope.add(
        operation.name, f"{operation.name}({{0}}, axis={axis})", [x], x.type.with_dtype(dtype),
        twin=twin if operation.twin else "",
    )  # fmt: skip


def draw_lax_cumulative(scope: Scope, operation: Operation) -> None:
    """Add a cumulative operation of `lax`, in either direction."""
    x = scope.pick_kind(operation.kinds, smallest=1)
    axis = scope.integer(0, x.type.rank - 1)
    reverse = scope.choose(["", ", reverse=True"])
    scope.add(operation.name, f"{operation.name}({{0}}, axis={axis}{reverse})", [x], x.type)


def draw_along_axis(scope: Scope, operation: Operation) -> None:
    """Add an operation along an axis that keeps the shape; `call` has further keywords."""
    x = scope.pick_kind(operation.kinds, smallest=1, least=1)
    axis = scope.choose_axis(x.type)
    more = f", {operation.call}" if operation.call else ""
    dtype = name_reduced_dtype(scope, operation, x.type.dtype)
    twin = f"{operation.twin}({{0}}, axis={axis})" if operation.twin and not more else ""
    code = f"{operation.name}({{0}}, axis={axis}{more})"
    scope.add(operation.name, code, [x], x.type.with_dtype(dtype), twin=twin)


def draw_difference(scope: Scope, operation: Operation) -> None:
    """Add a difference of neighbours along the last axis."""
    x = scope.pick_kind(NUMBER, smallest=1, least=2)
    shape = (*x.type.shape[:-1], x.type.shape[-1] - 1)
    scope.add(operation.name, f"{operation.name}({{0}})", [x], x.type.with_shape(*shape),
              twin=f"{operation.twin}({{0}})")  # fmt: skip


def draw_gradient(scope: Scope, operation: Operation) -> None:
    """Add a numerical gradient or an integral along the last axis."""
    x = scope.pick_kind(FLOAT, smallest=1, least=2)
    shape = x.type.shape if operation.name == "jnp.gradient" else x.type.shape[:-1]
    code = f"{operation.name}({{0}}, axis=-1)"
    twin = code.replace("jnp.", "np.") if operation.name == "jnp.gradient" else ""
    scope.add(operation.name, code, [x], x.type.with_shape(*shape), twin=twin)


def draw_partition(scope: Scope, operation: Operation) -> None:
    """Add a partial sort."""
    x = scope.pick_kind(REAL, smallest=1, least=1)
    kth = scope.integer(0, x.type.shape[-1] - 1)
    dtype = name_reduced_dtype(scope, operation, x.type.dtype)
    code = f"{operation.name}({{0}}, {kth}, axis=-1)"
    scope.add(operation.name, code, [x], x.type.with_dtype(dtype))


def draw_top_k(scope: Scope, operation: Operation) -> None:
    """Add the largest elements of the last axis, and their positions."""
    x = scope.pick_kind(operation.kinds, smallest=1, least=1)
    k = scope.integer(1, x.type.shape[-1])
    result = x.type.with_shape(*x.type.shape[:-1], k)
    scope.add(operation.name, f"{operation.name}({{0}}, {k})", [x], result,
              result.with_dtype("int32"))  # fmt: skip


def draw_sort_pairs(scope: Scope, operation: Operation) -> None:
    """Add a sort of several operands by the first ones."""
    x = scope.pick_kind(REAL, smallest=1, least=1)
    y = scope.pick(lambda type_: type_.shape == x.type.shape, lambda: x.type.with_dtype("int32"))
    keys = scope.choose([1, 2])
    code = f"{operation.name}(({{0}}, {{1}}), dimension={x.type.rank - 1}, num_keys={keys})"
    scope.add(operation.name, code, [x, y], x.type, y.type)


def draw_lexsort(scope: Scope, operation: Operation) -> None:
    """Add an indirect sort by two keys."""
    x = scope.pick_kind(REAL, smallest=1, largest=1, least=1)
    y = scope.pick(lambda type_: type_.shape == x.type.shape, lambda: x.type)
    dtype = name_reduced_dtype(scope, operation, x.type.dtype)
    scope.add(operation.name, f"{operation.name}(({{0}}, {{1}}))", [x, y], x.type.with_dtype(dtype))


def draw_searchsorted(scope: Scope, operation: Operation) -> None:
    """Add a search in a sorted vector."""
    x = scope.pick_kind(REAL, smallest=1, largest=1, least=1)
    y = scope.pick(lambda type_: type_.dtype == x.type.dtype, lambda: x.type)
    options = scope.choose(["", ', side="right"', ', method="sort"', ', method="compare_all"'])
    if operation.name == "jnp.digitize":
        options = scope.choose(["", ", right=True"])
        code = f"jnp.digitize({{1}}, jnp.sort({{0}}){options})"
    else:
        code = f"jnp.searchsorted(jnp.sort({{0}}), {{1}}{options})"
    scope.add(operation.name, code, [x, y], y.type.with_dtype("int32"))


def draw_counts(scope: Scope, operation: Operation) -> None:
    """Add a count of small integers, with a fixed length."""
    x = scope.pick_kind(INTEGER, smallest=1, largest=1)
    length = scope.choose([4, 1, 8])
    code = f"{operation.name}({{0}}, length={length})"
    dtype = "int64" if scope.x64 else "int32"
    scope.add(operation.name, code, [x], ArrayType((length,), dtype))


def draw_packed_bits(scope: Scope, operation: Operation) -> None:
    """Add a vector whose elements are bits, packed into bytes."""
    x = scope.pick_kind(operation.kinds, smallest=1, largest=1, least=1)
    result = ArrayType((-(-x.type.size // 8),), "uint8")
    scope.add(operation.name, f"{operation.name}({{0}})", [x], result)


def draw_histogram(scope: Scope, operation: Operation) -> None:
    """Add a histogram with a fixed range."""
    x = scope.pick_kind(FLOAT, smallest=1, least=1)
    bins = scope.choose([4, 1, 3])
    code = f"{operation.name}({{0}}, bins={bins}, range=(-2.0, 2.0))[0]"
    scope.add(operation.name, code, [x], ArrayType((bins,), x.type.dtype))


def draw_unique(scope: Scope, operation: Operation) -> None:
    """Add a set operation with a fixed size."""
    x = scope.pick_kind(REAL, smallest=1, largest=2, least=1)
    size = scope.choose([3, 1, 6])
    options = scope.choose(["", ", fill_value=7"])
    code = f"{operation.name}({{0}}, size={size}{options})"
    scope.add(operation.name, code, [x], ArrayType((size,), x.type.dtype))


def draw_nonzero(scope: Scope, operation: Operation) -> None:
    """Add the positions of elements, with a fixed size."""
    x = scope.pick_kind(ANY, smallest=1, least=1)
    size = scope.choose([3, 1, 6])
    options = scope.choose(["", ", fill_value=-1"])
    index = "int64" if scope.x64 else "int32"
    code = f"{operation.name}({{0}}, size={size}{options})"
    if operation.name == "jnp.flatnonzero":
        scope.add(operation.name, code, [x], ArrayType((size,), index))
    elif operation.name == "jnp.argwhere":
        scope.add(operation.name, code, [x], ArrayType((size, x.type.rank), index))
    else:
        scope.add(operation.name, f"{code}[0]", [x], ArrayType((size,), index))


def draw_two_vectors(scope: Scope, operation: Operation) -> None:
    """Add an operation of two vectors with a result of a known length."""
    x = scope.pick_kind(operation.kinds, smallest=1, largest=1, least=1)
    y = scope.pick(
        lambda type_: type_.dtype == x.type.dtype and type_.rank == 1 and type_.size > 0,
        lambda: x.type.with_shape(scope.choose([2, 3, 1])),
    )
    mode = scope.choose(["full", "same", "valid"])
    large, small = sorted((x.type.size, y.type.size), reverse=True)
    size = {"full": large + small - 1, "same": large, "valid": large - small + 1}[mode]
    code = f'{operation.name}({{0}}, {{1}}, mode="{mode}")'
    twin = code.replace("jnp.", "np.") if x.type.kind in INEXACT and "jnp" in code else ""
    scope.add(operation.name, code, [x, y], ArrayType((size,), x.type.dtype), twin=twin)


def draw_interp(scope: Scope, operation: Operation) -> None:
    """Add a linear interpolation."""
    x = scope.pick_kind(FLOAT)
    xp = scope.pick(lambda _: False, lambda: ArrayType((scope.choose([3, 2]),), x.type.dtype))
    fp = scope.pick(lambda type_: type_ == xp.type, lambda: xp.type)
    options = scope.choose(["", ", left=-1.0", ', left="extrapolate"', ", period=3.0"])
    code = f"{operation.name}({{0}}, jnp.sort({{1}}), {{2}}{options})"
    scope.add(operation.name, code, [x, xp, fp], x.type)


def draw_covariance(scope: Scope, operation: Operation) -> None:
    """Add a covariance or correlation matrix."""
    x = scope.pick_kind(FLOAT, smallest=2, largest=2)
    rows = not scope.rarely(3)
    n = x.type.shape[0 if rows else 1]
    code = f"{operation.name}({{0}}{'' if rows else ', rowvar=False'})"
    scope.add(operation.name, code, [x], x.type.with_shape(*((n, n) if n != 1 else ())))


def draw_segments(scope: Scope, operation: Operation) -> None:
    """Add a reduction by segment."""
    x = scope.pick_kind(REAL, smallest=1, largest=2)
    ids = pick_ids(scope, x)
    count = scope.choose([3, 1, 5])
    options = scope.choose(["", ", indices_are_sorted=True", ', mode="clip"'])
    # Unsorted ids are no valid promise: the sorted ones are.
    wanted = "jnp.sort({1})" if "sorted" in options else "{1}"
    code = f"{operation.name}({{0}}, {wanted}, num_segments={count}{options})"
    scope.add(operation.name, code, [x, ids], x.type.with_shape(count, *x.type.shape[1:]))


def pick_ids(scope: Scope, x: Variable) -> Variable:
    """Draw an index for each element of the first axis."""
    wanted = ArrayType(x.type.shape[:1], "int32")
    return scope.pick(lambda type_: type_ == wanted, lambda: wanted)


REDUCTIONS: Final = (
    *make_operations("jnp.sum jnp.prod", draw_reduction, NUMBER, result="sum", twin=True),
    *make_operations("jnp.max jnp.min", draw_reduction, REAL, twin=True),
    *make_operations("jnp.max jnp.min", draw_reduction, ("complex", "bool")),
    *make_operations("jnp.mean", draw_reduction, INEXACT, result="mean", twin=True),
    *make_operations("jnp.mean", draw_reduction, INTEGER, result="mean"),
    *make_operations("jnp.var jnp.std", draw_reduction, INEXACT, result="part", twin=True),
    *make_operations("jnp.nanvar jnp.nanstd", draw_reduction, FLOAT, twin=True),
    *make_operations("jnp.any jnp.all", draw_reduction, ANY, result="bool", twin=True),
    *make_operations("jnp.argmax jnp.argmin", draw_reduction, REAL, result="index", twin=True),
    *make_operations("jnp.nanargmax jnp.nanargmin", draw_reduction, FLOAT, result="index"),
    *make_operations("jnp.nansum jnp.nanprod", draw_reduction, NUMBER, result="sum"),
    *make_operations("jnp.nanmax jnp.nanmin jnp.nanmean", draw_reduction, FLOAT, twin=True),
    *make_operations("jnp.ptp", draw_reduction, REAL, twin=True),
    *make_operations("jnp.median jnp.nanmedian", draw_reduction, FLOAT, twin=True),
    *make_operations("jnp.count_nonzero", draw_reduction, ANY, result="index"),
    *make_operations("jnp.average", draw_reduction, FLOAT, twin=True),
    *make_operations(
        "jax.nn.logsumexp jax.scipy.special.logsumexp jax.nn.logmeanexp", draw_reduction, FLOAT
    ),
    *make_operations("jnp.linalg.vector_norm", draw_reduction, FLOAT, twin=True),
    *make_operations("jnp.quantile jnp.percentile jnp.nanquantile", draw_quantile, FLOAT),
    *make_operations("jnp.cumsum jnp.cumprod", draw_cumulative, NUMBER, twin=True),
    *make_operations("jnp.nancumsum jnp.nancumprod", draw_cumulative, INEXACT, twin=True),
    *make_operations("lax.cumsum lax.cumprod", draw_lax_cumulative, NUMBER),
    *make_operations("lax.cummax lax.cummin", draw_lax_cumulative, REAL),
    *make_operations("lax.cumlogsumexp", draw_lax_cumulative, FLOAT),
    *make_operations("jnp.sort", draw_along_axis, REAL, twin=True),
    *make_operations("jnp.sort", draw_along_axis, ("complex", "bool")),
    *make_operations("jnp.argsort", draw_along_axis, REAL, result="index"),
    *make_operations("jnp.unwrap", draw_along_axis, FLOAT, twin=True),
    *(
        Operation(name=name, rule=draw_along_axis, kinds=REAL, result=result, call=call)
        for name, result, call in (
            ("jnp.sort", "same", "descending=True"),
            ("jnp.argsort", "index", "descending=True"),
            ("jnp.argsort", "index", "stable=False"),
            ("jnp.cumsum", "bool", "dtype=bool"),
        )
    ),
    *make_operations("jax.scipy.stats.rankdata", draw_along_axis, SINGLE),
    Operation(name="jnp.unwrap", rule=draw_along_axis, kinds=INTEGER, call="period=6"),
    *make_operations("jax.nn.softmax jax.nn.log_softmax", draw_along_axis, FLOAT),
    *make_operations("jax.nn.standardize", draw_along_axis, FLOAT),
    *make_operations("jnp.diff", draw_difference, NUMBER, twin=True),
    *make_operations("jnp.gradient jnp.trapezoid", draw_gradient, FLOAT),
    *make_operations("jnp.partition", draw_partition, REAL),
    *make_operations("jnp.argpartition", draw_partition, REAL, result="index"),
    *make_operations("lax.top_k", draw_top_k, REAL),
    *make_operations("lax.approx_max_k lax.approx_min_k", draw_top_k, FLOAT),
    *make_operations("lax.sort", draw_sort_pairs, REAL),
    *make_operations("jnp.lexsort", draw_lexsort, REAL, result="index"),
    *make_operations("jnp.searchsorted jnp.digitize", draw_searchsorted, REAL),
    *make_operations("jnp.bincount", draw_counts, INTEGER),
    *make_operations("jnp.packbits", draw_packed_bits, (*INTEGER, "bool")),
    *make_operations("jnp.histogram", draw_histogram, FLOAT),
    *make_operations("jnp.unique jnp.unique_values", draw_unique, REAL),
    *make_operations("jnp.nonzero jnp.flatnonzero jnp.argwhere", draw_nonzero, ANY),
    *make_operations("jnp.convolve jnp.correlate", draw_two_vectors, NUMBER),
    *make_operations("jax.scipy.signal.convolve jax.scipy.signal.correlate", draw_two_vectors,
                     FLOAT),
    *make_operations("jax.scipy.signal.fftconvolve", draw_two_vectors, SINGLE),
    *make_operations("jnp.interp", draw_interp, FLOAT),
    *make_operations("jnp.cov jnp.corrcoef", draw_covariance, FLOAT),
    *make_operations(
        "jax.ops.segment_sum jax.ops.segment_prod jax.ops.segment_max jax.ops.segment_min",
        draw_segments, REAL,
    ),
)  # fmt: skip
