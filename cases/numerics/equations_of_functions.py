"""Equations of array functions, as programs that read jaxprs see them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.equations import counts, equations

from ._helpers import f32

defaults(platforms=("cpu",))

STACKED_BY_CONCATENATION = deviation(
    "jax<0.10.1",
    params=["stack", "unstack"],
    outcome="ok",
    reason="arrays were reshaped and concatenated, or split and reshaped",
    issue="jax-ml/jax@bfafe3c14237",
)
ITERATED_BY_SLICES = deviation(
    "jax<0.11",
    params=["iteration"],
    outcome="ok",
    reason="each element was a slice",
    issue="jax-ml/jax@0fc723b73621",
)
GATHERED = deviation(
    "jax<0.9.1",
    params=["strided", "last"],
    outcome="ok",
    reason="these indices were gathered, or sliced at a dynamic position",
    issue="jax-ml/jax@b088d3a0717b",
)
ELLIPSIS_GATHERED = deviation(
    "jax<0.6",
    params=["ellipsis"],
    outcome="ok",
    reason="the `...` was removed after the entries were counted, and was one too many",
    issue="jax-ml/jax@35d75183c70e",
)
READS = "slice dynamic_slice gather"
ONE_SLICE = {"slice": 1, "dynamic_slice": 0, "gather": 0}
X = np.arange(4, dtype=np.float32)
FUNCTIONS = {
    "stack": (lambda x: jnp.stack([x, x]), "stack concatenate", {"stack": 1, "concatenate": 0}),
    "unstack": (jnp.unstack, "unstack split", {"unstack": 1, "split": 0}),
    "strided": (lambda x: x[::2], READS, ONE_SLICE),
    "last": (lambda x: x[-1], READS, ONE_SLICE),
    "ellipsis": (lambda x: x[..., 0], READS, ONE_SLICE),
    "iteration": (list, "unstack slice", {"unstack": 1, "slice": 0}),
}


@probe(
    source="jax-ml/jax@bfafe3c14237",
    params=[*FUNCTIONS],
    deviations=[STACKED_BY_CONCATENATION, ITERATED_BY_SLICES, GATHERED, ELLIPSIS_GATHERED],
)
def equation_of(env, name):
    """`stack`, `unstack`, iteration and some indices are an equation each, from some release on."""
    fn, names, expected = FUNCTIONS[name]
    return Observed(counts(fn, (X,), names), reference=expected)


PADDING_OF_NUMPY = deviation(
    "jax<0.9",
    outcome="ok",
    reason="the padding was made of integers of NumPy",
    issue="jax-ml/jax@6ce4314fc1b6",
)


@probe(source="jax-ml/jax@6ce4314fc1b6", deviations=[PADDING_OF_NUMPY])
def padding_in_the_text_of_a_convolution(env):
    """The jaxpr of a convolution with `padding="SAME"` prints plain integers from 0.9.0 on."""
    x, w = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 3), np.float32)
    text = str(jax.make_jaxpr(lambda x, w: lax.conv(x, w, (2,), "SAME"))(x, w))
    return Observed({"NumPy": "np.int" in text}, reference={"NumPy": False})


SINGLETON_ADDED = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="only the axis of one operand was removed before the product",
    issue="jax-ml/jax@a0abb1036ec2",
)


@probe(source="jax-ml/jax@a0abb1036ec2", deviations=[SINGLETON_ADDED])
def product_of_batches_of_one(env):
    """`jnp.matmul` of two batches of length 1 multiplies matrices from 0.10.1 on."""
    a, b = f32(1, 2, 3, 4).reshape(1, 2, 2), f32(5, 6, 7, 8).reshape(1, 2, 2)
    jaxpr = jax.make_jaxpr(jnp.matmul)(a, b)
    dots = [e for e in equations(jaxpr) if e.primitive.name == "dot_general"]
    return Observed(
        {"axes of the product": [e.outvars[0].aval.ndim for e in dots]},
        reference={"axes of the product": [2]},
    )
