"""`ffi_call`: LAPACK handlers that jaxlib registers on a CPU, called from user code.

`lapack_spotrf_ffi` factorises a matrix in Fortran order: its lower triangle is the upper one of
the array. The call is `jax.ffi.ffi_call(target, types)(*args)` from 0.5.0.
"""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import find, outcome

defaults(platforms=("cpu",), releases="jax>=0.4.31")

LOWER = np.uint8(ord("L"))
MATRIX = np.array([[4, 2], [2, 5]], np.float32)
FACTOR = np.array([[2, 1], [0, 2]], np.float32)


def call(target, types, *args, **options):
    """Call a foreign function; arguments were passed with the types up to 0.4.38.

    Args:
        target: Name of the function.
        types: Types of its results.
        args: Arrays.
        options: Attributes of the function, and `vmap_method`.
    """
    ffi_call = find("jax.ffi:ffi_call", "jax.extend.ffi:ffi_call")
    if "args" in inspect.signature(ffi_call).parameters:
        vectorized = {"vectorized": True} if options.pop("vmap_method", None) else {}
        return ffi_call(target, types, *args, **vectorized, **options)
    method = {k: options.pop(k) for k in ("vmap_method", "has_side_effect") if k in options}
    return ffi_call(target, types, **method)(*args, **options)


def factorize(x, **options):
    """Return the Cholesky factor of a matrix, and LAPACK's code of success."""
    batch = x.shape[:-2]
    types = (jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct(batch, np.int32))
    y, info = call("lapack_spotrf_ffi", types, x, uplo=LOWER, **options)
    return jnp.triu(y), info


def load_lapack():
    """Run a factorisation of JAX, which finds LAPACK in SciPy for the handlers."""
    jax.block_until_ready(jnp.linalg.cholesky(MATRIX))


@probe(source="jax-ml/jax@e9b087d3a835")
def foreign_call(env):
    """A foreign call gives the Cholesky factor, also under jit and outside."""
    load_lapack()
    y, info = jax.jit(factorize)(MATRIX)
    outside, _ = factorize(MATRIX)
    return Observed((y, info, outside), (FACTOR, np.int32(0), FACTOR))


ONE_BY_ONE = deviation(
    "jax<0.6",
    params=["none"],
    outcome="ok",
    reason="without a method, the calls ran one by one, with a DeprecationWarning",
    issue="jax-ml/jax@1b1bd071bce9",
)


@probe(
    releases="jax>=0.4.34",
    source="jax-ml/jax@1d27d420acdb",
    params=["none", "sequential", "broadcast_all", "expand_dims"],
    deviations=[ONE_BY_ONE],
)
def foreign_call_in_lanes(env, name):
    """`vmap_method` says how a foreign call is batched; without it vmap is an error."""
    load_lapack()
    x = np.stack([MATRIX, 4 * MATRIX])
    options = {} if name == "none" else {"vmap_method": name}
    f = jax.jit(jax.vmap(lambda x: factorize(x, **options)[0]))
    if name == "none":
        return Observed(outcome(lambda: f(x), "vmap_method"), "NotImplementedError: vmap_method")
    return Observed(f(x), np.stack([FACTOR, 2 * FACTOR]))


@probe(source="jax-ml/jax@e9b087d3a835")
def foreign_call_refused(env):
    """A derivative, an unknown target and a wrong attribute are errors."""
    load_lapack()
    struct = jax.ShapeDtypeStruct((2, 2), np.float32)
    wrong = (struct, jax.ShapeDtypeStruct((), np.float32))
    observed = {
        "grad": outcome(
            lambda: jax.grad(lambda x: factorize(x)[0].sum())(MATRIX), "cannot be differentiated"
        ),
        "unknown": outcome(lambda: call("no_such_function", struct, MATRIX), "no_such_function"),
        "attribute": outcome(
            lambda: call("lapack_spotrf_ffi", wrong, MATRIX, uplo=np.int32(76)), "uplo"
        ),
        "dtype": outcome(lambda: call("lapack_spotrf_ffi", wrong, MATRIX, uplo=LOWER), "dtype"),
    }
    expected = {
        "grad": "ValueError: cannot be differentiated",
        "unknown": "JaxRuntimeError: no_such_function",
        "attribute": "JaxRuntimeError",
        "dtype": "JaxRuntimeError: dtype",
    }
    return Observed(observed, expected)


NO_RULE_FOR_FOREIGN_CALLS = deviation(
    "jax<0.4.36",
    params=["check_on"],
    error="NotImplementedError",
    match="No replication rule for ffi_call",
    reason="the replication check had no rule for foreign calls",
    issue="jax-ml/jax@41a0493e5615",
)


@probe(
    source="jax-ml/jax@cd09b546f97a",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_FOREIGN_CALLS],
)
def foreign_call_in_shards(env, check):
    """A foreign call in shard_map runs in each shard."""
    load_lapack()
    x = np.stack([MATRIX * s * s for s in range(1, 5)])
    f = env.compat.shard_map(
        lambda x: factorize(x[0])[0][None],
        mesh=env.mesh(4, "x"),
        in_specs=P("x"),
        out_specs=P("x"),
        check=check,
    )
    return Observed(jax.jit(f)(x), np.stack([FACTOR * s for s in range(1, 5)]))


BYTES_OF_ONE = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="an array of booleans became one of bytes, all of them equal to the first",
    issue="jax-ml/jax@563cd58e44d7",
)


def attributes_of(types, **attributes):
    """Return the line of the lowered program that calls a function without arguments."""
    lowered = jax.jit(lambda: call("function", types, **attributes)).lower().as_text()
    return next(line for line in lowered.splitlines() if "custom_call" in line)


@probe(source="jax-ml/jax@563cd58e44d7", releases="jax>=0.5", deviations=[BYTES_OF_ONE])
def array_of_booleans(env):
    """An attribute that is a NumPy array of booleans reaches the function with its elements."""
    line = attributes_of(jax.ShapeDtypeStruct((), np.float32), mask=np.array([True, False]))
    attribute = line.partition("mask = ")[2].partition("}")[0]
    return Observed(attribute, "dense<[true, false]> : tensor<2xi1>")


NARROWED = deviation(
    "jax>=0.8.2,<0.9",
    outcome="ok",
    reason="the type of a result was converted to that of 32-bit mode",
    issue="jax-ml/jax#34047",
)


@probe(source="jax-ml/jax#34047", releases="jax>=0.5", deviations=[NARROWED])
def result_of_64_bits(env):
    """A foreign function may return float64 in 32-bit mode."""
    line = attributes_of(jax.ShapeDtypeStruct((3,), np.float64))
    return Observed(line.rpartition("-> ")[2].strip(), "tensor<3xf64>")


KEY_WITHOUT_ITS_WORDS = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="incorrect layout",
    reason="the layout was that of the type of the key, which has an axis less than its words",
    issue="jax-ml/jax@ad44895bf9fa",
)


@probe(source="jax-ml/jax@ad44895bf9fa", releases="jax>=0.5", deviations=[KEY_WITHOUT_ITS_WORDS])
def key_as_an_operand(env):
    """A foreign function receives a typed key as its two words."""
    lowered = jax.jit(lambda key: call("any_target", (), key, has_side_effect=True)).lower(
        jax.random.key(0)
    )
    line = next(s for s in lowered.as_text().splitlines() if "@any_target" in s)
    return Observed("(tensor<2xui32>)" in line, True)


TYPE_READ_AS_AN_ARRAY = deviation(
    "jax>=0.8.2,<0.9",
    outcome="ok",
    reason="a type was read as an array is, without a check of its attributes",
    issue="jax-ml/jax@cd09b546f97a",
)


@probe(source="jax-ml/jax@783fb5d9d2e6", releases="jax>=0.6", deviations=[TYPE_READ_AS_AN_ARRAY])
def result_type_without_a_shape(env):
    """A result that is declared as None is refused with its position."""
    outcome = refusal(lambda: jax.ffi.ffi_call("any_target", None), "at position 0")
    return Observed(outcome, "ValueError: at position 0")
