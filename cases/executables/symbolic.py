"""`jax.export` with symbolic dimensions: operations, constraints, comparisons, derivatives."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import describe, vector

defaults(platforms=("cpu",))


def matrix(rows):
    """Return a matrix of four columns with distinct numbers."""
    x = np.arange(4 * rows, dtype=np.float32)
    return ((7 * x) % (4 * rows + 3)).reshape(rows, 4)


def export_rows(f, dims="b, 4", dtype=np.float32, constraints=()):
    """Export a function of a matrix whose shape is symbolic."""
    sizes = export.symbolic_shape(dims, constraints=constraints)
    return export.export(jax.jit(f))(jax.ShapeDtypeStruct(sizes, dtype))


def _scan(n, x):
    if n is np:
        return np.cumsum(x, 0)[::-1]
    _, sums = lax.scan(lambda c, row: (c + row, c + row), jnp.zeros(4, x.dtype), x)
    return sums[::-1]


def _fori_loop(n, x):
    if n is np:
        return np.cumsum(x, 0)[-1]
    return lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(4, x.dtype))


def _top_k(n, x):
    flat = x.reshape(-1)
    return np.sort(flat)[::-1][:3] if n is np else lax.top_k(flat, 3)[0]


def _segment_sum(n, x):
    if n is np:
        return np.stack([x[::2].sum(0), x[1::2].sum(0)])
    return jax.ops.segment_sum(x, jnp.arange(x.shape[0]) % 2, num_segments=2)


def _dynamic_slice(n, x):
    last = x.shape[0] - 1
    return x[last:] if n is np else lax.dynamic_slice(x, (last, 0), (1, 4))


def _window(n, x):
    if n is np:
        return np.cumsum(x[:, 0])
    return lax.associative_scan(jnp.add, x[:, 0])


OPERATIONS = {
    "reshape": lambda _, x: x.reshape(-1, 2),
    "slice": lambda _, x: x[1:, ::2],
    "half": lambda _, x: x[: x.shape[0] // 2],
    "arange": lambda n, x: n.arange(x.shape[0]) * x.T,
    "size": lambda _, x: x.sum(axis=0) / x.shape[0],
    "pad": lambda n, x: n.pad(x, ((1, 2), (0, 0))),
    "roll": lambda n, x: n.roll(x, 2, axis=0),
    "tile": lambda n, x: n.tile(x, (2, 1)),
    "repeat": lambda n, x: n.repeat(x, 2, axis=0),
    "sort": lambda n, x: n.sort(x, axis=0),
    "argmax": lambda n, x: n.argmax(x, axis=0),
    "cumsum": lambda n, x: n.cumsum(x, axis=0),
    "linspace": lambda n, x: n.linspace(0, 1, x.shape[0])[:, None] * x,
    "searchsorted": lambda n, x: n.searchsorted(n.sort(x[:, 0]), x[:, 1]),
    "scan": _scan,
    "fori_loop": _fori_loop,
    "top_k": _top_k,
    "segment_sum": _segment_sum,
    "dynamic_slice": _dynamic_slice,
    "associative_scan": _window,
}


NEEDS_A_CONSTANT_LENGTH = deviation(
    params=["associative_scan"],
    error="NotImplementedError",
    match="associative scan over axis of non-constant size",
    reason="associative_scan is unrolled, which needs a constant length",
)
LENGTH_IS_NO_INTEGER = deviation(
    "jax<0.4.31",
    params=["linspace"],
    error="TypeError",
    match="'_DimExpr' object cannot be interpreted as an integer",
    reason="linspace converts the number of points to an int",
)
LENGTH_IS_COMPARED = deviation(
    "jax>=0.4.31",
    params=["linspace"],
    error="InconclusiveDimensionOperation",
    match="'b' > '1' is inconclusive",
    reason="linspace compares the number of points with 1",
)
SIZE_IS_NO_INTEGER = deviation(
    "jax<0.4.34",
    params=["searchsorted"],
    error="TypeError",
    match="'_DimExpr' object cannot be interpreted as an integer",
    reason="searchsorted computes its number of steps from the size",
)
SIZE_IS_COMPARED = deviation(
    "jax>=0.4.34,<0.7.2",
    params=["searchsorted"],
    error="InconclusiveDimensionOperation",
    match="'b' <= '2147483647' is inconclusive",
    reason="searchsorted chooses the dtype of its result by the size",
)
SIZE_IS_NO_INTEGER_AGAIN = deviation(
    "jax>=0.7.2,<0.9.2",
    params=["searchsorted"],
    error="TypeError",
    match="'_DimExpr' object cannot be interpreted as an integer",
    reason="searchsorted computes its number of steps from the size",
)
SIZE_IS_A_CONSTANT = deviation(
    "jax>=0.9.2",
    params=["searchsorted"],
    error="InconclusiveDimensionOperation",
    match="'b' used in a context that requires a constant",
    reason="searchsorted computes its number of steps from the size",
)


@probe(
    source="jax-ml/jax@67bf78a64b08",
    params=[*OPERATIONS],
    deviations=[
        NEEDS_A_CONSTANT_LENGTH,
        LENGTH_IS_NO_INTEGER,
        LENGTH_IS_COMPARED,
        SIZE_IS_NO_INTEGER,
        SIZE_IS_COMPARED,
        SIZE_IS_NO_INTEGER_AGAIN,
        SIZE_IS_A_CONSTANT,
    ],
)
def operation(env, name):
    """An operation that is exported for any number of rows gives NumPy's values."""
    exported = export_rows(lambda x: OPERATIONS[name](jnp, x))
    call = jax.jit(exported.call)
    values = {str(rows): call(matrix(rows)) for rows in (3, 6)}
    exact = {str(rows): OPERATIONS[name](np, matrix(rows)) for rows in (3, 6)}
    cast = {rows: np.asarray(exact[rows]).astype(np.asarray(values[rows]).dtype) for rows in exact}
    return Observed(values, reference=cast)


COMPARISONS = {
    "equal": lambda b: b == 4,
    "less": lambda b: b < 5,
    "positive": lambda b: b >= 1,
    "twice": lambda b: 2 * b >= b,
    "product": lambda b: b * b >= b,
    "floor": lambda b: b // 2 <= b,
    "remainder": lambda b: b % 2 <= 1,
    "difference": lambda b: b - b == 0,
}


@probe(source="jax-ml/jax#24730")
def comparisons(env):
    """Comparisons of symbolic dimensions: known, false, or inconclusive.

    `b == 4` is False without an error, because b is not the constant.
    """
    (b,) = export.symbolic_shape("b")
    result = {}
    for name, compare in COMPARISONS.items():
        try:
            result[name] = bool(compare(b))
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            result[name] = type(error).__name__
    known, unknown = dict.fromkeys(COMPARISONS, True), "InconclusiveDimensionOperation"
    return Observed(
        result, reference={**known, "equal": False, "less": unknown, "product": unknown}
    )


@probe(source="jax-ml/jax#23456")
def constraints(env):
    """Constraints decide comparisons, and a call that violates one is refused.

    The constraint `b == 4` replaces b.
    """
    limited = export_rows(lambda x: x[:2], constraints=("b >= 2", "b <= 6"))
    fixed = export_rows(lambda x: x.sum(0) * x.shape[0], constraints=("b == 4",))
    result = {
        "inside": limited.call(matrix(5)),
        "beyond": refusal(lambda: limited.call(matrix(7)), "b <= 6"),
        "equal": fixed.call(matrix(4)),
        "unequal": refusal(lambda: fixed.call(matrix(5))).partition(":")[0],
    }
    exact = {
        "inside": matrix(5)[:2],
        "beyond": "ValueError: b <= 6",
        "equal": 4 * matrix(4).sum(0),
        "unequal": "ValueError",
    }
    return Observed(result, reference=exact)


REFUSED_SHAPES = {
    "indivisible": lambda: export_rows(lambda x: x.reshape(3, -1)),
    "constant_sum": lambda: export_rows(lambda x: x + jnp.ones((3, 4))),
    "two_scopes": lambda: export.symbolic_shape("b")[0] + export.symbolic_shape("b")[0],
    "data_dependent": lambda: export_rows(lambda x: jnp.nonzero(x)[0]),
    "python_range": lambda: export_rows(lambda x: sum(x[i] for i in range(x.shape[0]))),
    "bad_name": lambda: export.symbolic_shape("2b"),
}


@probe(source="jax-ml/jax@67bf78a64b08")
def refused_when_exported(env):
    """Shapes that cannot be right for every size are refused when they are exported."""
    result = {name: describe(call) for name, call in REFUSED_SHAPES.items()}
    exact = {
        "indivisible": "InconclusiveDimensionOperation",
        "constant_sum": "TypeError",
        "two_scopes": "ValueError",
        "data_dependent": "ConcretizationTypeError",
        "python_range": "TypeError",
        "bad_name": "ValueError",
    }
    return Observed(result, reference=exact)


@probe(source="jax-ml/jax@67bf78a64b08")
def refused_when_called(env):
    """A call whose sizes contradict each other, another rank or a size of zero is refused."""
    specs = export.symbolic_args_specs((matrix(3), matrix(3)), ("b, 4", "2*b, 4"))
    exported = export.export(jax.jit(lambda x, y: x + y[::2]))(*specs)
    result = {
        "right": exported.call(matrix(2), matrix(4)),
        "contradiction": describe(lambda: exported.call(matrix(2), matrix(3))),
        "columns": describe(lambda: exported.call(matrix(2)[:, :3], matrix(4))),
        "rank": describe(lambda: exported.call(vector(), matrix(4))),
        "zero": describe(lambda: exported.call(matrix(0), matrix(0))),
    }
    errors = dict.fromkeys(("contradiction", "columns", "rank", "zero"), "ValueError")
    return Observed(result, reference={"right": matrix(2) + matrix(4)[::2], **errors})


@probe(source="jax-ml/jax#21976")
def derivatives(env):
    """The first and second derivative of an export with a symbolic size are right."""
    exported = export_rows(lambda x: (x**3).sum() / x.shape[0])
    loaded = export.deserialize(bytearray(exported.serialize(vjp_order=2)))
    x = matrix(3) / 4
    first = jax.jit(jax.grad(loaded.call))(x)
    second = jax.jit(jax.grad(lambda y: jax.grad(loaded.call)(y).sum()))(x)
    wide = x.astype(np.float64)
    return Observed((first, second), reference=(wide**2, 2 * wide))


@probe(source="jax-ml/jax@67bf78a64b08", devices=4)
def sharded_rows(env):
    """A symbolic axis may be sharded: the export runs on as many devices, for sizes that divide."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    sizes = export.symbolic_shape("4*b, 4")
    spec = jax.ShapeDtypeStruct(sizes, np.float32, sharding=rows)
    exported = export.export(jax.jit(lambda x: x - x.mean(0), out_shardings=rows))(spec)
    loaded = export.deserialize(bytearray(exported.serialize()))
    values, kept = {}, {}
    for count in (4, 8):
        out = jax.jit(loaded.call)(jax.device_put(matrix(count), rows))
        values[str(count)] = out
        kept[str(count)] = out.sharding.is_equivalent_to(rows, 2)
    exact = {str(n): matrix(n) - matrix(n).astype(np.float64).mean(0) for n in (4, 8)}
    return Observed(
        {"values": values, "kept": kept, "devices": loaded.nr_devices},
        reference={"values": exact, "kept": {"4": True, "8": True}, "devices": 4},
    )


@probe(source="jax-ml/jax@67bf78a64b08")
def keys_of_symbolic_number(env):
    """Typed PRNG keys may have a symbolic shape; each gives its own bits."""
    (b,) = export.symbolic_shape("b")
    keys = jax.jit(lambda: jax.random.split(jax.random.key(0), 3))()
    spec = jax.ShapeDtypeStruct((b,), keys.dtype)
    f = jax.vmap(lambda key: jax.random.bits(key, (2,)))
    exported = export.export(jax.jit(f))(spec)
    return Observed(exported.call(keys), reference=jax.jit(f)(keys))


@probe(source="jax-ml/jax@67bf78a64b08")
def nested_call(env):
    """A function that calls an export can be exported with a symbolic size, too."""
    inner = export_rows(lambda x: x.sum(1))
    outer = export_rows(lambda x: inner.call(jnp.concatenate([x, 2 * x])), dims="n, 4")
    loaded = export.deserialize(bytearray(outer.serialize()))
    x = matrix(3)
    return Observed(loaded.call(x), reference=np.concatenate([x, 2 * x]).sum(1))


SPEC_OF_64_BITS = deviation(
    "jax>=0.11.1",
    outcome="ok",
    reason="the specs have the dtype of the NumPy array, which JAX narrows with a warning",
)


@probe(source="jax-ml/jax@67bf78a64b08", deviations=[SPEC_OF_64_BITS])
def specs_of_64_bits(env):
    """With 64 bits off, `symbolic_args_specs` of a float64 array is of 32 bits, as the program."""
    (spec,) = export.symbolic_args_specs((np.ones((2, 3)),), "b, 3")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exported = export.export(jax.jit(lambda x: 2 * x))(spec)
    observed = {
        "spec": str(spec.dtype),
        "program": str(exported.in_avals[0].dtype),
        "warnings": sorted({w.category.__name__ for w in caught}),
    }
    return Observed(observed, {"spec": "float32", "program": "float32", "warnings": []})
