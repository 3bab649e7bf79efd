"""How `jit` and other functions are called, and what counts as a pytree, a key or an array.

Removed spellings of a call raise an error. The values that a transformation passes to the user's
function changed silently: constants that are not a `numpy.ndarray` (0.7.2), Python numbers that
`vjp` returns as another type (0.8.0), tracers that are not a subclass of `jax.Array` (0.8.2).
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance import kit
from conformance.kit import Observed, deviation, probe

from ._helpers import ROWS, describe_refusal, expect_refusal, ignore_warnings

# By its full name: a case of this file is called `defaults`.
kit.defaults(platforms=("cpu",))


def power(x, n):
    """Return x to the power of n, computed by a Python loop."""
    return functools.reduce(lambda a, _: a * x, range(n), 1.0)


JITS = {
    "fun_by_keyword": lambda: jax.jit(fun=power, static_argnames="n")(ROWS, n=3),
    "all_by_position": lambda: jax.jit(lambda x: power(x, 3), None)(ROWS),
    "factory": lambda: jax.jit(static_argnames="n")(power)(ROWS, n=3),
}


FUN_IS_POSITIONAL_ONLY = deviation(
    "jax>=0.7",
    params=("fun_by_keyword",),
    error="TypeError",
    match="positional-only arguments passed as keyword arguments: 'fun'",
    reason="the function is positional-only",
    issue="jax-ml/jax@5e2afe6e7987",
)
OPTIONS_ARE_KEYWORD_ONLY = deviation(
    "jax>=0.7,<0.8.1",
    params=("all_by_position",),
    error="TypeError",
    match="takes 1 positional argument but 2 were given",
    reason="all options are keyword-only",
    issue="jax-ml/jax@5e2afe6e7987",
)
OPTIONS_ARE_KEYWORD_ONLY_FROM_0_8_1 = deviation(
    "jax>=0.8.1",
    params=("all_by_position",),
    error="TypeError",
    match="takes from 0 to 1 positional arguments but 2 were given",
    reason="all options are keyword-only",
    issue="jax-ml/jax@5e2afe6e7987",
)
JIT_REQUIRED_A_FUNCTION = deviation(
    "jax<0.8.1",
    params=("factory",),
    error="TypeError",
    match="missing 1 required positional argument: 'fun'",
    reason="jit without a function was added in 0.8.1",
    issue="jax-ml/jax@3af51a593dcb",
)


@probe(
    source="jax-ml/jax@ceca6ec1fc5b",
    params={
        "fun_by_keyword": {"how": "fun_by_keyword"},
        "all_by_position": {"how": "all_by_position"},
        "factory": {"how": "factory"},
    },
    deviations=[
        FUN_IS_POSITIONAL_ONLY,
        OPTIONS_ARE_KEYWORD_ONLY,
        OPTIONS_ARE_KEYWORD_ONLY_FROM_0_8_1,
        JIT_REQUIRED_A_FUNCTION,
    ],
)
def call_of_jit(env, how):
    """Two of three ways to call `jit` are TypeErrors from 0.7.0; the third requires 0.8.1.

    The two pass the function by keyword, or options by position. The third is the bare decorator
    with options.
    """
    with ignore_warnings():
        result = JITS[how]()
    return Observed(result, ROWS.astype(np.float64) ** 3)


@probe(source="jax-ml/jax@ceca6ec1fc5b")
def call_of_jit_on_every_release(env):
    """`jit` with a positional function and options by keyword works on every release.

    It also works as a decorator, with `functools.partial`.
    """
    results = {
        "keywords": jax.jit(power, static_argnames="n")(ROWS, n=3),
        "partial": functools.partial(jax.jit, static_argnames="n")(power)(ROWS, n=3),
    }
    return Observed(results, dict.fromkeys(results, ROWS.astype(np.float64) ** 3))


ABSTRACTED_AXES_REQUIRED_A_FLAG = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="jit accepted the keyword, but required a flag",
    issue="jax-ml/jax@75697ef8680b",
)


@probe(source="jax-ml/jax@75697ef8680b", deviations=[ABSTRACTED_AXES_REQUIRED_A_FLAG])
def abstracted_axes(env):
    """`jit(f, abstracted_axes=...)` is an unknown keyword from 0.8.2: dynamic shapes are removed.

    For one program over many sizes, use `jax.export` with symbolic shapes.
    """
    outcome = describe_refusal(
        lambda: jax.jit(jnp.sum, abstracted_axes={0: "n"}), "abstracted_axes"
    )
    flag = hasattr(jax.config, "jax_dynamic_shapes")
    return Observed({**outcome, "flag": flag}, {**expect_refusal("TypeError"), "flag": False})


PARAMETERS_ALONE = deviation(
    "jax>=0.9.2",
    error="ValueError",
    match="too many values to unpack",
    reason="get_bind_params returns the parameters, not functions and parameters",
    issue="jax-ml/jax@c43f0a0fae3a",
)


@probe(source="jax-ml/jax@c43f0a0fae3a", deviations=[PARAMETERS_ALONE])
def equation_bound_again(env):
    """Code that evaluates a jaxpr by binding its equations raises from 0.9.2.

    It takes functions and parameters from `Primitive.get_bind_params`, which has returned the
    parameters alone since.
    """
    jaxpr = jax.make_jaxpr(jax.jit(lambda x: 2 * jnp.sin(x)))(ROWS)
    (equation,) = jaxpr.eqns
    functions, parameters = equation.primitive.get_bind_params(equation.params)
    (result,) = equation.primitive.bind(*functions, ROWS, **parameters)
    return Observed(result, 2 * np.sin(ROWS.astype(np.float64)))


TRACER_HASHED_BY_IDENTITY = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="tracers were hashed by identity, with a FutureWarning",
    issue="jax-ml/jax@095bb0e742e0",
)


@probe(source="jax-ml/jax@095bb0e742e0", deviations=[TRACER_HASHED_BY_IDENTITY])
def hash_of_a_tracer(env):
    """A tracer in a set or as a dictionary key is a TypeError from 0.4.36, like an array.

    Up to 0.4.35 a cache with values as keys worked under jit, but never found an entry again.
    """
    traced = describe_refusal(lambda: jax.jit(lambda x: len({x: 1}) * x)(1.0), "unhashable type")
    array = describe_refusal(lambda: hash(jnp.ones(2)), "unhashable type")
    expected = expect_refusal("TypeError")
    return Observed({"traced": traced, "array": array}, {"traced": expected, "array": expected})


NONE_MATCHED_ANY_SUBTREE = deviation(
    "jax<0.4.34",
    params=("by_default",),
    outcome="ok",
    reason="None was a prefix of any subtree, and dropped it with a warning",
    issue="jax-ml/jax@255c30303d32",
)


@probe(
    source="jax-ml/jax@255c30303d32",
    params={"by_default": {"as_leaf": False}, "as_leaf": {"as_leaf": True}},
    deviations=[NONE_MATCHED_ANY_SUBTREE],
)
def none_against_a_leaf(env, as_leaf):
    """`tree.map` of None and an array is a ValueError from 0.4.34; before, the array was dropped.

    This affects optional gradients, for example. `is_leaf=lambda x: x is None` passes the None to
    the function.
    """
    old, new = {"w": None}, {"w": np.float32(2)}
    keep = lambda a, b: b if a is None else a  # noqa: E731 - short
    if not as_leaf:
        outcome = describe_refusal(lambda: jax.tree.map(keep, old, new), "None")
        return Observed(outcome, expect_refusal("ValueError"))
    return Observed(jax.tree.map(keep, old, new, is_leaf=lambda x: x is None), new)


ITERABLES = {
    "dict_values": {"a": 1.0, "b": 2.0}.values,
    "generator": lambda: (x for x in (1.0, 2.0)),
    "zip": lambda: zip((1.0,), (2.0,)),  # noqa: B905 - as users write it
    "list": lambda: [1.0, 2.0],
}


ITERABLES_WARN = deviation(
    "jax>=0.10.1",
    params=("dict_values", "generator", "zip"),
    outcome="ok",
    reason="the iterable is still a leaf, with a DeprecationWarning",
    issue="jax-ml/jax@ec52eb2f2a7a",
)


@probe(
    source="jax-ml/jax@ec52eb2f2a7a",
    params={
        "dict_values": {"what": "dict_values"},
        "generator": {"what": "generator"},
        "zip": {"what": "zip"},
        "list": {"what": "list"},
    },
    deviations=[ITERABLES_WARN],
)
def iterables_as_leaves(env, what):
    """`tree.leaves` takes `d.values()` as one leaf, like any object that is not a pytree.

    It warns from 0.10.1. For the members, write `list(...)`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        leaves = len(jax.tree_util.tree_leaves(ITERABLES[what]()))
    warned = any(issubclass(warning.category, DeprecationWarning) for warning in caught)
    expected = {"leaves": 2 if what == "list" else 1, "warned": False}
    return Observed({"leaves": leaves, "warned": warned}, expected)


CONSTANTS_OF_A_PRIVATE_TYPE = deviation(
    "jax>=0.7.2,<0.9.2",
    outcome="ok",
    reason="constants have a private type that only resembles an ndarray",
    issue="jax-ml/jax@00538d0a6a33",
)


@probe(source="jax-ml/jax@00538d0a6a33", deviations=[CONSTANTS_OF_A_PRIVATE_TYPE])
def constants_are_ndarrays(env):
    """`isinstance(x, np.ndarray)` of a constant in a custom rule is False from 0.7.2 to 0.9.1.

    A rule that branches on it silently takes the other branch. Call `np.asarray(x)` first.
    """
    ndarrays = []
    scaled = jax.custom_jvp(lambda c, x: c * x)

    @scaled.defjvp
    def rule(primals, tangents):
        ndarrays.append(isinstance(primals[0], (np.ndarray, jax.core.Tracer)))
        return primals[0] * primals[1], primals[0] * tangents[1]

    constants = jax.make_jaxpr(lambda x: x + ROWS)(1.0).consts
    ndarrays += [isinstance(constant, np.ndarray) for constant in constants]
    slope = jax.grad(lambda x: scaled(ROWS, x).sum())(2.0)
    return Observed(
        {"ndarrays": all(ndarrays), "slope": slope}, {"ndarrays": True, "slope": np.float64(15)}
    )


FLOAT_BECAME_A_SUBCLASS = deviation(
    "jax>=0.8",
    outcome="ok",
    reason="vjp takes a Python float and returns a private subclass",
    issue="jax-ml/jax@cb4fcd8b4d4a",
)


@probe(source="jax-ml/jax@cb4fcd8b4d4a", deviations=[FLOAT_BECAME_A_SUBCLASS])
def python_number_through_vjp(env):
    """`vjp` of the identity at a Python float gives a float up to 0.7.2, a `TypedFloat` from 0.8.0.

    A `TypedFloat` is a float, but its type is not `float` itself, and its repr is not a number.
    """
    value, _ = jax.vjp(lambda x: x, 1.5)
    types = {"exactly_float": type(value) is float, "float": isinstance(value, float)}
    return Observed(
        {**types, "value": float(value)}, {"exactly_float": True, "float": True, "value": 1.5}
    )


TRACER_WAS_A_SUBCLASS = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="Tracer was a subclass of Array",
    issue="jax-ml/jax#11075",
)


@probe(source="jax-ml/jax@9d40174f7273", deviations=[TRACER_WAS_A_SUBCLASS])
def tracer_is_an_array(env):
    """`isinstance(tracer, jax.Array)` stays True; `issubclass(Tracer, jax.Array)` ends with 0.8.2.

    Dispatch on classes (`functools.singledispatch`) no longer finds the rule for arrays.
    """
    rule = functools.singledispatch(lambda _: "object")
    rule.register(jax.Array, lambda _: "array")
    traced = []
    jax.jit(lambda x: traced.append((isinstance(x, jax.Array), rule(x))))(ROWS)
    observed = {"instance": traced[0][0], "dispatched": traced[0][1]}
    return Observed(
        {**observed, "subclass": issubclass(jax.core.Tracer, jax.Array)},
        {"instance": True, "dispatched": "object", "subclass": False},
    )


class Wrapped:
    """A wrapper of an array, like the parameter classes of libraries."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


PROTOCOL = {
    "sin": jnp.sin,
    "lax": jax.lax.sin,
    "jit": jax.jit(lambda x: x * 2),
    "grad": jax.grad(lambda x: (x**2).sum()),
    "device_put": jax.device_put,
}
EXACT = {"sin": np.sin, "lax": np.sin, "device_put": lambda x: x}


NO_IMPLICIT_CONVERSION = deviation(
    "jax>=0.8",
    error="ValueError",
    match="Triggering __jax_array__",
    reason="jax no longer converts its arguments with __jax_array__, deprecated since 0.6.1",
    issue="jax-ml/jax@395849bd7a1e",
)


@probe(
    source="jax-ml/jax@395849bd7a1e",
    params={
        "sin": {"use": "sin"},
        "lax": {"use": "lax"},
        "jit": {"use": "jit"},
        "grad": {"use": "grad"},
        "device_put": {"use": "device_put"},
    },
    deviations=[NO_IMPLICIT_CONVERSION],
)
def object_with_jax_array(env, use):
    """Most functions refuse an object with `__jax_array__` as an argument from 0.8.0.

    `jnp.asarray(x)` converts it on every release; do that before jit, grad or device_put.
    """
    with ignore_warnings():
        value = PROTOCOL[use](Wrapped(ROWS))
    return Observed(value, EXACT.get(use, lambda x: 2 * x)(ROWS.astype(np.float64)))


@probe(source="jax-ml/jax@395849bd7a1e")
def object_that_is_converted(env):
    """`jnp.asarray` and `array + x` accept an object with `__jax_array__` on every release."""
    given, exact = Wrapped(ROWS), ROWS.astype(np.float64)
    with ignore_warnings():
        results = {
            "add": jnp.ones(6) + given,
            "asarray": jnp.asarray(given),
            "jit_of_asarray": jax.jit(lambda x: x * 2)(jnp.asarray(given)),
        }
    return Observed(results, {"add": 1 + exact, "asarray": exact, "jit_of_asarray": 2 * exact})


def assign_shape(struct):
    """Assign the shape of a struct, and return its shape after that."""
    struct.shape = (2,)
    return struct.shape


STRUCTS = {
    "assigned": lambda: assign_shape(jax.ShapeDtypeStruct((1,), np.float32)),
    "replaced": lambda: jax.ShapeDtypeStruct((2,), np.float32).shape,
    "named_shape": lambda: jax.ShapeDtypeStruct((2,), np.float32, named_shape={}).shape,
    "vma": lambda: jax.ShapeDtypeStruct((2,), np.float32, vma=frozenset()).shape,
    "update": lambda: jax.ShapeDtypeStruct((1,), np.float32).update(shape=(2,)).shape,
}


STRUCTS_ARE_IMMUTABLE = deviation(
    "jax>=0.6.1",
    params=("assigned",),
    error="RuntimeError",
    match="Cannot reassign attributes .shape.",
    reason="structs are immutable",
    issue="jax-ml/jax@0605bc4a5dbe",
)
NAMED_SHAPE_REMOVED = deviation(
    "jax>=0.4.34",
    params=("named_shape",),
    error="TypeError",
    match="named_shape",
    reason="named_shape was for xmap, which had been removed",
    issue="jax-ml/jax@b886bd730037",
)
NO_UPDATE_YET = deviation(
    "jax<0.6.1",
    params=("update",),
    error="AttributeError",
    match="no attribute 'update'",
    reason="update was added when structs became immutable",
    issue="jax-ml/jax@e194d532a469",
)
NO_VMA_YET = deviation(
    "jax<0.6.2",
    params=("vma",),
    error="TypeError",
    match="vma",
    reason="vma did not exist yet",
    issue="jax-ml/jax@bdd635a65b35",
)
VMA_KEYWORD_REPLACED = deviation(
    "jax>=0.10",
    params=("vma",),
    error="TypeError",
    match="vma",
    reason="vma was replaced by manual_axis_type",
    issue="jax-ml/jax@6735ea09d34e",
)


@probe(
    source="jax-ml/jax@0605bc4a5dbe",
    params={
        "assigned": {"how": "assigned"},
        "named_shape": {"how": "named_shape"},
        "replaced": {"how": "replaced"},
        "update": {"how": "update"},
        "vma": {"how": "vma"},
    },
    deviations=[
        STRUCTS_ARE_IMMUTABLE,
        NAMED_SHAPE_REMOVED,
        NO_UPDATE_YET,
        NO_VMA_YET,
        VMA_KEYWORD_REPLACED,
    ],
)
def shape_of_a_struct(env, how):
    """Of five ways to a ShapeDtypeStruct of shape (2,), making a new one works on every release.

    Assignment works before 0.6.1, and `update` from 0.6.1; `named_shape=` works before 0.4.34, and
    `vma=` from 0.6.2 to 0.9.2.
    """
    return Observed(list(STRUCTS[how]()), [2])


NONE_ACCEPTED_IN_A_SHAPE = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="None was accepted in the shape, and refused where the struct was used",
    issue="jax-ml/jax@04f9d460400d",
)


@probe(source="jax-ml/jax@04f9d460400d", deviations=[NONE_ACCEPTED_IN_A_SHAPE])
def struct_of_unknown_size(env):
    """`ShapeDtypeStruct((None, 3), ...)` is a ValueError from 0.11.1; it was accepted as a note."""
    return Observed(
        describe_refusal(lambda: jax.ShapeDtypeStruct((None, 3), np.float32), "None"),
        expect_refusal("ValueError"),
    )


EIG_RETURNED_A_TUPLE = deviation(
    "jax<0.8",
    params=("by_name",),
    error="AttributeError",
    match="'tuple' object has no attribute 'eigenvalues'",
    reason="the result was a plain tuple",
    issue="jax-ml/jax@f3b4d7b57e76",
)


@probe(
    source="jax-ml/jax@f3b4d7b57e76",
    params={"by_name": {"named": True}, "unpacked": {"named": False}},
    deviations=[EIG_RETURNED_A_TUPLE],
)
def result_of_eig(env, named):
    """`jnp.linalg.eig` returns a named tuple from 0.8.0, as NumPy does; before, unpack it."""
    result = jnp.linalg.eig(np.float32([[2, 0], [0, 3]]))
    values = result.eigenvalues if named else result[0]
    return Observed(np.sort(np.asarray(values).real), np.float64([2, 3]))


@probe(
    source="jax-ml/jax@e1b62cede160",
    records="jax decides which options exist",
    params={
        "jax_collectives_common_channel_id": {"option": "jax_collectives_common_channel_id"},
        "jax_cpu_enable_gloo_collectives": {"option": "jax_cpu_enable_gloo_collectives"},
        "jax_data_dependent_tracing_fallback": {"option": "jax_data_dependent_tracing_fallback"},
        "jax_dynamic_shapes": {"option": "jax_dynamic_shapes"},
        "jax_eager_pmap": {"option": "jax_eager_pmap"},
        "jax_enable_memories": {"option": "jax_enable_memories"},
        "jax_pmap_no_rank_reduction": {"option": "jax_pmap_no_rank_reduction"},
        "jax_pmap_shmap_merge": {"option": "jax_pmap_shmap_merge"},
        "jax_spmd_mode": {"option": "jax_spmd_mode"},
    },
)
def config_option(env, option):
    """Setting a configuration option that a release does not have is an AttributeError.

    Most options exist for a few releases, around the change that they defer. The case sets an
    option to its default. There is no right answer to compare with, only dates.
    """
    default = getattr(jax.config, option, None)
    outcome = describe_refusal(
        lambda: jax.config.update(option, default), "Unrecognized config option"
    )
    return {"default": str(default), **outcome}


DEFAULTS = (
    "jax_default_prng_impl",
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
    "jax_threefry_partitionable",
    "jax_use_direct_linearize",
    "jax_use_shardy_partitioner",
)


@probe(source="jax-ml/jax#18480", records="jax decides the defaults")
def defaults(env):
    """Defaults that decide values: the random bits, the partitioner, and linearization.

    A random stream, a sharding or a jaxpr that changed with an upgrade is often due to these
    defaults: partitionable threefry in 0.5.0, Shardy and direct linearization in 0.7.0. There is no
    right answer to compare with.
    """
    return {name: str(getattr(jax.config, name, None)) for name in DEFAULTS}


NO_DEVICE_COUNT_OPTION = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the option did not exist yet",
    issue="jax-ml/jax@51b9fe3010dc",
)
LATE_DEVICE_COUNT_IGNORED = deviation(
    "jax>=0.5,<0.5.3",
    outcome="ok",
    reason="the option was accepted, and had no effect",
    issue="jax-ml/jax@e1b62cede160",
)


@probe(
    source="jax-ml/jax@e1b62cede160", deviations=[NO_DEVICE_COUNT_OPTION, LATE_DEVICE_COUNT_IGNORED]
)
def device_count_after_the_start(env):
    """Setting `jax_num_cpu_devices` too late has no effect in 0.5.0 to 0.5.2, then is refused."""
    before = len(env.devices)  # starts the backend
    outcome = describe_refusal(
        lambda: jax.config.update("jax_num_cpu_devices", before + 1), "before backends are initial"
    )
    grown = len(jax.devices()) - before
    return Observed({**outcome, "grown": grown}, {**expect_refusal("RuntimeError"), "grown": 0})


def define_layer():
    """Return a new dataclass: each can be registered once in a process."""

    @dataclasses.dataclass
    class Layer:
        """An array, and a static number."""

        kernel: Any
        size: int = dataclasses.field(default=3, metadata={"static": True})

    return Layer


REGISTRATIONS = {
    "declared": {},
    "named": {"data_fields": ["kernel"], "meta_fields": ["size"]},
    "one_missing": {"data_fields": ["kernel"], "meta_fields": []},
    "one_too_many": {"data_fields": ["kernel", "bias"], "meta_fields": ["size"]},
}


def register(**fields):
    """Register a dataclass, and return its number of leaves and whether its number is static."""
    layer = jax.tree_util.register_dataclass(define_layer(), **fields)
    leaves, tree = jax.tree_util.tree_flatten(layer(1))
    return {"leaves": len(leaves), "static": "(3,)" in str(tree)}


FIELDS_HAD_TO_BE_NAMED = deviation(
    "jax<0.4.36",
    params=("declared",),
    error="TypeError",
    match="missing 2 required positional arguments",
    reason="fields had to be named",
    issue="jax-ml/jax@1af3b01c1c04",
)


@probe(
    source="jax-ml/jax@1af3b01c1c04",
    params={"declared": {"how": "declared"}, "named": {"how": "named"}},
    deviations=[FIELDS_HAD_TO_BE_NAMED],
)
def fields_of_a_dataclass(env, how):
    """`register_dataclass` reads `metadata={"static": True}` of a field since 0.4.36."""
    return Observed(register(**REGISTRATIONS[how]), {"leaves": 1, "static": True})


FIELDS_NOT_CHECKED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the fields were not checked: a field was lost, or failed later",
    issue="jax-ml/jax@02bb884357e9",
)


@probe(
    source="jax-ml/jax@02bb884357e9",
    params={"one_missing": {"how": "one_missing"}, "one_too_many": {"how": "one_too_many"}},
    deviations=[FIELDS_NOT_CHECKED],
)
def fields_that_do_not_fit(env, how):
    """Registering a dataclass with a field too few or too many is a ValueError since 0.4.33.

    Before, a field that was left out silently returned to its default. The changelog lists the
    change under 0.4.32, which was withdrawn.
    """
    return Observed(
        describe_refusal(lambda: register(**REGISTRATIONS[how]), "all dataclass fields"),
        expect_refusal("ValueError"),
    )


OTHER_FIELDS_HAD_TO_BE_NAMED = deviation(
    "jax<0.4.36",
    error="TypeError",
    match="missing 2 required positional arguments",
    reason="fields had to be named",
    issue="jax-ml/jax@1af3b01c1c04",
)
DROPPED_FIELD_KEPT = deviation(
    "jax>=0.4.36,<0.10",
    outcome="ok",
    reason="the field to drop was silently kept",
    issue="jax-ml/jax@f892f6bff63d",
)
DROPPED_FIELD_STILL_READ = deviation(
    "jax>=0.10,<0.11.1",
    error="ValueError",
    match="Unexpected fields: {'size'}",
    reason="all fields were read from the class, including those to drop",
    issue="jax-ml/jax@eddef19ce112",
)


@probe(
    source="jax-ml/jax@eddef19ce112",
    releases="jax>=0.4.33",
    deviations=[OTHER_FIELDS_HAD_TO_BE_NAMED, DROPPED_FIELD_KEPT, DROPPED_FIELD_STILL_READ],
)
def dropped_field(env):
    """Since 0.11.1 `register_dataclass(cls, drop_fields=...)` reads the other fields itself."""
    return Observed(register(drop_fields=["size"]), {"leaves": 1, "static": False})


EVERY_TRACER_WAS_AN_ARRAY = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="every tracer was an instance of jax.Array",
    issue="jax-ml/jax@1b6e098124e0",
)


@probe(
    source="jax-ml/jax@1b6e098124e0", releases="jax>=0.7.2", deviations=[EVERY_TRACER_WAS_AN_ARRAY]
)
def tracer_of_a_reference(env):
    """Under jit a reference is not a `jax.Array` since 0.9.1; the value that it holds is."""
    are_arrays = []

    @jax.jit
    def function(x):
        ref = jax.new_ref(x)
        are_arrays.extend([isinstance(x, jax.Array), isinstance(ref, jax.Array)])
        return ref[...]

    function(ROWS)
    return Observed(are_arrays, [True, False])


ANY_UPDATE_REFUSED = deviation(
    "jax>=0.5.3,<0.8.1",
    outcome="ok",
    reason="the update was refused for any value",
    issue="jax-ml/jax#30474",
)


@probe(source="jax-ml/jax#30474", releases="jax>=0.5.1", deviations=[ANY_UPDATE_REFUSED])
def device_count_as_it_is(env):
    """Setting `jax_num_cpu_devices` to its value after the start is refused from 0.5.3 to 0.8.0."""
    jax.devices()  # starts the backend
    config = jax.config
    outcome = describe_refusal(
        lambda: config.update("jax_num_cpu_devices", config.jax_num_cpu_devices), ""
    )
    return Observed(outcome["error"], reference="none")


FIELD_ACCEPTED_AS_BOTH = deviation(
    "jax<0.9",
    outcome="ok",
    reason="the field was accepted as both: a leaf, and part of the tree structure",
    issue="jax-ml/jax#34079",
)


@probe(source="jax-ml/jax#34079", deviations=[FIELD_ACCEPTED_AS_BOTH])
def field_that_is_both(env):
    """Registering a dataclass with a field that is data and static is a ValueError since 0.9.0."""
    both = ["kernel", "size"]

    def call():
        register(data_fields=both, meta_fields=["size"])

    return Observed(describe_refusal(call, "must not overlap"), expect_refusal("ValueError"))


class Unequal:
    """Metadata that cannot be compared, like an array."""

    def __eq__(self, other):
        raise TypeError("no")

    def __hash__(self):
        return 1


COMPARISON_ERROR_PASSED_ON = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the error of the comparison was passed on unchanged",
    issue="jax-ml/jax#13027",
)
CLASS_NOT_NAMED = deviation(
    "jax>=0.6.2,<0.11.1",
    outcome="ok",
    reason="the error mentions the metadata, but not the class",
    issue="jax-ml/jax#13027",
)


@probe(source="jax-ml/jax#13027", deviations=[COMPARISON_ERROR_PASSED_ON, CLASS_NOT_NAMED])
def metadata_that_cannot_be_compared(env):
    """The error for a static field that cannot be compared names the class since 0.11.1."""
    fields = {"data_fields": ["kernel"], "meta_fields": ["size"]}
    layer = jax.tree_util.register_dataclass(define_layer(), **fields)
    trees = [jax.tree_util.tree_structure(layer(1.0, Unequal())) for _ in range(2)]
    return Observed(
        describe_refusal(lambda: trees[0] == trees[1], "Layer"), expect_refusal("ValueError")
    )
