"""Parameters of operations that are equal and yet differ, such as 1 and 1.0, or 0.0 and -0.0.

From 0.7.0 on JAX lowers an operation once for equal parameters and types, and calls the rules of a
primitive as seldom.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import mlir

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import find, floats, new_primitive

defaults(platforms=("cpu",))

FIRST_CALL_IS_LOWERED = deviation(
    "jax>=0.7",
    outcome="ok",
    reason="equal attributes share a lowering: that of the first call",
    issue="jax-ml/jax@618460e820ee",
)
ATTRIBUTES = {
    "int_and_float": {"1 : i32": np.int32(1), "1.000000e+00 : f32": np.float32(1)},
    "bool_and_int": {"true": True, "1 : i64": 1},
    "signs": {"0.000000e+00 : f32": np.float32(0), "-0.000000e+00 : f32": np.float32(-0.0)},
}


@probe(
    source="jax-ml/jax@618460e820ee",
    releases="jax>=0.5",
    params=[*ATTRIBUTES],
    deviations=[FIRST_CALL_IS_LOWERED],
)
def attributes_of_equal_value(env, name):
    """Two calls of a foreign function in a program have attributes of different types."""
    function = jax.ffi.ffi_call("function", jax.ShapeDtypeStruct((), np.float32))
    attributes = ATTRIBUTES[name]
    lowered = jax.jit(lambda x: [function(x, a=a) for a in attributes.values()]).lower(floats(1))
    calls = [line for line in lowered.as_text().splitlines() if "custom_call" in line]
    found = [line.partition("{a = ")[2].partition("}")[0] for line in calls]
    return Observed(found, reference=[*attributes])


def make_primitive(shape_of, lower):
    """Return a primitive with an abstract evaluation rule and a rule for lowering.

    Args:
        shape_of: Function of the abstract argument and the parameters, with the abstract result.
        lower: Function of the argument and the parameters, with the result.
    """
    primitive = new_primitive("own")
    primitive.def_abstract_eval(shape_of)
    mlir.register_lowering(primitive, mlir.lower_fun(lower, multiple_results=False))
    return primitive


def keep_type(x, **_):
    """Return the type of an argument: the result has the same."""
    return find("jax.core:ShapedArray")(x.shape, x.dtype)


DTYPES = {int: np.int32, float: np.float32, bool: np.bool_}
VALUES = {"types": (1, 1.0, True), "signs": (0.0, -0.0)}
FIRST_RULE_COUNTS = deviation(
    "jax>=0.7",
    outcome="ok",
    reason="equal parameters share the results of the rules",
    issue="jax-ml/jax@9cf81e4d12f0",
)


@probe(source="jax-ml/jax@9cf81e4d12f0", params=[*VALUES], deviations=[FIRST_RULE_COUNTS])
def parameters_of_equal_value(env, name):
    """A primitive of its own makes numbers of the types of its parameters."""
    shaped = find("jax.core:ShapedArray")
    number = make_primitive(
        lambda _, *, value: shaped((), np.dtype(DTYPES[type(value)])),
        lambda _, *, value: jnp.asarray(value, DTYPES[type(value)]),
    )
    values = VALUES[name]
    numbers = jax.jit(lambda x: [number.bind(x, value=value) for value in values])(floats(1))
    return Observed([repr(np.asarray(n).item()) for n in numbers], [repr(v) for v in values])


HASH_REQUIRED = deviation(
    "jax>=0.7",
    error="TypeError",
    match="was not hashable",
    reason="parameters are keys of caches",
    issue="jax-ml/jax@9cf81e4d12f0",
)


@probe(source="jax-ml/jax@9cf81e4d12f0", deviations=[HASH_REQUIRED])
def array_as_a_parameter(env):
    """A parameter of a primitive of its own may be a NumPy array, up to 0.6.2."""
    scaled = make_primitive(keep_type, lambda x, *, by: x * by)
    factors = floats(2, 3)
    f = jax.jit(lambda x: scaled.bind(x, by=factors))
    return Observed(f(floats(4, 5)), reference=floats(8, 15))


ONE_NUMBER = deviation(
    "jax>=0.7",
    outcome="ok",
    reason="the rule is called once for equal operations of a program",
    issue="jax-ml/jax@618460e820ee",
)


@probe(source="jax-ml/jax@618460e820ee", deviations=[ONE_NUMBER])
def number_of_each_operation(env):
    """A lowering rule that counts its calls adds another number in each operation."""
    numbers = itertools.count(1)
    counted = make_primitive(keep_type, lambda x: x + next(numbers))
    results = jax.jit(lambda x: [counted.bind(x), counted.bind(x), counted.bind(x)])(floats(0))
    return Observed(results, reference=[np.float32(1), np.float32(2), np.float32(3)])


NOTHING_RETURNED = deviation(
    "jax>=0.7",
    outcome="ok",
    reason="`register_lowering` returns nothing",
    issue="jax-ml/jax@618460e820ee",
)


@probe(source="jax-ml/jax@618460e820ee", deviations=[NOTHING_RETURNED])
def rule_by_decorator(env):
    """`mlir.register_lowering` as a decorator returns the rule, up to 0.6.2."""
    primitive = new_primitive("own")
    rule = mlir.register_lowering(primitive, lambda _, x: [x])
    return Observed("rule" if callable(rule) else repr(rule), reference="rule")
