"""References in the conditions and bodies of loops, in branches, and in kernels of their maker."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import find, new_reference, outcome

defaults(platforms=("cpu",), releases="jax>=0.4.33")


def count_to_three(ref):
    """Add one to a reference until it is three, but at most ten times; return the last index."""

    def step(i):
        ref[...] = ref[...] + 1
        return i + 1

    return lax.while_loop(lambda i: (ref[...] < 3) & (i < 10), step, 0)


def steps_of_a_reference():
    """Count in a reference that the function makes."""
    ref = new_reference(jnp.float32(0))
    return count_to_three(ref), ref[...]


NO_READS = deviation(
    "jax<0.7.2",
    error="NotImplementedError",
    reason="the condition of a while loop could not read a reference",
    issue="jax-ml/jax@06a05902970e",
)
STALE_READS = deviation(
    "jax>=0.7.2",
    outcome="ok",
    reason="the condition is given the value before the loop",
    issue="jax-ml/jax@06a05902970e",
)


@probe(source="jax-ml/jax@06a05902970e", deviations=[NO_READS, STALE_READS])
def condition_that_reads_a_reference(env):
    """The condition of a `while_loop` under jit reads what the body wrote to a reference.

    From 0.7.2 it reads the value before the loop: without a bound, the loop would not end.
    """
    return Observed(jax.jit(steps_of_a_reference)(), reference=(np.int32(3), np.float32(3)))


NO_DERIVATIVE = deviation(
    "jax<0.4.38",
    error="NotImplementedError",
    match="Differentiation rule",
    reason="references had no derivatives",
    issue="jax-ml/jax@be053828118e",
)
COTANGENT_REFUSED = deviation(
    "jax>=0.4.38,<0.7.1",
    error="TypeError",
    match="UndefinedPrimal",
    reason="the backward pass did not know references",
    issue="jax-ml/jax@be053828118e",
)
REVERSED = deviation(
    "jax>=0.7.1,<0.8",
    outcome="ok",
    reason="the backward pass took the elements in reverse order",
    issue="jax-ml/jax@06a05902970e",
)


@probe(source="jax-ml/jax@06a05902970e", deviations=[NO_DERIVATIVE, COTANGENT_REFUSED, REVERSED])
def gradient_of_a_scan_over_a_reference(env):
    """The gradient of a sum of squares over the elements of a reference, by a scan.

    In 0.7.1 and 0.7.2 the gradient is silently in reverse order.
    """

    def f(x):
        def add(total, element):
            return total + element[...] ** 2, None

        return lax.scan(add, jnp.float32(0), new_reference(x))[0]

    x = np.float32([1, 2, 3])
    return Observed(jax.grad(f)(x), reference=2 * x)


def written_in_a_branch(x):
    """Write to a reference in one of two branches, and sum it."""
    ref = new_reference(x)

    def write():
        ref[0] = 3 * x[1]

    lax.cond(x[0] > 0, write, lambda: None)
    return ref[...].sum()


BRANCH_ASSERTED = deviation(
    "jax>=0.4.38,<0.5",
    error="AssertionError",
    reason="what a branch closes over had to belong to the same trace",
    issue="jax-ml/jax@e1af93a9ba6e",
)
NOT_THROUGH_BRANCHES = deviation(
    "jax>=0.5,<0.8.1",
    error="NotImplementedError",
    match="State effect not supported in cond",
    reason="a branch that writes to a reference had no derivative",
    issue="jax-ml/jax@e1af93a9ba6e",
)


@probe(
    source="jax-ml/jax@e1af93a9ba6e",
    deviations=[NO_DERIVATIVE, BRANCH_ASSERTED, NOT_THROUGH_BRANCHES],
)
def gradient_of_a_write_in_a_branch(env):
    """The gradient of a function that writes to a reference in a branch of `lax.cond`."""
    x = np.float32([1, 2, 3])
    return Observed(jax.jit(jax.grad(written_in_a_branch))(x), reference=np.float32([0, 4, 1]))


WRITES_FORGOTTEN = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the backward pass did not know what was written",
    issue="jax-ml/jax@fc2edbfac873",
)


@probe(source="jax-ml/jax@fc2edbfac873", releases="jax>=0.4.38", deviations=[WRITES_FORGOTTEN])
def gradient_of_a_frozen_reference(env):
    """The gradient of a function that writes to a reference and freezes it.

    Up to 0.6.1 it is silently that of a function that writes nothing.
    """
    freeze = find("jax:freeze", "jax.experimental:freeze", "jax._src.core:freeze")

    def f(x):
        ref = new_reference(x)
        ref[0] = 2 * x[1]
        return freeze(ref).sum()

    return Observed(jax.grad(f)(np.float32([1, 2, 3])), reference=np.float32([0, 3, 1]))


NO_BUFFER_TO_REPLACE = deviation(
    "jax>=0.7,<0.7.1",
    error="AttributeError",
    match="_replace_with",
    reason="the backward pass took an array of NumPy for a reference",
    issue="jax-ml/jax@be053828118e",
)
INTEGERS_ASSERTED = deviation(
    "jax>=0.7.1,<0.8",
    error="AssertionError",
    reason="the backward pass made cotangents of integers",
    issue="jax-ml/jax@be053828118e",
)


@probe(source="jax-ml/jax@be053828118e", deviations=[NO_BUFFER_TO_REPLACE, INTEGERS_ASSERTED])
def gradient_with_a_counter(env):
    """The gradient of a function that counts in a reference of integers."""

    def f(x):
        count = new_reference(np.int32(0))
        count[...] += 1
        return (x * count[...]).sum()

    return Observed(jax.grad(f)(np.float32([1, 2, 3])), reference=np.ones(3, np.float32))


LOST = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the interpreter dropped the values of references of the caller",
    issue="jax-ml/jax@c34e25d6f4ea",
)


@probe(source="jax-ml/jax@c34e25d6f4ea", releases="jax>=0.4.34", deviations=[LOST])
def written_by_a_kernel(env):
    """A kernel under jit writes to a reference that it closes over.

    Up to 0.11.1 the writes are silently lost in interpret mode.
    """

    @jax.jit
    def f(x):
        ref = new_reference(jnp.zeros(4))

        def kernel(x_ref, o_ref):
            ref[...] = x_ref[...]
            o_ref[...] = 2 * x_ref[...]

        out = jax.ShapeDtypeStruct((4,), np.float32)
        return pl.pallas_call(kernel, out_shape=out, interpret=True)(x), ref[...]

    x = np.arange(4, dtype=np.float32)
    return Observed(f(x), reference=(2 * x, x))


REFUSED_IN_LANES = deviation(
    "jax>=0.8",
    outcome="ok",
    reason="each write within vmap was taken for one that differs by lane",
    issue="jax-ml/jax@581cb628a5f6",
)


@probe(source="jax-ml/jax@581cb628a5f6", releases="jax>=0.6", deviations=[REFUSED_IN_LANES])
def constant_written_in_lanes(env):
    """Under `vmap`, a constant is written to a reference that the function closes over."""
    ref = new_reference(np.float32([1, 2, 3]))

    def write(x):
        ref[0] = jnp.float32(9)
        return x

    how = outcome(lambda: jax.vmap(write)(np.ones(2, np.float32)), "vmapped value")
    return Observed((how, ref[...]), reference=("ran", np.float32([9, 2, 3])))


NO_INDEX = deviation(
    "jax<0.6.2",
    error="ValueError",
    match="tuple.index",
    reason="the batching rule looked for an index",
    issue="jax-ml/jax@581cb628a5f6",
)
NOT_BATCHED = deviation(
    "jax>=0.6.2,<0.7.2",
    error="Exception",
    match="vmapped value",
    reason="a reference of the outer lanes was not batched by the inner",
    issue="jax-ml/jax@581cb628a5f6",
)


@probe(source="jax-ml/jax@581cb628a5f6", releases="jax>=0.6", deviations=[NO_INDEX, NOT_BATCHED])
def lanes_of_lanes(env):
    """A function that makes a reference and adds to it, under `vmap` of `vmap`."""

    def f(x, y):
        ref = new_reference(x)
        ref[...] += y
        return ref[...]

    x = np.float32([1, 2, 3])
    both = jax.vmap(jax.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    return Observed(both(x, x), reference=x[:, None] + x)


LANES_NOT_MOVED = deviation(
    "jax>=0.8,<0.8.2",
    outcome="ok",
    reason="the lanes of what was read were taken to be on the first axis",
    issue="jax-ml/jax#33309",
)


@probe(source="jax-ml/jax#33309", releases="jax>=0.6", deviations=[LANES_NOT_MOVED])
def slice_in_lanes(env):
    """Under `vmap` with `in_axes=1`, a slice of a reference is one of the column of each lane.

    In 0.8.0 and 0.8.1 the result is silently transposed.
    """
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    lanes = jax.vmap(lambda ref: ref[1:4], in_axes=1)(new_reference(x))
    return Observed(lanes, reference=x[1:4].T)
