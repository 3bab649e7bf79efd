"""Mutable arrays (`jax.Ref`): memory that a program writes in place, and what reads it.

`jax.new_ref` makes one since 0.7.2; it was `jax.array_ref`, `jax.experimental.mutable_array`, and
without a public name before 0.6.1. A reference within a function is nobody's business but its own:
under jit, grad, vmap and shard_map the function does what it would do with copies.
"""

from __future__ import annotations

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import ending


def reference(x):
    """Return a mutable array that holds `x`, by whatever name a release has for it."""
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
    ref = reference(x)
    ref[0] = 3 * ref[0]
    return ref[...]


ONES = np.ones(3, np.float32)


@probe(
    source="jax-ml/jax#27683",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.4.31,<0.6",
            outcome="ok",
            reason="what was written was taken for the dtype by its bits: 1.0 made 1065353216",
            issue="jax-ml/jax#27683",
        )
    ],
)
def float_written_to_integers(env):
    """`ref[...] += 1.0` of integers is refused; from 0.4.31 to 0.5.3 it wrote the float's bits."""
    ref = reference(np.zeros(3, np.int32))

    def add():
        ref[...] += 1.0

    words = ending(add, words=("Invalid dtype",))
    return Observed((words, ref[...]), ("ValueError: Invalid dtype", np.zeros(3, np.int32)))


@probe(
    source="jax-ml/jax@9d4e2c5bd9b8",
    platforms=("cpu",),
    releases="jax>=0.6",
    params={"made_within": {"handed_in": False}, "handed_in": {"handed_in": True}},
    deviations=[
        deviation(
            "jax>=0.8,<0.10.1",
            error="IndexError",
            match="out of bounds",
            reason="the rule that maps writes took the lanes for an axis of what is written",
            issue="jax-ml/jax@ce1baf2fb99c",
        )
    ],
)
def one_element_in_each_lane(env, handed_in):
    """`ref[0] = 4.0` under vmap: an IndexError from 0.8.0 to 0.10.0."""

    def write(ref):
        ref[0] = 4.0

    def lane(x):
        ref = reference(x)
        write(ref)
        return ref[...]

    exact = np.array([[4, 0], [4, 0]], np.float32)
    zeros = np.zeros((2, 2), np.float32)
    if not handed_in:
        return Observed(jax.vmap(lane)(zeros), exact)
    ref = reference(zeros)
    jax.vmap(write)(ref)
    return Observed(ref[...], exact)


@probe(
    source="jax-ml/jax@be053828118e",
    platforms=("cpu",),
    params={"plain": {"remat": False}, "remat": {"remat": True}},
    deviations=[
        deviation(
            "jax<0.4.38",
            error="NotImplementedError",
            match="Differentiation rule for 'mutable_array'",
            reason="there was no rule",
            issue="jax-ml/jax@be053828118e",
        ),
        deviation(
            "jax>=0.4.38,<0.7",
            params=["plain"],
            error="TypeError",
            match="is not a valid JAX type",
            reason="the linear part could not be transposed",
            issue="jax-ml/jax@be053828118e",
        ),
        deviation(
            "jax>=0.4.38,<0.7.2",
            params=["remat"],
            error="NotImplementedError",
            match="Effects not supported in partial-eval of `checkpoint`",
            reason="remat refused all effects, also those that stay within",
            issue="jax-ml/jax@1e2c56e261b6",
        ),
    ],
)
def gradient_of_what_is_written(env, remat):
    """The gradient of a function that writes in place, for itself (0.7.0) and in remat (0.7.2)."""
    f = jax.checkpoint(tripled) if remat else tripled
    gradient = jax.jit(jax.grad(lambda x: f(x).sum()))(ONES)
    return Observed(gradient, np.array([3, 1, 1], np.float32))


@probe(
    source="jax-ml/jax@ee5c13b60736",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax<0.7",
            error="NotImplementedError",
            match="No state discharge rule implemented for primitive: shard_map",
            reason="there was no rule",
            issue="jax-ml/jax@ee5c13b60736",
        )
    ],
)
def written_in_each_shard(env):
    """A reference in shard_map under jit: each shard writes its own, since 0.7.0."""
    f = env.compat.shard_map(tripled, mesh=env.mesh(2, "x"), in_specs=P("x"), out_specs=P("x"))
    out = jax.jit(f)(np.ones(4, np.float32))
    return Observed(out, np.array([3, 1, 3, 1], np.float32))


@probe(
    source="jax-ml/jax#36000",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.7",
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="a bare AssertionError",
            issue="jax-ml/jax#36000",
        )
    ],
)
def made_in_a_shard_map_without_jit(env):
    """Without jit shard_map can't hold a reference; it says so, and to use jit, since 0.10.0."""
    mesh = env.mesh(2, "x")
    f = env.compat.shard_map(tripled, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=False)
    said = ending(f, np.ones(4, np.float32), words=("wrap your shard_map in `jax.jit`",))
    return Observed(said, "ValueError: wrap your shard_map in `jax.jit`")


@probe(
    source="jax-ml/jax@1061cd3e21ab",
    platforms=("cpu",),
    params={"twice": {"times": 2}, "closed_over": {"times": 1}},
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="found by the runtime alone, as a buffer that is donated twice",
            issue="jax-ml/jax@1061cd3e21ab",
        )
    ],
)
def one_reference_by_two_names(env, times):
    """A function that gets the same reference twice is refused while it is traced, since 0.7.2."""
    ref = reference(ONES)
    words = "both closed over and passed" if times == 1 else "only one reference"
    ended = ending(jax.jit(lambda *refs: refs[0][0] + ref[0]), *[ref] * times, words=(words,))
    return Observed(ended, f"ValueError: {words}")


@probe(
    source="jax-ml/jax@1061cd3e21ab",
    platforms=("cpu",),
    params={"jit": {"how": "jit"}, "scan": {"how": "scan"}},
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="not checked: it came out, or failed as it was lowered",
            issue="jax-ml/jax@1061cd3e21ab",
        )
    ],
)
def returned(env, how):
    """A reference that a jitted function returns, or a loop carries, is refused since 0.7.2."""
    calls = {
        "jit": jax.jit(lambda: reference(ONES)),
        "scan": lambda: lax.scan(lambda ref, _: (ref, None), reference(ONES), None, length=2),
    }

    def call():
        calls[how]()

    return Observed(ending(call, words=("cannot be returned",)), "ValueError: cannot be returned")


@probe(
    source="jax-ml/jax#32446",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.1",
            error="ValueError",
            match="JaxprInputEffect",
            reason="an effect kept the position its argument had before a constant was taken out",
            issue="jax-ml/jax#32446",
        )
    ],
)
def read_by_the_innermost_of_three(env):
    """A reference handed through two jits and closed over by a third, beside a constant."""

    @jax.jit
    def inner(ref):
        x = jnp.zeros(1) + jnp.array([0.0])
        return jax.jit(lambda x: x + ref[...])(x)

    return Observed(jax.jit(inner)(reference(ONES[:1])), ONES[:1])


@probe(
    source="jax-ml/jax@870952c65976",
    platforms=("cpu",),
    releases="jax>=0.8",
    deviations=[
        deviation(
            "jax>=0.12",
            outcome="ok",
            reason="accepted, and without effect",
        )
    ],
)
def written_after_it_was_frozen(env):
    """Under jit `jax.freeze(ref)` ends a reference; a later write is silently lost from 0.12.0.

    Before, it was refused, if by an AttributeError of the tracer's.
    """

    def f(x):
        ref = reference(x)
        frozen = jax.freeze(ref)
        ref[0] = 3.0
        return frozen

    return Observed(ending(jax.jit(f), ONES) != "accepted", reference=True)


@probe(
    source="jax-ml/jax@870952c65976",
    platforms=("cpu",),
    releases="jax>=0.8",
    deviations=[
        deviation(
            "jax>=0.12",
            outcome="ok",
            reason="the write changes the array that `freeze` returned",
        )
    ],
)
def written_after_it_was_frozen_eagerly(env):
    """Outside of jit an array that `jax.freeze` returned keeps its value, whatever is written.

    Every release accepts the write; up to 0.11.2 it goes to the reference alone.
    """
    ref = reference(ONES)
    frozen = jax.freeze(ref)
    ref[0] = 3.0
    return Observed(frozen, reference=np.ones_like(ONES))
