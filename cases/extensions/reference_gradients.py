"""Derivatives of functions that keep values in references, and gradients added to references."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import find, floats, new_reference, outcome

defaults(platforms=("cpu",))

X = floats(1, 2, 3)


def freeze(ref):
    """Return the array of a reference, which is not used again."""
    return find("jax:freeze", "jax.experimental:freeze", "jax._src.core:freeze")(ref)


def overwritten(x):
    """Replace all values by constants."""
    ref = new_reference(x)
    ref[...] = jnp.full_like(x, 2)
    return freeze(ref).sum()


def read_then_overwritten(x):
    """Read the values, replace them by constants, and multiply both."""
    ref = new_reference(x)
    before = ref[...]
    ref[...] = jnp.full_like(x, 2)
    return (before * freeze(ref)).sum()


def one_overwritten(x):
    """Replace one value by a constant."""
    ref = new_reference(x)
    ref[0] = jnp.float32(2)
    return freeze(ref).sum()


def added_to_a_part(x):
    """Add to a part of a longer reference."""
    ref = new_reference(jnp.ones(5, x.dtype))
    ref.at[1:4][...] += x * x
    return ref[...].sum()


WRITES = {
    "overwritten": (overwritten, floats(0, 0, 0)),
    "read_then_overwritten": (read_then_overwritten, floats(2, 2, 2)),
    "one_overwritten": (one_overwritten, floats(0, 1, 1)),
    "added_to_a_part": (added_to_a_part, floats(2, 4, 6)),
}


COTANGENT_OF_A_CONSTANT = deviation(
    "jax>=0.8.1,<0.11",
    params=["overwritten", "read_then_overwritten", "one_overwritten"],
    error="AttributeError",
    match="accum",
    reason="a value that is no function of the argument has no cotangent to add to",
    issue="jax-ml/jax#33987",
)
COTANGENT_OF_THE_WHOLE = deviation(
    "jax>=0.8.1,<0.10",
    params=["added_to_a_part"],
    error="ValueError",
    match="expected cotangent type|Invalid shape for `addupdate`",
    reason="the cotangent of a part was taken for that of the whole reference",
    issue="jax-ml/jax@27f1ce6ac3d6",
)


@probe(
    source="jax-ml/jax#33987",
    params=[*WRITES],
    releases="jax>=0.7.2",
    deviations=[COTANGENT_OF_A_CONSTANT, COTANGENT_OF_THE_WHOLE],
)
def gradient_of_writes(env, name):
    """The gradient through a reference that is written to."""
    f, exact = WRITES[name]
    return Observed(jax.grad(jax.jit(f))(X), exact)


COTANGENTS_MIXED_UP = deviation(
    "jax<0.11",
    error="ValueError",
    match="Expected cotangent type float32.3,4.",
    reason="the transpose of a scan sorted cotangents by kind, and returned them in that order",
    issue="jax-ml/jax#32468",
)


@probe(source="jax-ml/jax#32468", releases="jax>=0.10", deviations=[COTANGENTS_MIXED_UP])
def gradient_added_to_a_reference(env):
    """`with_refs` of a `jax.vjp` adds the gradient of the second scanned array to a reference."""

    def f(first, second, x):
        def step(c, pair):
            return jnp.tanh(jnp.tanh(c @ pair[0]) @ pair[1]), None

        return lax.scan(step, x, (first, second))[0].sum()

    first, second = np.full((2, 3, 4), 0.1, np.float32), np.full((2, 4, 3), 0.2, np.float32)
    ref = new_reference(jnp.ones_like(second))
    _, backward = jax.vjp(f, first, second, X)
    backward.with_refs(jax.ad.GradValue(), ref, jax.ad.GradValue())(jnp.float32(1))
    return Observed(ref[...], 1 + np.asarray(jax.grad(f, 1)(first, second, X)))


INDICES = {
    "row": np.index_exp[1],
    "pairs": np.index_exp[np.arange(2), np.arange(2)],
    "pairs_around_dots": np.index_exp[np.arange(2), ..., np.arange(2)],
}


DOTS_COMPARED_WITH_ARRAYS = deviation(
    "jax<0.9.1",
    params=["pairs_around_dots"],
    outcome="ok",
    reason="the search for dots among the indices compared them with arrays",
    issue="jax-ml/jax@c2899d0cc77c",
)


@probe(
    source="jax-ml/jax@c2899d0cc77c",
    releases="jax>=0.7.2",
    params=[*INDICES],
    deviations=[DOTS_COMPARED_WITH_ARRAYS],
)
def read_by_index(env, name):
    """A reference is indexed as an array of NumPy, or the index is refused."""
    x, index = np.arange(12, dtype=np.float32).reshape(3, 4), INDICES[name]
    values = []
    observed = outcome(lambda: values.append(new_reference(x)[index]))
    return Observed((observed, values), ("ran", [x[index]]))


NO_MESSAGE = deviation(
    "jax<0.11",
    outcome="ok",
    reason="the search for the line did not know empty_ref",
    issue="jax-ml/jax#38853",
)


@probe(source="jax-ml/jax#38853", releases="jax>=0.10", deviations=[NO_MESSAGE])
def empty_reference_returned(env):
    """The error for a function that returns a reference from `jax.empty_ref` names its line."""
    observed = outcome(jax.jit(lambda: jax.empty_ref(jax.typeof(1.0))), "was created on line")
    return Observed(observed, "ValueError: was created on line")


SIZES_THAT_DIFFER = deviation(
    "jax>=0.8.2,<0.9",
    error="ValueError",
    match="safe_zip",
    reason="the residuals and the arguments of the backward pass were not as many",
    issue="jax-ml/jax@38ae07fce1d6",
)
NO_TRANSPOSE_INTO_REFERENCES = deviation(
    "jax>=0.9,<0.10",
    error="NotImplementedError",
    reason="the backward pass of a checkpoint could not add to a reference",
    issue="jax-ml/jax@38ae07fce1d6",
)


@probe(
    source="jax-ml/jax@38ae07fce1d6",
    releases="jax>=0.8.1",
    deviations=[SIZES_THAT_DIFFER, NO_TRANSPOSE_INTO_REFERENCES],
)
def checkpoint_added_to_a_reference(env):
    """`with_refs` of a `jax.vjp` of a checkpointed function adds the gradient to a reference."""
    x = floats(2)
    _, backward = jax.vjp(jax.checkpoint(jnp.sin), x)
    reference = new_reference(floats(1))
    backward.with_refs(reference)(floats(1))
    return Observed(np.asarray(reference[...]), 1 + np.cos(np.float64(2)))
