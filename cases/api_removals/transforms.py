"""How `jit` and its kin are called, and what they take for a pytree, a key or an array.

Calls that were withdrawn raise. What a transformation hands to the user's function changed
without a word: constants that are no `numpy.ndarray` (0.7.2), Python numbers that come back from
`vjp` as something else (0.8.0), tracers that are no subclass of `jax.Array` (0.8.2).
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import ROWS, quiet, refusal, refused


def power(x, n):
    """Return x to the power of n, by a Python loop."""
    return functools.reduce(lambda a, _: a * x, range(n), 1.0)


JITS = {
    "fun_by_keyword": lambda: jax.jit(fun=power, static_argnames="n")(ROWS, n=3),
    "all_by_position": lambda: jax.jit(lambda x: power(x, 3), None)(ROWS),
    "factory": lambda: jax.jit(static_argnames="n")(power)(ROWS, n=3),
}


@probe(
    source="jax-ml/jax@ceca6ec1fc5b",
    platforms=("cpu",),
    params={
        "fun_by_keyword": {"how": "fun_by_keyword"},
        "all_by_position": {"how": "all_by_position"},
        "factory": {"how": "factory"},
    },
    deviations=[
        deviation(
            "jax>=0.7",
            params=("fun_by_keyword",),
            error="TypeError",
            match="positional-only arguments passed as keyword arguments: 'fun'",
            reason="the function goes by position",
            issue="jax-ml/jax@5e2afe6e7987",
        ),
        deviation(
            "jax>=0.7,<0.8.1",
            params=("all_by_position",),
            error="TypeError",
            match="takes 1 positional argument but 2 were given",
            reason="all else goes by keyword",
            issue="jax-ml/jax@5e2afe6e7987",
        ),
        deviation(
            "jax>=0.8.1",
            params=("all_by_position",),
            error="TypeError",
            match="takes from 0 to 1 positional arguments but 2 were given",
            reason="all else goes by keyword",
            issue="jax-ml/jax@5e2afe6e7987",
        ),
        deviation(
            "jax<0.8.1",
            params=("factory",),
            error="TypeError",
            match="missing 1 required positional argument: 'fun'",
            reason="jit without a function came with 0.8.1",
            issue="jax-ml/jax@3af51a593dcb",
        ),
    ],
)
def call_of_jit(env, how):
    """Three ways to call `jit` that do not work everywhere: two are TypeErrors from 0.7.0.

    Those are the function by keyword and options by position. The bare decorator with options
    needs 0.8.1.
    """
    with quiet():
        found = JITS[how]()
    return Observed(found, ROWS.astype(np.float64) ** 3)


@probe(source="jax-ml/jax@ceca6ec1fc5b", platforms=("cpu",))
def call_of_jit_on_every_release(env):
    """`jit` with the function by position and the rest by keyword: on every release.

    Also as a decorator, by `functools.partial`.
    """
    found = {
        "keywords": jax.jit(power, static_argnames="n")(ROWS, n=3),
        "partial": functools.partial(jax.jit, static_argnames="n")(power)(ROWS, n=3),
    }
    return Observed(found, dict.fromkeys(found, ROWS.astype(np.float64) ** 3))


@probe(
    source="jax-ml/jax@75697ef8680b",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.2",
            outcome="ok",
            reason="the keyword was known, but asked for a flag",
            issue="jax-ml/jax@75697ef8680b",
        )
    ],
)
def abstracted_axes(env):
    """`jit(f, abstracted_axes=...)` is an unknown keyword from 0.8.2: dynamic shapes are gone.

    For one program over many sizes there is `jax.export` with symbolic shapes.
    """
    ended = refusal(lambda: jax.jit(jnp.sum, abstracted_axes={0: "n"}), "abstracted_axes")
    flag = hasattr(jax.config, "jax_dynamic_shapes")
    return Observed({**ended, "flag": flag}, {**refused("TypeError"), "flag": False})


@probe(
    source="jax-ml/jax@095bb0e742e0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            outcome="ok",
            reason="hashed by identity, with a FutureWarning",
            issue="jax-ml/jax@095bb0e742e0",
        )
    ],
)
def hash_of_a_tracer(env):
    """A tracer in a set or as a dictionary's key is a TypeError from 0.4.36, as an array is.

    Up to 0.4.35 a cache keyed by values worked under jit, and never found anything again.
    """
    traced = refusal(lambda: jax.jit(lambda x: len({x: 1}) * x)(1.0), "unhashable type")
    array = refusal(lambda: hash(jnp.ones(2)), "unhashable type")
    expected = refused("TypeError")
    return Observed({"traced": traced, "array": array}, {"traced": expected, "array": expected})


@probe(
    source="jax-ml/jax@255c30303d32",
    platforms=("cpu",),
    params={"by_default": {"as_leaf": False}, "as_leaf": {"as_leaf": True}},
    deviations=[
        deviation(
            "jax<0.4.34",
            params=("by_default",),
            outcome="ok",
            reason="None was a prefix of anything, and swallowed it with a warning",
            issue="jax-ml/jax@255c30303d32",
        )
    ],
)
def none_against_a_leaf(env, as_leaf):
    """`tree.map` of None against an array raises from 0.4.34; before, the array was dropped.

    Optional gradients, say. `is_leaf=lambda x: x is None` hands the None to the function.
    """
    old, new = {"w": None}, {"w": np.float32(2)}
    kept = lambda a, b: b if a is None else a  # noqa: E731 - the shortest way to say it
    if not as_leaf:
        ended = refusal(lambda: jax.tree.map(kept, old, new), "None")
        return Observed(ended, refused("ValueError"))
    return Observed(jax.tree.map(kept, old, new, is_leaf=lambda x: x is None), new)


ITERABLES = {
    "dict_values": {"a": 1.0, "b": 2.0}.values,
    "generator": lambda: (x for x in (1.0, 2.0)),
    "zip": lambda: zip((1.0,), (2.0,)),  # noqa: B905 - as users write it
    "list": lambda: [1.0, 2.0],
}


@probe(
    source="jax-ml/jax@ec52eb2f2a7a",
    platforms=("cpu",),
    params={
        "dict_values": {"what": "dict_values"},
        "generator": {"what": "generator"},
        "zip": {"what": "zip"},
        "list": {"what": "list"},
    },
    deviations=[
        deviation(
            "jax>=0.10.1",
            params=("dict_values", "generator", "zip"),
            outcome="ok",
            reason="a leaf still, with a DeprecationWarning",
            issue="jax-ml/jax@ec52eb2f2a7a",
        ),
    ],
)
def iterables_as_leaves(env, what):
    """What `tree.leaves` makes of `d.values()`: one leaf, as of any object that is no pytree.

    It warns from 0.10.1. Code that means the members writes `list(...)`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        leaves = len(jax.tree_util.tree_leaves(ITERABLES[what]()))
    warned = any(issubclass(one.category, DeprecationWarning) for one in caught)
    expected = {"leaves": 2 if what == "list" else 1, "warned": False}
    return Observed({"leaves": leaves, "warned": warned}, expected)


@probe(
    source="jax-ml/jax@00538d0a6a33",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.7.2,<0.9.2",
            outcome="ok",
            reason="constants are of a private type that only looks like an ndarray",
            issue="jax-ml/jax@00538d0a6a33",
        )
    ],
)
def constants_are_ndarrays(env):
    """`isinstance(x, np.ndarray)` of a constant in a custom rule: False from 0.7.2 to 0.9.1.

    A rule that branches on it takes the other branch, silently. `np.asarray(x)` first.
    """
    seen = []
    scaled = jax.custom_jvp(lambda c, x: c * x)

    @scaled.defjvp
    def rule(primals, tangents):
        seen.append(isinstance(primals[0], (np.ndarray, jax.core.Tracer)))
        return primals[0] * primals[1], primals[0] * tangents[1]

    constants = jax.make_jaxpr(lambda x: x + ROWS)(1.0).consts
    seen += [isinstance(constant, np.ndarray) for constant in constants]
    slope = jax.grad(lambda x: scaled(ROWS, x).sum())(2.0)
    return Observed(
        {"ndarrays": all(seen), "slope": slope}, {"ndarrays": True, "slope": np.float64(15)}
    )


@probe(
    source="jax-ml/jax@cb4fcd8b4d4a",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.8",
            outcome="ok",
            reason="a Python float goes in, a private subclass comes out",
            issue="jax-ml/jax@cb4fcd8b4d4a",
        )
    ],
)
def python_number_through_vjp(env):
    """`vjp` of the identity at a Python float: a float up to 0.7.2, a `TypedFloat` from 0.8.0.

    It is a float still, but not `type(x) is float`, and its repr is no number.
    """
    value, _ = jax.vjp(lambda x: x, 1.5)
    seen = {"exactly_float": type(value) is float, "float": isinstance(value, float)}
    return Observed(
        {**seen, "value": float(value)}, {"exactly_float": True, "float": True, "value": 1.5}
    )


@probe(
    source="jax-ml/jax@9d40174f7273",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.2",
            outcome="ok",
            reason="Tracer was a subclass of Array",
            issue="jax-ml/jax#11075",
        )
    ],
)
def tracer_is_an_array(env):
    """`isinstance(tracer, jax.Array)` stays true, `issubclass(Tracer, jax.Array)` ends with 0.8.2.

    Dispatch on classes (`functools.singledispatch`) no longer finds the rule for arrays.
    """
    rule = functools.singledispatch(lambda _: "object")
    rule.register(jax.Array, lambda _: "array")
    seen = []
    jax.jit(lambda x: seen.append((isinstance(x, jax.Array), rule(x))))(ROWS)
    told = {"instance": seen[0][0], "dispatched": seen[0][1]}
    return Observed(
        {**told, "subclass": issubclass(jax.core.Tracer, jax.Array)},
        {"instance": True, "dispatched": "object", "subclass": False},
    )


class Wrapped:
    """An array by another name, as parameter classes of libraries are."""

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


@probe(
    source="jax-ml/jax@395849bd7a1e",
    platforms=("cpu",),
    params={
        "sin": {"use": "sin"},
        "lax": {"use": "lax"},
        "jit": {"use": "jit"},
        "grad": {"use": "grad"},
        "device_put": {"use": "device_put"},
    },
    deviations=[
        deviation(
            "jax>=0.8",
            error="ValueError",
            match="Triggering __jax_array__",
            reason="no conversion at the doors of jax any more, deprecated since 0.6.1",
            issue="jax-ml/jax@395849bd7a1e",
        ),
    ],
)
def object_with_jax_array(env, use):
    """An object with `__jax_array__` as an argument: refused at most doors from 0.8.0.

    `jnp.asarray(x)` converts it on every release; do that before jit, grad or device_put.
    """
    with quiet():
        value = PROTOCOL[use](Wrapped(ROWS))
    return Observed(value, EXACT.get(use, lambda x: 2 * x)(ROWS.astype(np.float64)))


@probe(source="jax-ml/jax@395849bd7a1e", platforms=("cpu",))
def object_that_is_converted(env):
    """`jnp.asarray` and an array's `+` take an object with `__jax_array__` on every release."""
    given, exact = Wrapped(ROWS), ROWS.astype(np.float64)
    with quiet():
        found = {
            "add": jnp.ones(6) + given,
            "asarray": jnp.asarray(given),
            "jit_of_asarray": jax.jit(lambda x: x * 2)(jnp.asarray(given)),
        }
    return Observed(found, {"add": 1 + exact, "asarray": exact, "jit_of_asarray": 2 * exact})


def reshaped(struct):
    """Return the shape of a struct after it was assigned to."""
    struct.shape = (2,)
    return struct.shape


STRUCTS = {
    "assigned": lambda: reshaped(jax.ShapeDtypeStruct((1,), np.float32)),
    "replaced": lambda: jax.ShapeDtypeStruct((2,), np.float32).shape,
    "named_shape": lambda: jax.ShapeDtypeStruct((2,), np.float32, named_shape={}).shape,
    "vma": lambda: jax.ShapeDtypeStruct((2,), np.float32, vma=frozenset()).shape,
    "update": lambda: jax.ShapeDtypeStruct((1,), np.float32).update(shape=(2,)).shape,
}


@probe(
    source="jax-ml/jax@0605bc4a5dbe",
    platforms=("cpu",),
    params={
        "assigned": {"how": "assigned"},
        "named_shape": {"how": "named_shape"},
        "replaced": {"how": "replaced"},
        "update": {"how": "update"},
        "vma": {"how": "vma"},
    },
    deviations=[
        deviation(
            "jax>=0.6.1",
            params=("assigned",),
            error="RuntimeError",
            match="Cannot reassign attributes .shape.",
            reason="structs are immutable",
            issue="jax-ml/jax@0605bc4a5dbe",
        ),
        deviation(
            "jax>=0.4.34",
            params=("named_shape",),
            error="TypeError",
            match="named_shape",
            reason="it was for xmap, which was gone",
            issue="jax-ml/jax@b886bd730037",
        ),
        deviation(
            "jax<0.6.1",
            params=("update",),
            error="AttributeError",
            match="no attribute 'update'",
            reason="it came with immutability",
            issue="jax-ml/jax@e194d532a469",
        ),
        deviation(
            "jax<0.6.2",
            params=("vma",),
            error="TypeError",
            match="vma",
            reason="not there yet",
            issue="jax-ml/jax@bdd635a65b35",
        ),
        deviation(
            "jax>=0.10",
            params=("vma",),
            error="TypeError",
            match="vma",
            reason="it is manual_axis_type",
            issue="jax-ml/jax@6735ea09d34e",
        ),
    ],
)
def shape_of_a_struct(env, how):
    """Ways to a ShapeDtypeStruct of shape (2,): making a new one works everywhere.

    Assignment ends with 0.6.1, where `update` begins; `named_shape=` ends with 0.4.34; `vma=`
    lives from 0.6.2 to 0.9.2.
    """
    return Observed(list(STRUCTS[how]()), [2])


@probe(
    source="jax-ml/jax@04f9d460400d",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            reason="taken, and refused where it was used",
            issue="jax-ml/jax@04f9d460400d",
        )
    ],
)
def struct_of_unknown_size(env):
    """`ShapeDtypeStruct((None, 3), ...)` is a ValueError from 0.11.1; as a note it was welcome."""
    return Observed(
        refusal(lambda: jax.ShapeDtypeStruct((None, 3), np.float32), "None"), refused("ValueError")
    )


@probe(
    source="jax-ml/jax@f3b4d7b57e76",
    platforms=("cpu",),
    params={"by_name": {"named": True}, "unpacked": {"named": False}},
    deviations=[
        deviation(
            "jax<0.8",
            params=("by_name",),
            error="AttributeError",
            match="'tuple' object has no attribute 'eigenvalues'",
            reason="a plain tuple until then",
            issue="jax-ml/jax@f3b4d7b57e76",
        )
    ],
)
def result_of_eig(env, named):
    """`jnp.linalg.eig(a).eigenvalues`: a named tuple as in NumPy from 0.8.0; unpack it before."""
    result = jnp.linalg.eig(np.float32([[2, 0], [0, 3]]))
    values = result.eigenvalues if named else result[0]
    return Observed(np.sort(np.asarray(values).real), np.float64([2, 3]))


@probe(
    source="jax-ml/jax@e1b62cede160",
    records="which options there are is up to jax",
    platforms=("cpu",),
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
    """A configuration option that came or went: setting one that is unknown is an AttributeError.

    Most options live for a few releases, around the change that they defer. What it is set to
    is its default. There is no right answer to compare with, only dates.
    """
    default = getattr(jax.config, option, None)
    ended = refusal(lambda: jax.config.update(option, default), "Unrecognized config option")
    return {"default": str(default), **ended}


DEFAULTS = (
    "jax_default_prng_impl",
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
    "jax_threefry_partitionable",
    "jax_use_direct_linearize",
    "jax_use_shardy_partitioner",
)


@probe(source="jax-ml/jax#18480", records="defaults are up to jax", platforms=("cpu",))
def defaults(env):
    """Defaults that decide values: which random bits, which partitioner, which linearisation.

    A random stream, a sharding or a jaxpr that changed with an upgrade is often one of these:
    partitionable threefry at 0.5.0, Shardy and direct linearisation at 0.7.0. There is no right
    answer to compare with.
    """
    return {name: str(getattr(jax.config, name, None)) for name in DEFAULTS}


@probe(
    source="jax-ml/jax@e1b62cede160",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the option is not there yet",
            issue="jax-ml/jax@51b9fe3010dc",
        ),
        deviation(
            "jax>=0.5,<0.5.3",
            outcome="ok",
            reason="accepted, and without effect",
            issue="jax-ml/jax@e1b62cede160",
        ),
    ],
)
def device_count_after_the_start(env):
    """`jax_num_cpu_devices` set too late: silently ignored up to 0.5.2, refused from 0.5.3."""
    before = len(env.devices)
    ended = refusal(
        lambda: jax.config.update("jax_num_cpu_devices", before + 1), "before backends are initial"
    )
    grown = len(jax.devices()) - before
    return Observed({**ended, "grown": grown}, {**refused("RuntimeError"), "grown": 0})


@dataclasses.dataclass
class Layer:
    """One array, and a number that is static."""

    kernel: Any
    size: int = dataclasses.field(default=3, metadata={"static": True})


REGISTRATIONS = {
    "declared": lambda: register(Layer),
    "named": lambda: register(Layer, data_fields=["kernel"], meta_fields=["size"]),
    "one_missing": lambda: register(Layer, data_fields=["kernel"], meta_fields=[]),
    "one_too_many": lambda: register(Layer, data_fields=["kernel", "bias"], meta_fields=["size"]),
}


def register(*args, **kwargs):
    """Register a dataclass, and return the leaves and the metadata that it has then."""
    leaves, tree = jax.tree_util.tree_flatten(jax.tree_util.register_dataclass(*args, **kwargs)(1))
    return {"leaves": len(leaves), "static": "(3,)" in str(tree)}


@probe(
    source="jax-ml/jax@1af3b01c1c04",
    platforms=("cpu",),
    params={"declared": {"how": "declared"}, "named": {"how": "named"}},
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("declared",),
            error="TypeError",
            match="missing 2 required positional arguments",
            reason="fields had to be named",
            issue="jax-ml/jax@1af3b01c1c04",
        )
    ],
)
def fields_of_a_dataclass(env, how):
    """`register_dataclass` reads `metadata={"static": True}` of a field since 0.4.36."""
    return Observed(REGISTRATIONS[how](), {"leaves": 1, "static": True})


@probe(
    source="jax-ml/jax@02bb884357e9",
    platforms=("cpu",),
    params={"one_missing": {"how": "one_missing"}, "one_too_many": {"how": "one_too_many"}},
    deviations=[
        deviation(
            "jax<0.4.33",
            outcome="ok",
            reason="taken as it was: a field was lost on the way, or failed later",
            issue="jax-ml/jax@02bb884357e9",
        )
    ],
)
def fields_that_do_not_fit(env, how):
    """Registering a dataclass with fields left out is a ValueError since 0.4.33.

    Before, a field that was forgotten silently went back to its default. The changelog has it in
    0.4.32, which was withdrawn.
    """
    return Observed(refusal(REGISTRATIONS[how], "all dataclass fields"), refused("ValueError"))


@probe(
    source="jax-ml/jax@eddef19ce112",
    platforms=("cpu",),
    releases="jax>=0.4.33",
    deviations=[
        deviation(
            "jax<0.4.36",
            error="TypeError",
            match="missing 2 required positional arguments",
            reason="fields had to be named",
            issue="jax-ml/jax@1af3b01c1c04",
        ),
        deviation(
            "jax>=0.4.36,<0.10",
            outcome="ok",
            reason="what is to be dropped was kept, silently",
            issue="jax-ml/jax@f892f6bff63d",
        ),
        deviation(
            "jax>=0.10,<0.11.1",
            error="ValueError",
            match="Unexpected fields: {'size'}",
            reason="all fields were read from the class, those to be dropped, too",
            issue="jax-ml/jax@eddef19ce112",
        ),
    ],
)
def dropped_field(env):
    """`register_dataclass(cls, drop_fields=...)` alone, the others read from the class: 0.11.1."""
    return Observed(register(Layer, drop_fields=["size"]), {"leaves": 1, "static": False})


@probe(
    source="jax-ml/jax@1b6e098124e0",
    platforms=("cpu",),
    releases="jax>=0.7.2",
    deviations=[
        deviation(
            "jax<0.9.1",
            outcome="ok",
            reason="every tracer said so",
            issue="jax-ml/jax@1b6e098124e0",
        )
    ],
)
def tracer_of_a_reference(env):
    """Under jit a reference is no `jax.Array` since 0.9.1; what it holds is."""
    seen = []

    @jax.jit
    def function(x):
        ref = jax.new_ref(x)
        seen.extend([isinstance(x, jax.Array), isinstance(ref, jax.Array)])
        return ref[...]

    function(ROWS)
    return Observed(seen, [True, False])


@probe(
    source="jax-ml/jax#30474",
    platforms=("cpu",),
    releases="jax>=0.5.1",
    deviations=[
        deviation(
            "jax>=0.5.3,<0.8.1",
            outcome="ok",
            reason="whatever it is set to",
            issue="jax-ml/jax#30474",
        )
    ],
)
def device_count_as_it_is(env):
    """`jax_num_cpu_devices` set to what it is, after the start: refused from 0.5.3 to 0.8.0."""
    jax.devices()
    config = jax.config
    again = refusal(lambda: config.update("jax_num_cpu_devices", config.jax_num_cpu_devices), "")
    return Observed(again["error"], reference="none")


@probe(
    source="jax-ml/jax#34079",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.9",
            outcome="ok",
            reason="taken as both, so it is a leaf and part of the tree",
            issue="jax-ml/jax#34079",
        )
    ],
)
def field_that_is_both(env):
    """Registering a dataclass with a field that is data and static is a ValueError since 0.9.0."""
    both = ["kernel", "size"]

    def call():
        jax.tree_util.register_dataclass(Layer, data_fields=both, meta_fields=["size"])

    return Observed(refusal(call, "must not overlap"), refused("ValueError"))


class Unequal:
    """Something that cannot be compared, as an array cannot."""

    def __eq__(self, other):
        raise TypeError("no")

    def __hash__(self):
        return 1


@probe(
    source="jax-ml/jax#13027",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6.2",
            outcome="ok",
            reason="what the comparison raised came out as it was",
            issue="jax-ml/jax#13027",
        ),
        deviation(
            "jax>=0.6.2,<0.11.1",
            outcome="ok",
            reason="told of metadata, but not of which class",
            issue="jax-ml/jax#13027",
        ),
    ],
)
def metadata_that_cannot_be_compared(env):
    """A static field that is an array: the error names the class that has it, since 0.11.1."""
    register(Layer, data_fields=["kernel"], meta_fields=["size"])
    trees = [jax.tree_util.tree_structure(Layer(1.0, Unequal())) for _ in range(2)]
    return Observed(refusal(lambda: trees[0] == trees[1], "Layer"), refused("ValueError"))
