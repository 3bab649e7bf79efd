"""Mutable arrays (`jax.Ref`): memory that a program writes in place, and what reads it.

`jax.new_ref` creates a mutable array from 0.7.2; before, the function was `jax.array_ref` or
`jax.experimental.mutable_array`, and had no public name before 0.6.1. A reference within a
function has no effect outside: under jit, grad, vmap and shard_map the function returns the same
result as with copies.
"""

from __future__ import annotations

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

defaults(platforms=("cpu",))


def make_reference(x):
    """Return a mutable array that holds `x`, by the name that the release has for the function."""
    for module, name in (
        (jax, "new_ref"),
        (jax, "array_ref"),
        (jax.experimental, "mutable_array"),
        (getattr(jax, "_src").core, "mutable_array"),  # noqa: B009 - no public name yet
    ):
        if hasattr(module, name):
            return getattr(module, name)(jnp.asarray(x))
    raise NotImplementedError


def tripled(x):
    """Return a vector whose first element is three times as large, written in place."""
    ref = make_reference(x)
    ref[0] = 3 * ref[0]
    return ref[...]


ONES = np.ones(3, np.float32)


FLOAT_BITS_WRITTEN = deviation(
    "jax>=0.4.31,<0.6",
    outcome="ok",
    reason="the bits of the float were taken for an integer: 1.0 became 1065353216",
    issue="jax-ml/jax#27683",
)


@probe(source="jax-ml/jax#27683", deviations=[FLOAT_BITS_WRITTEN])
def float_written_to_integers(env):
    """`ref[...] += 1.0` of integers is refused.

    From 0.4.31 to 0.5.3 it wrote the bits of the float.
    """
    ref = make_reference(np.zeros(3, np.int32))

    def add():
        ref[...] += 1.0

    outcome = ending(add, words=("Invalid dtype",))
    return Observed((outcome, ref[...]), ("ValueError: Invalid dtype", np.zeros(3, np.int32)))


BATCH_AXIS_MISTAKEN = deviation(
    "jax>=0.8,<0.10.1",
    error="IndexError",
    match="out of bounds",
    reason="the batching rule of writes mistook the lanes for an axis of the written value",
    issue="jax-ml/jax@ce1baf2fb99c",
)


@probe(
    source="jax-ml/jax@9d4e2c5bd9b8",
    releases="jax>=0.6",
    params={"made_within": {"handed_in": False}, "handed_in": {"handed_in": True}},
    deviations=[BATCH_AXIS_MISTAKEN],
)
def one_element_in_each_lane(env, handed_in):
    """`ref[0] = 4.0` under vmap is an IndexError from 0.8.0 to 0.10.0."""

    def write(ref):
        ref[0] = 4.0

    def lane(x):
        ref = make_reference(x)
        write(ref)
        return ref[...]

    exact = np.array([[4, 0], [4, 0]], np.float32)
    zeros = np.zeros((2, 2), np.float32)
    if not handed_in:
        return Observed(jax.vmap(lane)(zeros), exact)
    ref = make_reference(zeros)
    jax.vmap(write)(ref)
    return Observed(ref[...], exact)


NO_DIFFERENTIATION_RULE = deviation(
    "jax<0.4.38",
    error="NotImplementedError",
    match="Differentiation rule for 'mutable_array'",
    reason="mutable_array had no differentiation rule",
    issue="jax-ml/jax@be053828118e",
)
LINEAR_PART_NOT_TRANSPOSED = deviation(
    "jax>=0.4.38,<0.7",
    params=["plain"],
    error="TypeError",
    match="is not a valid JAX type",
    reason="the linear part could not be transposed",
    issue="jax-ml/jax@be053828118e",
)
REMAT_REFUSED_EFFECTS = deviation(
    "jax>=0.4.38,<0.7.2",
    params=["remat"],
    error="NotImplementedError",
    match="Effects not supported in partial-eval of `checkpoint`",
    reason="remat refused all effects, also those that stay within the function",
    issue="jax-ml/jax@1e2c56e261b6",
)


@probe(
    source="jax-ml/jax@be053828118e",
    params={"plain": {"remat": False}, "remat": {"remat": True}},
    deviations=[NO_DIFFERENTIATION_RULE, LINEAR_PART_NOT_TRANSPOSED, REMAT_REFUSED_EFFECTS],
)
def gradient_of_what_is_written(env, remat):
    """The gradient of a function that writes in place works from 0.7.0, in remat from 0.7.2."""
    f = jax.checkpoint(tripled) if remat else tripled
    gradient = jax.jit(jax.grad(lambda x: f(x).sum()))(ONES)
    return Observed(gradient, np.array([3, 1, 1], np.float32))


NO_DISCHARGE_RULE = deviation(
    "jax<0.7",
    error="NotImplementedError",
    match="No state discharge rule implemented for primitive: shard_map",
    reason="shard_map had no state discharge rule",
    issue="jax-ml/jax@ee5c13b60736",
)


@probe(
    source="jax-ml/jax@ee5c13b60736", devices=2, releases="jax>=0.6", deviations=[NO_DISCHARGE_RULE]
)
def written_in_each_shard(env):
    """Under jit, each shard in shard_map can write to a separate reference from 0.7.0."""
    f = env.compat.shard_map(tripled, mesh=env.mesh(2, "x"), in_specs=P("x"), out_specs=P("x"))
    out = jax.jit(f)(np.ones(4, np.float32))
    return Observed(out, np.array([3, 1, 3, 1], np.float32))


ERROR_WITHOUT_ADVICE = deviation(
    "jax<0.10",
    outcome="ok",
    reason="an error without this advice: from 0.7.2 an AssertionError without a message",
    issue="jax-ml/jax#36000",
)


@probe(source="jax-ml/jax#36000", devices=2, releases="jax>=0.7", deviations=[ERROR_WITHOUT_ADVICE])
def made_in_a_shard_map_without_jit(env):
    """Without jit, shard_map cannot hold a reference.

    From 0.10.0 the error states this and recommends jit.
    """
    mesh = env.mesh(2, "x")
    f = env.compat.shard_map(tripled, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=False)
    outcome = ending(f, np.ones(4, np.float32), words=("wrap your shard_map in `jax.jit`",))
    return Observed(outcome, "ValueError: wrap your shard_map in `jax.jit`")


FOUND_BY_THE_RUNTIME = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="only the runtime found it, as a buffer that is donated twice",
    issue="jax-ml/jax@1061cd3e21ab",
)


@probe(
    source="jax-ml/jax@1061cd3e21ab",
    params={"twice": {"times": 2}, "closed_over": {"times": 1}},
    deviations=[FOUND_BY_THE_RUNTIME],
)
def one_reference_by_two_names(env, times):
    """A function that gets the same reference twice is refused at tracing from 0.7.2."""
    ref = make_reference(ONES)
    words = "both closed over and passed" if times == 1 else "only one reference"
    outcome = ending(jax.jit(lambda *refs: refs[0][0] + ref[0]), *[ref] * times, words=(words,))
    return Observed(outcome, f"ValueError: {words}")


REFERENCE_NOT_CHECKED = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="not checked: the reference was returned, or failed in lowering",
    issue="jax-ml/jax@1061cd3e21ab",
)


@probe(
    source="jax-ml/jax@1061cd3e21ab",
    params={"jit": {"how": "jit"}, "scan": {"how": "scan"}},
    deviations=[REFERENCE_NOT_CHECKED],
)
def returned(env, how):
    """A reference that a jitted function returns, or a loop carries, is refused from 0.7.2."""
    calls = {
        "jit": jax.jit(lambda: make_reference(ONES)),
        "scan": lambda: lax.scan(lambda ref, _: (ref, None), make_reference(ONES), None, length=2),
    }

    def call():
        calls[how]()

    return Observed(ending(call, words=("cannot be returned",)), "ValueError: cannot be returned")


EFFECT_AT_OLD_POSITION = deviation(
    "jax<0.8.1",
    error="ValueError",
    match="JaxprInputEffect",
    reason="an effect kept the position of its argument from before a constant was taken out",
    issue="jax-ml/jax#32446",
)


@probe(source="jax-ml/jax#32446", deviations=[EFFECT_AT_OLD_POSITION])
def read_by_the_innermost_of_three(env):
    """The third of three nested jits can close over a reference that the other two pass on.

    The second jit also has a constant.
    """

    @jax.jit
    def inner(ref):
        x = jnp.zeros(1) + jnp.array([0.0])
        return jax.jit(lambda x: x + ref[...])(x)

    return Observed(jax.jit(inner)(make_reference(ONES[:1])), ONES[:1])


WRITE_HAS_NO_EFFECT = deviation(
    "jax>=0.12",
    outcome="ok",
    reason="the write is accepted and has no effect",
)


@probe(source="jax-ml/jax@870952c65976", releases="jax>=0.8", deviations=[WRITE_HAS_NO_EFFECT])
def written_after_it_was_frozen(env):
    """Under jit `jax.freeze(ref)` ends a reference; a later write is silently lost from 0.12.0.

    Before, the write was refused, though only by an AttributeError of the tracer.
    """

    def f(x):
        ref = make_reference(x)
        frozen = jax.freeze(ref)
        ref[0] = 3.0
        return frozen

    return Observed(ending(jax.jit(f), ONES) != "accepted", reference=True)


WRITE_CHANGES_FROZEN_ARRAY = deviation(
    "jax>=0.12",
    outcome="ok",
    reason="the write changes the array that `freeze` returned",
)


@probe(
    source="jax-ml/jax@870952c65976", releases="jax>=0.8", deviations=[WRITE_CHANGES_FROZEN_ARRAY]
)
def written_after_it_was_frozen_eagerly(env):
    """Outside of jit, a write after `jax.freeze` should not change the frozen array.

    Every release accepts the write; up to 0.11.2 it changes only the reference.
    """
    ref = make_reference(ONES)
    frozen = jax.freeze(ref)
    ref[0] = 3.0
    return Observed(frozen, reference=np.ones_like(ONES))


WRITTEN_ONCE = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the differentiated scan moved the write out of the loop, so that it happened once",
    issue="jax-ml/jax@69bcb0d88e24",
)


@probe(source="jax-ml/jax@69bcb0d88e24", deviations=[WRITTEN_ONCE])
def counted_in_a_differentiated_scan(env):
    """Under `grad`, the steps of a scan that do not depend on x write to a reference each.

    Up to 0.6.1 the count of three steps was silently 1.
    """
    ref = make_reference(np.float32(0))

    def step(x, _):
        ref[...] += 1
        return 2 * x, None

    slope = jax.jit(jax.grad(lambda x: lax.scan(step, x, None, length=3)[0]))(1.0)
    return Observed((np.asarray(ref[...]), slope), (np.float32(3), np.float32(8)))


LANES_IN_EACH_LANE = deviation(
    "jax<0.6",
    outcome="ok",
    reason="vmap took the axis of the lanes for an axis of the written value",
    issue="jax-ml/jax@e33413c5ca8e",
)
NOT_BATCHED = deviation(
    "jax>=0.6,<0.7.2",
    outcome="raised",
    reason="a reference that is made of a value without lanes had none, so it could not take one",
    issue="jax-ml/jax@e33413c5ca8e",
)


@probe(source="jax-ml/jax@e33413c5ca8e", deviations=[LANES_IN_EACH_LANE, NOT_BATCHED])
def made_of_a_value_without_lanes(env):
    """Under `vmap`, a reference that starts from a constant takes values that differ by lane."""

    @jax.jit
    def added(x):
        ref = make_reference(np.float32(1))
        ref[...] += x
        return ref[...]

    return Observed(jax.vmap(added)(np.arange(4, dtype=np.float32)), np.float32([1, 2, 3, 4]))


LANES_NOT_MOVED = deviation(
    "jax>=0.8,<0.11.1",
    error="ValueError",
    match="Invalid shape for `swap`",
    reason="the lanes of the written value were not moved to their place in the reference",
    issue="jax-ml/jax@92ec3c7a9989",
)


@probe(source="jax-ml/jax@92ec3c7a9989", releases="jax>=0.6", deviations=[LANES_NOT_MOVED])
def lanes_along_another_axis(env):
    """`ref[...] = x` under `vmap` with `in_axes=(1, 0)` writes rows to columns."""
    ref, x = make_reference(np.zeros((2, 3), np.float32)), np.arange(6, dtype=np.float32)

    def write(ref, x):
        ref[...] = x

    jax.vmap(write, in_axes=(1, 0))(ref, x.reshape(3, 2))
    return Observed(np.asarray(ref[...]), x.reshape(3, 2).T)


NO_KIND = deviation(
    "jax<0.10",
    error="TypeError",
    match="unexpected keyword argument 'kind'",
    reason="the argument was added in 0.10.0",
    issue="jax-ml/jax@9e2e4bdce58a",
)


@probe(source="jax-ml/jax@9e2e4bdce58a", releases="jax>=0.8", deviations=[NO_KIND])
def without_gradients(env):
    """A reference of the kind `no_grad_no_remat` takes values of a function under `grad`."""
    ref = jax.new_ref(np.float32(0), kind="no_grad_no_remat")

    def squared(x):
        ref[...] = jax.lax.stop_gradient(x)
        return x * x

    return Observed((jax.grad(squared)(3.0), np.asarray(ref[...])), (np.float32(6), np.float32(3)))


WEAK_REFERENCE = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the reference kept the weak type of a Python number",
)


@probe(source="jax-ml/jax@e33413c5ca8e", releases="jax>=0.7.2", deviations=[WEAK_REFERENCE])
def made_of_a_python_number(env):
    """What is read from `jax.new_ref(1.0)` is float32 beside bfloat16, from 0.11.2 on."""
    read = jax.jit(lambda x: jax.new_ref(1.0)[...] + x)
    return Observed(str(read(np.ones(2, jnp.bfloat16)).dtype), "float32")
