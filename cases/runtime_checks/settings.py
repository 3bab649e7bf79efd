"""Options: values that they accept, and decorators and contexts that set them for a while."""

from __future__ import annotations

import operator

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import call_outcome, floats

defaults(platforms=("cpu",))


def find_enable_x64():
    """Return the context of 64-bit types; it moved to the top level in 0.8.0."""
    return jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


DECORATORS = {
    "matmul_precision": (
        lambda: jax.default_matmul_precision("float32"),
        lambda: str(jax.config.jax_default_matmul_precision),
        "None",
    ),
    "enable_x64": (lambda: find_enable_x64()(True), lambda: str(jnp.sin(1.0).dtype), "float32"),
    "debug_nans": (
        lambda: jax.debug_nans(True),
        lambda: call_outcome(lambda: jnp.log(-1.0)),
        "ran",
    ),
    "rank_promotion": (
        lambda: jax.numpy_rank_promotion("raise"),
        lambda: call_outcome(lambda: jnp.ones((2, 2)) + np.ones(2)),
        "ran",
    ),
}


LEFT_SET = deviation(
    "jax>=0.5.3,<0.10.2",
    params=["matmul_precision", "debug_nans", "rank_promotion"],
    outcome="ok",
    reason="all calls shared one memory of the option before, which the inner call replaced",
    issue="jax-ml/jax@ae7fcea37e4c",
)
X64_LEFT_SET = deviation(
    "jax>=0.8,<0.10.2",
    params=["enable_x64"],
    outcome="ok",
    reason="all calls shared one memory of the option before, which the inner call replaced",
    issue="jax-ml/jax@ae7fcea37e4c",
)


@probe(source="jax-ml/jax@ae7fcea37e4c", params=[*DECORATORS], deviations=[LEFT_SET, X64_LEFT_SET])
def decorator_of_a_recursion(env, name):
    """An option that a decorator sets is restored, also if the function calls itself."""
    decorator, read, before = DECORATORS[name]

    @decorator()
    def recurse(again):
        return recurse(again - 1) if again else None

    recurse(0)
    once = read()
    recurse(1)
    return Observed({"called": once, "by itself": read()}, {"called": before, "by itself": before})


ACCEPTED = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the value of an option was not checked",
    issue="jax-ml/jax@fa7307714671",
)


@probe(source="jax-ml/jax@fa7307714671", deviations=[ACCEPTED])
def values_of_an_option(env):
    """`jax.config.update` refuses a value that an option does not have."""
    values = {
        "jax_default_matmul_precision": ("exact", 3),
        "jax_numpy_dtype_promotion": ("loose", None),
        "jax_numpy_rank_promotion": ("forbid", 3),
        "jax_default_prng_impl": ("mersenne", None),
    }
    observed = {
        f"{option}={value!r}": refusal(lambda o=option, v=value: jax.config.update(o, v)) != "ran"
        for option, choices in values.items()
        for value in choices
    }
    return Observed(observed, dict.fromkeys(observed, True))


NOT_CONVERTED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="the option kept a value of another type",
    issue="jax-ml/jax#20611",
)


@probe(source="jax-ml/jax#20611", deviations=[NOT_CONVERTED])
def values_of_a_boolean_option(env):
    """A value that `jax_debug_nans` is set to becomes a boolean, as `bool` makes it."""
    observed, expected = {}, {}
    for value in (True, 0, 2, None, "", "False", []):
        jax.config.update("jax_debug_nans", value)
        observed[repr(value)] = repr(jax.config.jax_debug_nans)
        expected[repr(value)] = repr(bool(value))
    return Observed(observed, expected)


ONLY_BOOLEANS = deviation(
    "jax<0.8",
    error="TypeError",
    match="incompatible function arguments",
    reason="the setting of 64-bit mode had to be a boolean",
    issue="jax-ml/jax#20611",
)
REFUSED_WITHOUT_A_NAME = deviation(
    "jax>=0.8,<0.8.1",
    outcome="ok",
    reason="a setting that was no boolean was refused at the first operation, as std::bad_cast",
    issue="jax-ml/jax#20611",
)


@probe(source="jax-ml/jax#20611", deviations=[ONLY_BOOLEANS, REFUSED_WITHOUT_A_NAME])
def number_for_64_bit_mode(env):
    """`jax_enable_x64` may be set to 0 or 1; a text such as "False" counts as true."""
    dtypes = []
    for value in (1, 0, "False"):
        jax.config.update("jax_enable_x64", value)
        dtypes.append(call_outcome(lambda: dtypes.append(jnp.ones(1).dtype.name)))
    return Observed(dtypes, ["float64", "ran", "float32", "ran", "float64", "ran"])


NO_SOURCE_OF_A_BUILTIN = deviation(
    "jax<0.4.31",
    error="AttributeError",
    match="func_src_info",
    reason="the explanation needed the source of the function",
    issue="jax-ml/jax@ffa39c0858b9",
)


@probe(
    source="jax-ml/jax@ffa39c0858b9",
    config={"jax_explain_cache_misses": True},
    deviations=[NO_SOURCE_OF_A_BUILTIN],
)
def explained_builtin(env):
    """With `jax_explain_cache_misses`, a function without Python source can be jitted."""
    return Observed(jax.jit(operator.add)(floats(1, 2), floats(3, 4)), floats(4, 6))


NO_SUCH_CONTEXT = deviation(
    "jax<0.7.2",
    error="AttributeError",
    match="no_execution",
    reason="there was only `no_tracing`",
    issue="jax-ml/jax@710ae6eaba75",
)


@probe(source="jax-ml/jax@710ae6eaba75", releases="jax>=0.4.33", deviations=[NO_SUCH_CONTEXT])
def nothing_traced_or_executed(env):
    """A program cannot be traced in `jax.no_tracing`, nor run in `jax.no_execution`, from 0.7.2."""
    f = jax.jit(lambda x: 2 * x)
    f(floats(1))
    with jax.no_execution():
        executed = refusal(lambda: f(floats(1)), "no_execution")
    with jax.no_tracing():
        traced = refusal(lambda: f(floats(1, 2)), "no_tracing")
    return Observed([executed, traced], ["RuntimeError: no_execution", "RuntimeError: no_tracing"])


NO_ALGORITHMS = deviation(
    "jax<0.4.36",
    error="ValueError",
    match="F32_F32_F32",
    reason="the option knew precisions, not algorithms",
    issue="jax-ml/jax@03854cfce449",
)


@probe(source="jax-ml/jax@03854cfce449", deviations=[NO_ALGORITHMS])
def algorithm_as_precision(env):
    """`jax.default_matmul_precision` takes the name of a dot algorithm from 0.4.36 on."""
    with jax.default_matmul_precision("F32_F32_F32"):
        result = jnp.dot(np.float32([1, 2]), np.float32([3, 4]))
    return Observed(result, reference=np.float32(11))


NO_CHECK_OF_INDICES = deviation(
    "jax<0.8.2",
    outcome="ok",
    match="no such option",
    reason="the option was added in 0.8.2",
    issue="jax-ml/jax@6832479f0702",
)


@probe(source="jax-ml/jax@6832479f0702", deviations=[NO_CHECK_OF_INDICES])
def check_of_static_indices(env):
    """With `jax_check_static_indices`, a number out of bounds as an index is an IndexError."""
    x = jnp.asarray(np.arange(3))
    if not hasattr(jax.config, "jax_check_static_indices"):
        return Observed("no such option", reference="IndexError: out of bounds")
    jax.config.update("jax_check_static_indices", True)
    return Observed(refusal(lambda: x[5], "out of bounds"), "IndexError: out of bounds")


IN_64_BITS = {
    "sort": lambda x: jnp.sort(x.astype("float64")),
    "solve": lambda x: jnp.linalg.solve(jnp.diag(x.astype("float64")), jnp.ones(2, "float64")),
    "scan": lambda x: jax.lax.scan(
        lambda c, y: (c + y, c), jnp.zeros((), "float64"), x.astype("float64")
    ),
    "fori_loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x.astype("float64")),
    "cond": lambda x: jax.lax.cond(x[0] > 0, lambda y: y / 3, jnp.sin, x.astype("float64")),
    "nonzero": lambda x: jnp.nonzero(x, size=2)[0],
    "argmax": jnp.argmax,
    "uniform": lambda x: jax.random.uniform(jax.random.key(0), x.shape, "float64"),
}
CONSTANTS_OF_32_BITS = deviation(
    "jax<0.7.2",
    params=["sort", "solve", "scan", "fori_loop", "cond", "nonzero"],
    outcome="raised",
    reason="the program was lowered outside of the context, with constants of 32 bits",
    issue="jax-ml/jax#27602",
)
LOWERED_IN_32_BITS = deviation(
    params=["argmax", "uniform"],
    outcome="raised",
    reason="rules of lowering run outside of the context",
    issue="jax-ml/jax#5982",
)


@probe(
    source="jax-ml/jax#27602",
    params=[*IN_64_BITS],
    deviations=[CONSTANTS_OF_32_BITS, LOWERED_IN_32_BITS],
)
def sixty_four_bits_inside_of_jit(env, name):
    """`with jax.enable_x64(True)` within a jitted function computes what it does outside of jit."""

    def f(x):
        with env.compat.enable_x64(True):
            return IN_64_BITS[name](x)

    x = floats(4, 2)
    exact = jax.tree_util.tree_map(np.asarray, f(jnp.asarray(x)))
    return Observed(jax.jit(f)(x), exact)


MADE_IN_64_BITS = {
    "transpose": (lambda x: x[None].T, np.array([[0.0], [1], [2]])),
    "multiply": (lambda x: jax.lax.mul(x, x), np.array([0.0, 1, 4])),
    "vmap": (jax.vmap(lambda element: 2 * element), np.array([0.0, 2, 4])),
    "scan": (
        lambda x: jax.lax.scan(lambda c, y: (c + y, None), np.float32(0), x)[0],
        np.float64(3),
    ),
    "fori_loop": (
        lambda x: jax.lax.fori_loop(0, 2, lambda _, c: c * 2, x),
        np.array([0.0, 4, 8]),
    ),
}
TYPES_OF_THE_CONTEXT = deviation(
    "jax<0.7.2",
    params=["transpose", "multiply"],
    outcome="raised",
    reason="the result was declared with the types of the context, and had those of the array",
    issue="jax-ml/jax#5982",
)
SIZES_OF_THE_CONTEXT = deviation(
    "jax<0.5",
    params=["vmap", "scan"],
    outcome="raised",
    reason="the program was compiled for an array of 32 bits",
    issue="jax-ml/jax#5982",
)
CARRY_OF_32_BITS = deviation(
    params=["fori_loop"],
    outcome="raised",
    reason="2 times an array of 64 bits is of 32 bits outside of the context",
    issue="jax-ml/jax#5982",
)


@probe(
    source="jax-ml/jax#5982",
    params=[*MADE_IN_64_BITS],
    deviations=[TYPES_OF_THE_CONTEXT, SIZES_OF_THE_CONTEXT, CARRY_OF_32_BITS],
)
def used_outside_of_64_bits(env, name):
    """Arrays of 64 bits that are made in `jax.enable_x64(True)` can be used after it."""
    with env.compat.enable_x64(True):
        x = jnp.arange(3.0)
    f, exact = MADE_IN_64_BITS[name]
    return Observed(f(x), exact)


COTANGENT_OF_32_BITS = deviation(
    "jax<0.7.2",
    params=["vjp"],
    outcome="raised",
    reason="the program was compiled for a cotangent of 32 bits",
    issue="jax-ml/jax#5982",
)
TANGENT_OF_32_BITS = [
    deviation(
        "jax<0.5",
        params=["linearize"],
        outcome="raised",
        reason="a tangent of 64 bits was taken for one of 32 bits",
        issue="jax-ml/jax#5982",
    ),
    deviation(
        "jax>=0.7,<0.7.2",
        params=["linearize"],
        outcome="raised",
        reason="the program was compiled for a tangent of 32 bits",
        issue="jax-ml/jax#5982",
    ),
]


@probe(
    source="jax-ml/jax#5982",
    params=["vjp", "linearize"],
    deviations=[COTANGENT_OF_32_BITS, *TANGENT_OF_32_BITS],
)
def derivative_outside_of_64_bits(env, name):
    """A derivative that is made in `jax.enable_x64(True)` can be called after it."""
    with env.compat.enable_x64(True):
        y, derivative = getattr(jax, name)(jnp.sin, jnp.asarray(np.float64(1)))
    (slope,) = jax.tree_util.tree_leaves(derivative(y))
    return Observed((str(slope.dtype), slope), ("float64", np.cos(1.0) * np.sin(1.0)))


ROUNDED_OUTSIDE_OF_64_BITS = {
    "asarray": (jnp.asarray, lambda x: x),
    "copy": (lambda x: x.copy(), lambda x: x),
    "sin": (jnp.sin, np.sin),
    "add_itself": (lambda x: x + x, lambda x: 2 * x),
    "dot": (lambda x: jnp.dot(x, x), lambda x: np.dot(x, x)),
    "grad_of_dot": (jax.grad(lambda x: jnp.dot(x, x)), lambda x: 2 * x),
    "add_number": (lambda x: x + 1, lambda x: x + 1),
    "sum": (jnp.sum, np.sum),
    "astype": (lambda x: x.astype(np.float64), lambda x: x),
}
TRACED_AT_32_BITS = [
    deviation(
        "jax<0.7.2",
        params=["asarray", "copy", "sin", "add_itself", "dot"],
        outcome="ok",
        reason="the program was traced for an array of 32 bits, to which the array was rounded",
        issue="jax-ml/jax#5982",
    ),
    deviation(
        params=["add_number", "sum", "astype"],
        outcome="ok",
        reason="the conversion of dtypes within the operation is limited to 32 bits",
        issue="jax-ml/jax#5982",
    ),
]
GRADIENT_AT_32_BITS = [
    deviation(
        "jax<0.5.1",
        params=["grad_of_dot"],
        outcome="raised",
        reason="the program was compiled for an array of 32 bits",
        issue="jax-ml/jax#5982",
    ),
    deviation(
        "jax>=0.5.1,<0.7.2",
        params=["grad_of_dot"],
        outcome="ok",
        reason="the program was traced for an array of 32 bits, to which the array was rounded",
        issue="jax-ml/jax#5982",
    ),
    deviation(
        "jax>=0.7.2,<0.8",
        params=["grad_of_dot"],
        outcome="raised",
        reason="the program was compiled for an array of 32 bits",
        issue="jax-ml/jax#5982",
    ),
    deviation(
        "jax>=0.8",
        params=["grad_of_dot"],
        outcome="ok",
        reason="the gradient has 64 bits, and values that were rounded to 32 bits",
        issue="jax-ml/jax#5982",
    ),
]


@probe(
    source="jax-ml/jax#5982",
    params=[*ROUNDED_OUTSIDE_OF_64_BITS],
    deviations=[*TRACED_AT_32_BITS, *GRADIENT_AT_32_BITS],
)
def precision_outside_of_64_bits(env, name):
    """Arrays of 64 bits that are made in `jax.enable_x64(True)` keep their precision after it."""
    x = np.array([0.1, 0.7])
    with env.compat.enable_x64(True):
        made = jnp.asarray(x)
    f, exact = ROUNDED_OUTSIDE_OF_64_BITS[name]
    result = np.asarray(f(made))
    return Observed((str(result.dtype), result), ("float64", exact(x)))


LARGE_INTEGERS = {
    "sort": (jnp.sort, np.sort),
    "add_itself": (lambda n: n + n, lambda n: n + n),
    "max": (jnp.max, np.max),
    "argmax": (jnp.argmax, np.argmax),
    "greater": (lambda n: n > 5, lambda n: n > 5),
    "where": (lambda n: jnp.where(n == 5, 0, n), lambda n: np.where(n == 5, 0, n)),
    "cumsum": (jnp.cumsum, np.cumsum),
    "segment_sum": (
        lambda n: jax.ops.segment_sum(n, np.array([0, 0]), 1),
        lambda n: n.sum(keepdims=True),
    ),
}
LOWER_HALVES = [
    deviation(
        "jax<0.5.1",
        params=["sort", "argmax"],
        outcome="ok",
        reason="the program was traced for an array of 32 bits, and took the lower 32 bits",
        issue="jax-ml/jax#5982",
    ),
    deviation(
        "jax<0.7.2",
        params=["add_itself"],
        outcome="ok",
        reason="the program was traced for an array of 32 bits, and took the lower 32 bits",
        issue="jax-ml/jax#5982",
    ),
    deviation(
        params=["max", "greater", "where", "cumsum", "segment_sum"],
        outcome="ok",
        reason="the conversion of dtypes within the operation keeps the lower 32 bits",
        issue="jax-ml/jax#5982",
    ),
]
INDEX_OF_32_BITS = deviation(
    "jax>=0.5.1",
    params=["argmax"],
    outcome="raised",
    reason="the reduction was built for other dtypes than those of the array and of the index",
    issue="jax-ml/jax#5982",
)


@probe(
    source="jax-ml/jax#5982",
    params=[*LARGE_INTEGERS],
    deviations=[*LOWER_HALVES, INDEX_OF_32_BITS],
)
def integers_outside_of_64_bits(env, name):
    """Integers above 2**32 that are made in `jax.enable_x64(True)` can be used after it."""
    numbers = np.array([2**40 + 1, 5])
    with env.compat.enable_x64(True):
        made = jnp.asarray(numbers)
    f, exact = LARGE_INTEGERS[name]
    return Observed(np.asarray(f(made)), exact(numbers))


VALUES_STORED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="the option kept the value",
    issue="jax-ml/jax#20611",
)


@probe(source="jax-ml/jax#20611", deviations=[VALUES_STORED])
def values_of_a_switch(env):
    """A boolean option converts 1, None and "false" to booleans, the text to True."""
    observed = []
    for value in (1, None, "false"):
        jax.config.update("jax_debug_nans", value)
        observed.append(jax.config.jax_debug_nans)
    jax.config.update("jax_debug_nans", False)
    return Observed(repr(observed), repr([True, False, True]))


ENTERED_ONCE = deviation(
    "jax<0.5.3",
    error="AttributeError",
    match="args",
    reason="a context could be entered once",
    issue="jax-ml/jax@256e37af5faf",
)
STAYS_SET = deviation(
    "jax>=0.5.3",
    outcome="ok",
    reason="the context has one memory of the option before, which the second entry replaces",
    issue="jax-ml/jax@256e37af5faf",
)


@probe(source="jax-ml/jax@256e37af5faf", deviations=[ENTERED_ONCE, STAYS_SET])
def context_within_itself(env):
    """A context that is entered twice, one entry within the other, restores the option."""
    precise = jax.default_matmul_precision("float32")
    with precise, precise:
        pass
    return Observed(repr(jax.config.jax_default_matmul_precision), reference="None")
