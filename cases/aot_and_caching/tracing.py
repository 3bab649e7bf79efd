"""When jit traces again: which properties belong to the key of the tracing cache, and which do not.

An unnecessary trace costs minutes if a model is large, and it is silent: the result is the same. A
missing trace computes something else. Therefore the Python body counts its own runs here.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import classify_outcome, collect_trace_counts, count_traces

SHARDING_NOT_IN_TYPES = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="shardings were not part of the traced types",
    issue="jax-ml/jax#31250",
)


@probe(source="jax-ml/jax@00d8297071a4", devices=4, deviations=[SHARDING_NOT_IN_TYPES])
def sharding_in_the_key(env):
    """From 0.5.1 an array on a mesh is traced again after an array on a single device.

    Their types differ, even if the mesh has one device only, so that both are the same bytes in the
    same place. A second sharding over that mesh does not trace again: with Auto axes the types are
    equal again. Put all arguments on the mesh from the start, including those of the first step.
    """
    x = jnp.arange(8.0)

    def count_on_mesh(size):
        mesh = env.mesh(size, "x")
        body, counter = count_traces(lambda y: y + 1)
        fn = jax.jit(body)
        rows, whole = (jax.device_put(x, NamedSharding(mesh, spec)) for spec in (P("x"), P()))
        return collect_trace_counts(counter, [lambda: fn(x), lambda: fn(rows), lambda: fn(whole)])

    result = {"mesh_of_one": count_on_mesh(1), "mesh_of_four": count_on_mesh(4)}
    return Observed(result, {mesh: [1, 2, 2] for mesh in result})


@probe(source="jax-ml/jax#31250", devices=4)
def placements_share_a_trace(env):
    """A NumPy array, a JAX array and arrays put on either of two devices share one trace."""
    body, counter = count_traces(lambda y: y * 2)
    fn, x = jax.jit(body), np.arange(8, dtype=np.float32)
    first, third = env.devices[0], env.devices[2]
    calls = [
        lambda: fn(x),
        lambda: fn(jnp.asarray(x)),
        lambda: fn(jax.device_put(x, first)),
        lambda: fn(jax.device_put(x, third)),
    ]
    return Observed(collect_trace_counts(counter, calls), [1, 1, 1, 1])


@probe(source="jax-ml/jax#3163")
def weak_types(env):
    """A Python scalar is weakly typed, its result often not: the second step traces again.

    Two arrays of one dtype share a trace regardless of their values, and so do two Python floats. A
    step whose state starts as `0.0` and comes back as float32 is traced twice; start from an array.
    """
    body, counter = count_traces(lambda y: y + 1)
    fn = jax.jit(body)
    values = (1.0, np.float32(1), jnp.float32(2), 2.0, 1, np.int32(1), True)
    calls = [functools.partial(fn, value) for value in values]
    return Observed(collect_trace_counts(counter, calls), [1, 2, 2, 2, 3, 4, 5])


@probe(source="jax-ml/jax#1159")
def spellings_of_a_call(env):
    """Positions and keywords are different signatures; the order of keywords does not matter.

    A default that is left out is not an argument at all: it is baked in as a constant.
    """
    body, counter = count_traces(lambda x, y=1.0: x + y)
    fn = jax.jit(body)
    calls = [
        lambda: fn(1.0, 2.0),
        lambda: fn(1.0, y=2.0),
        lambda: fn(x=1.0, y=2.0),
        lambda: fn(y=2.0, x=1.0),
        lambda: fn(1.0),
        lambda: fn(3.0),
    ]
    return Observed(collect_trace_counts(counter, calls), [1, 2, 3, 3, 4, 4])


class Setting:
    """A static argument that is compared by its value."""

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, Setting) and self.value == other.value


@probe(source="jax-ml/jax#24857")
def static_values(env):
    """Static arguments are compared by hash and equality, not by identity."""
    values_by_kind = {
        "equal_objects": (Setting(2), Setting(2), Setting(3)),
        "equal_strings": ("ab", "abc"[:2], "ba"),
    }
    counts = {}
    for name, values in values_by_kind.items():
        body, counter = count_traces(lambda x, _: x)
        fn = jax.jit(body, static_argnums=1)
        counts[name] = collect_trace_counts(
            counter, [functools.partial(fn, 1.0, value) for value in values]
        )
    return Observed(counts, {name: [1, 1, 2] for name in values_by_kind})


TYPES_OF_KEYWORDS_IGNORED = deviation(
    "jax<0.9",
    params=["by_keyword"],
    outcome="ok",
    match="'int32', reference 'float32'",
    reason="equal static values given by keyword shared a trace, regardless of their types",
    issue="jax-ml/jax#9273",
)


@probe(
    source="jax-ml/jax#9273",
    deviations=[TYPES_OF_KEYWORDS_IGNORED],
    params={"by_position": {"keyword": False}, "by_keyword": {"keyword": True}},
)
def one_and_one_point_zero(env, keyword):
    """1, 1.0 and True are equal with equal hashes, yet three static values: types count.

    By keyword, types did not count up to 0.8.3: the second call ran the program of the first, and
    its results had another dtype. On these releases, give static arguments by position.
    """
    fn = jax.jit(jnp.asarray, static_argnames="a")
    dtypes = [str((fn(a=v) if keyword else fn(v)).dtype) for v in (1, 1.0, True, 1)]
    return Observed(dtypes, ["int32", "float32", "bool", "int32"])


EQUAL_VALUES_SHARE_A_TRACE = deviation(
    outcome="ok",
    reason="static values that are equal share a trace; only the type of the value itself counts",
    issue="jax-ml/jax#9273",
)
EQUAL_PAIRS = {
    "zeros": (0.0, -0.0, lambda value: jnp.copysign(1.0, value)),
    "zeros_in_a_tuple": ((0.0,), (-0.0,), lambda value: jnp.copysign(1.0, value[0])),
    "numbers_in_a_tuple": ((1,), (1.0,), lambda value: jnp.asarray(value[0])),
}


@probe(
    source="jax-ml/jax#9273",
    params=[*EQUAL_PAIRS],
    deviations=[EQUAL_VALUES_SHARE_A_TRACE],
)
def equal_static_values(env, pair):
    """0.0 and -0.0, or (1,) and (1.0,), are equal: the second gets the result of the first."""
    first, second, fn = EQUAL_PAIRS[pair]
    jitted = jax.jit(fn, static_argnums=0)
    results = [jitted(value) for value in (first, second)]
    observed = [[str(result.dtype), float(result)] for result in results]
    return Observed(observed, [[str(fn(v).dtype), float(fn(v))] for v in (first, second)])


class Model:
    """An object whose method is jitted."""

    def __init__(self, counter):
        self.counter = counter

    def __hash__(self):
        return 7

    def __eq__(self, other):
        return isinstance(other, Model)

    def step(self, x):
        """Count, and return the argument."""
        self.counter["traces"] += 1
        return x


@probe(source="jax-ml/jax#19129")
def what_is_the_same_function(env):
    """The key is the function itself: jitting it again hits the cache, a new function misses.

    A lambda, closure or partial that is made on each step is traced on each step, and so is a bound
    method, even of the same object: Python creates the method at each access.
    """
    body, counter = count_traces(lambda x: x)
    same = collect_trace_counts(counter, [lambda: jax.jit(body)(1.0)] * 3)
    partial = collect_trace_counts(counter, [lambda: jax.jit(functools.partial(body))(1.0)] * 3)
    model = Model(counter)
    method = collect_trace_counts(counter, [lambda: jax.jit(model.step)(1.0)] * 2)
    return Observed(
        {"same": same, "partial": partial, "method": method},
        {"same": [1, 1, 1], "partial": [2, 3, 4], "method": [5, 6]},
    )


@probe(source="jax-ml/jax#19129", devices=2)
def keywords_of_jit_do_not_trace(env):
    """Donation, unused arguments and shardings concern only lowering: the trace is shared."""
    body, counter = count_traces(lambda x: x + 1)
    sharding = jax.sharding.SingleDeviceSharding(env.devices[1])
    keyword_sets = [
        {},
        {"donate_argnums": 0},
        {"keep_unused": True},
        {"static_argnums": ()},
        {"out_shardings": sharding},
    ]
    calls = [
        lambda keywords=keywords: jax.jit(body, **keywords)(np.float32(1))
        for keywords in keyword_sets
    ]
    return Observed(collect_trace_counts(counter, calls), [1] * 5)


@probe(source="jax-ml/jax#27980", devices=2)
def contexts_in_the_key(env):
    """The meaning of a program depends on its context, so the context is part of the key.

    This includes precision, promotion and the default device, but not name scopes and debug_nans.
    """
    body, counter = count_traces(lambda x: x @ x)
    fn, x = jax.jit(body), np.ones((2, 2), np.float32)

    def call_in_context(context):
        with context:
            return fn(x)

    contexts = [
        jax.named_scope("here"),
        jax.debug_nans(True),
        jax.default_matmul_precision("float32"),
        jax.numpy_dtype_promotion("strict"),
        jax.default_device(env.devices[1]),
    ]
    calls = [lambda: fn(x)] + [functools.partial(call_in_context, context) for context in contexts]
    return Observed(collect_trace_counts(counter, calls), [1, 1, 1, 2, 3, 4])


@probe(source="jax-ml/jax#457")
def stages_and_transformations_share(env):
    """Calls, `grad`, `lower` and `eval_shape` share one trace; only a batched type differs.

    `jax.grad` and `jax.vmap` of a jitted function transform its jaxpr. vmap traces again here
    because the mapped argument is strongly typed, unlike the Python scalar.
    """
    body, counter = count_traces(lambda x: x * x)
    fn = jax.jit(body)
    calls = [
        lambda: fn(1.0),
        lambda: jax.grad(fn)(2.0),
        lambda: jax.vmap(fn)(np.ones(3, np.float32)),
        lambda: jax.jvp(fn, (np.float32(1),), (np.float32(1),)),
        lambda: jax.make_jaxpr(fn)(1.0),
        lambda: fn.trace(1.0),
        lambda: fn.lower(1.0).compile(),
        lambda: fn.eval_shape(1.0),
        lambda: jax.eval_shape(fn, 1.0),
    ]
    return Observed(collect_trace_counts(counter, calls), [1, 1, 2, 2, 2, 2, 2, 2, 2])


@probe(source="jax-ml/jax@c5468ce68b8a")
def forgetting(env):
    """`clear_cache` of a function and `jax.clear_caches` both make it trace again.

    This is also needed if a function closes over an array that has changed: jit keeps the values
    that the array had at the trace.
    """
    factor = np.ones(2, np.float32)
    body, counter = count_traces(lambda x: x * factor)
    fn, x = jax.jit(body), np.ones(2, np.float32)
    values = [float(fn(x)[0])]
    factor[:] = 5
    values.append(float(fn(x)[0]))
    fn.clear_cache()
    values.append(float(fn(x)[0]))
    jax.clear_caches()
    counts = collect_trace_counts(counter, [lambda: fn(x), lambda: fn(x)])
    return Observed({"values": values, "traces": counts}, {"values": [1, 1, 5], "traces": [3, 3]})


ASSERTION_ON_DUPLICATES = deviation(
    "jax==0.4.31",
    error="AssertionError",
    reason="a bare assertion failed on results that occur twice",
    issue="jax-ml/jax#22944",
)


@probe(source="jax-ml/jax#22944", deviations=[ASSERTION_ON_DUPLICATES])
def returned_twice_and_inlined(env):
    """`jit(inline=True)` of a function that returns a result twice fails in 0.4.31 only."""
    add = jax.jit(lambda x: x + 1)

    def twice(x):
        y = add(x)
        return y, y

    shapes = jax.eval_shape(jax.jit(twice, inline=True), np.float32(0))
    return Observed([str(s.dtype) for s in shapes], ["float32", "float32"])


class Slotted:
    """A callable object that cannot be weakly referenced, because of its slots."""

    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        """Return the product of x and the factor."""
        return self.factor * x


WEAK_REFERENCE_NOT_CHECKED = deviation(
    "jax>=0.10.2",
    outcome="crashed",
    reason="the second jit of such an object is a segmentation fault",
)
CALLABLES = {"slots": {"make": "slots"}, "numpy": {"make": "numpy"}}


@probe(
    source="jax-ml/jax#9541",
    params=CALLABLES,
    platforms=("cpu",),
    deviations=[WEAK_REFERENCE_NOT_CHECKED],
)
def jitted_without_weak_references(env, make):
    """`jit` of a callable that has no weak references, such as `np.sum`, is a TypeError if called.

    From 0.10.2 on, a second `jit` of the same callable ends the process.
    """
    fn = {"slots": Slotted(2), "numpy": np.sum}[make]
    x = np.ones(3, np.float32)
    return Observed([classify_outcome(lambda: jax.jit(fn)(x)) for _ in range(2)], ["TypeError"] * 2)


def default_key():
    """Return the data of a key of the default kind."""
    return jax.random.key_data(jax.random.key(0))


OPTIONS = {
    "default_prng_impl": ("jax_default_prng_impl", "rbg", default_key),
    "high_dynamic_range_gumbel": (
        "jax_high_dynamic_range_gumbel",
        True,
        lambda: jax.random.gumbel(jax.random.key(0), (2,)),
    ),
    "enable_custom_prng": (
        "jax_enable_custom_prng",
        True,
        lambda: jnp.asarray(jnp.ndim(jax.random.PRNGKey(0))),
    ),
    "random_seed_offset": ("jax_random_seed_offset", 5, default_key),
    "threefry_partitionable": (
        "jax_threefry_partitionable",
        False,
        lambda: jax.random.bits(jax.random.key(0), (3,)),
    ),
}


OPTION_NOT_IN_THE_KEY = deviation(
    params=["default_prng_impl", "high_dynamic_range_gumbel", "enable_custom_prng"],
    outcome="ok",
    reason="the option is not part of the key, so the program of the first call runs again",
    issue="jax-ml/jax#40609",
)


@probe(
    source="jax-ml/jax#40609",
    params=[*OPTIONS],
    config={"jax_threefry_partitionable": True},
    deviations=[OPTION_NOT_IN_THE_KEY],
)
def option_changed_after_a_call(env, name):
    """A jitted function that makes random numbers has the result of an option as it is set now."""
    option, value, draw = OPTIONS[name]
    fn = jax.jit(draw)
    fn()
    if not hasattr(jax.config, option):
        env.unsupported(f"no option {option}")
    jax.config.update(option, value)
    observed = np.asarray(fn())
    jax.clear_caches()
    return Observed(observed, np.asarray(jax.jit(draw)()))


TRACED_FOR_THE_CONTEXT = deviation(
    "jax>=0.4.36",
    outcome="ok",
    reason="the context is part of the key: its first call traces again",
    issue="jax-ml/jax@c36e1f7c1ad4",
)


@probe(source="jax-ml/jax@c36e1f7c1ad4", deviations=[TRACED_FOR_THE_CONTEXT])
def call_at_compile_time(env):
    """A jitted function that was called before is not traced for `ensure_compile_time_eval`."""
    one, calls = np.float32(1), []

    @jax.jit
    def f(x):
        calls.append(x)
        return x + 1

    @jax.jit
    def g(y):
        with jax.ensure_compile_time_eval():
            return f(one) + y

    f(one)
    g(one)
    return Observed(len(calls), 1)
