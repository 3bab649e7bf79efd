"""Mutable arrays in loops, branches, transformations and jitted functions, inside of `jit` and not.

A function that writes to references it made, or was given, gives the result of a plain loop.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import find, floats, new_reference, outcome

defaults(platforms=("cpu",))

X = floats(1, 2, 3)


def sum_by_scan(x):
    """Add the elements of a vector in a reference that a scan closes over."""
    total = new_reference(jnp.float32(0))

    def step(carry, element):
        total[...] += element
        return carry + 1, total[...]

    count, sums = lax.scan(step, 0, x)
    return total[...], sums, count


def sum_by_while(x):
    """Add the elements of a vector in a reference that a while_loop writes to."""
    total = new_reference(jnp.float32(0))

    def body(i):
        total[...] += x[i]
        return i + 1

    lax.while_loop(lambda i: i < 3, body, 0)
    return total[...]


def write_in_a_branch(x):
    """Write to a reference in one of two branches."""
    ref = new_reference(x)

    def first():
        ref[0] = 10.0

    def second():
        ref[1] = 20.0

    lax.cond(x[0] > 0, first, second)
    return ref[...]


def write_at_indices(x):
    """Write at a traced index, to a slice, and add to an array of indices."""
    ref = new_reference(jnp.concatenate([x, x]))
    ref[jnp.int32(x[0])] = 10.0
    ref[3:5] = x[:2] * 2
    ref[jnp.array([0, 5])] += 1.0
    return ref[...]


def write_in_inner_jit(x):
    """Hand a reference to a jitted function that writes to it."""
    ref = new_reference(x)

    @jax.jit
    def inner(ref, y):
        ref[0] += y
        return ref[0] * 2

    doubled = inner(ref, x[2])
    return ref[...], doubled


SUMS = np.cumsum(X, dtype=np.float64)
USES = {
    "scan": (sum_by_scan, (SUMS[-1], SUMS, np.int32(3))),
    "while_loop": (sum_by_while, SUMS[-1]),
    "cond": (write_in_a_branch, floats(10, 2, 3)),
    "indices": (write_at_indices, floats(2, 10, 3, 2, 4, 4)),
    "inner_jit": (write_in_inner_jit, (floats(4, 2, 3), floats(8))),
}


@probe(source="jax-ml/jax@1e2c56e261b6", params=[*USES])
def references_jitted(env, name):
    """Under jit, a reference is read and written in loops, branches and inner functions."""
    f, exact = USES[name]
    return Observed(jax.jit(f)(X), exact)


READ_FORWARDS = deviation(
    "jax>=0.7.1,<0.8",
    outcome="ok",
    reason="the rule that makes a program without references of the scan ignored `reverse`",
    issue="jax-ml/jax#32411",
)


@probe(source="jax-ml/jax#32411", deviations=[READ_FORWARDS])
def reversed_scan_over_a_reference(env):
    """A `scan` with `reverse=True` over a reference under jit begins with its last element.

    In 0.7.1 and 0.7.2 it silently began with the first.
    """

    @jax.jit
    def number(x):
        ref = new_reference(x)

        def step(count, element):
            element[...] += 10 * count
            return count + 1, None

        lax.scan(step, jnp.float32(1), ref, reverse=True)
        return ref[...]

    return Observed(number(X), floats(31, 22, 13))


NO_EAGER_BRANCHES = deviation(
    "jax<0.5",
    params=["cond"],
    error="AssertionError",
    reason="a branch outside of jit could not write to a reference",
)


@probe(source="jax-ml/jax@1e2c56e261b6", params=["scan", "cond"], deviations=[NO_EAGER_BRANCHES])
def references_eager(env, name):
    """Outside of jit, the same functions give the same results."""
    f, exact = USES[name]
    return Observed(f(X), exact)


REFERENCES_NOT_BATCHED = [
    deviation(
        "jax<0.6",
        params=["inner_jit"],
        error="NotImplementedError",
        match="Batching rule for 'mutable_array' not implemented",
        reason="references had no batching rule",
    ),
    deviation(
        "jax>=0.6,<0.7.2",
        params=["inner_jit"],
        error="AssertionError",
        reason="an inner jit that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.8,<0.8.2",
        params=["inner_jit"],
        error="TypeError",
        match="transpose permutation isn't a permutation",
        reason="an inner jit that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.8.2,<0.10.1",
        params=["inner_jit"],
        error="ValueError",
        match="axis 1 is out of bounds",
        reason="an inner jit that writes to a reference could not be batched",
    ),
    deviation(
        "jax<0.6",
        params=["scan"],
        error="TypeError",
        match="broadcast_dimensions must have length equal to operand ndim",
        reason="a scan that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.6,<0.6.2",
        params=["scan"],
        error="ValueError",
        match="x not in tuple",
        reason="a scan that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.6.2,<0.7.2",
        params=["scan"],
        error="Exception",
        match="vmapped value on an unbatched",
        reason="a scan that writes to a reference could not be batched",
    ),
]


@probe(
    source="jax-ml/jax@1e2c56e261b6",
    params=["scan", "inner_jit"],
    deviations=REFERENCES_NOT_BATCHED,
)
def references_in_lanes(env, name):
    """Under vmap, each lane has its own reference."""
    f, exact = USES[name]
    both = jax.tree_util.tree_map(lambda leaf: np.stack([leaf, leaf]), exact)
    return Observed(jax.jit(jax.vmap(f))(np.stack([X, X])), both)


COTANGENT_OF_A_REFERENCE = deviation(
    "jax<0.7",
    error="TypeError",
    match=r"Zero\(Ref",
    reason="the cotangent of a reference of a scan was a symbolic zero that is no array",
)


@probe(source="jax-ml/jax@be053828118e", deviations=[COTANGENT_OF_A_REFERENCE])
def gradient_through_a_loop(env):
    """The gradient of a product that a scan accumulates in a reference."""

    def product(x):
        total = new_reference(jnp.float32(1))

        def step(carry, element):
            total[...] = total[...] * element
            return carry, None

        lax.scan(step, 0, x)
        return total[...]

    return Observed(jax.jit(jax.grad(product))(X), floats(6, 3, 2))


@probe(source="jax-ml/jax@be053828118e")
def argument_of_jit(env):
    """A jitted function writes to a reference that it is given, and to one that it closes over."""
    one, other = new_reference(X), new_reference(X)

    @jax.jit
    def add(ref, y):
        ref[...] += y
        other[0] = y[0]

    add(one, X)
    add(one, 2 * X)
    return Observed((one[...], other[...]), (4 * X, floats(2, 2, 3)))


@probe(source="jax-ml/jax@be053828118e", records="what a reference may be used for is up to JAX")
def used_as_an_array(env):
    """The outcomes of a reference in place of an array, in `jnp`, arithmetic and NumPy."""
    ref = new_reference(X)
    uses = {
        "sin": lambda: jnp.sin(ref),
        "add": lambda: ref + 1,
        "asarray": lambda: jnp.asarray(ref),
        "numpy": lambda: np.asarray(ref),
        "device_put": lambda: jax.device_put(ref),
        "len": lambda: len(ref),
        "iter": lambda: list(ref),
        "hash": lambda: hash(ref),
        "tree": lambda: jax.tree_util.tree_map(lambda r: r[...], [ref]),
    }
    return {name: outcome(use) for name, use in uses.items()}


MOVED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="a reference without a device was copied to the devices of the program",
    issue="jax-ml/jax@89fd5e81e004",
)


@probe(source="jax-ml/jax@89fd5e81e004", devices=4, releases="jax>=0.7.2", deviations=[MOVED])
def reference_on_another_device(env):
    """A program on a mesh refuses a reference on one device: it could not write to it in place."""
    ref = new_reference(jnp.arange(4.0))
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    f = jax.jit(lambda: jnp.ones(8) + ref[...][0], out_shardings=rows)
    return Observed(ending(f, words=["incompatible devices"]), "ValueError: incompatible devices")


INNER_REFERENCE_ESCAPED = deviation(
    "jax<0.4.34",
    error="ValueError",
    match="`JaxprInputEffect` Read<0> is invalid",
    reason="the effects of a reference of an inner function were taken for those of an argument",
    issue="jax-ml/jax@80f963c003f9",
)


@probe(source="jax-ml/jax@80f963c003f9", deviations=[INNER_REFERENCE_ESCAPED])
def made_in_an_inner_jit(env):
    """A jitted function may make a reference inside of another jitted function, from 0.4.34."""

    @jax.jit
    def inner():
        return new_reference(jnp.array([10.0, 0, 0]))[...]

    return Observed(jax.jit(lambda x: x + inner())(X), floats(11, 2, 3))


NO_ADDUPDATE = deviation(
    "jax<0.7.1",
    error="AttributeError",
    match="addupdate",
    reason="references had no such method",
    issue="jax-ml/jax@387293f9be99",
)


@probe(source="jax-ml/jax@387293f9be99", deviations=[NO_ADDUPDATE])
def added_by_a_method(env):
    """`ref.addupdate(x)` adds to the whole reference, under jit and vmap, from 0.7.1."""
    ref = new_reference(X)

    def add(ref):
        ref.addupdate(jnp.ones_like(ref[...]))

    jax.jit(add)(ref)
    jax.vmap(add)(ref)
    return Observed(ref[...], X + 2)


def copy_plus_one(target, source):
    """Write to one reference what another holds, plus one."""
    target[...] = source[...] + 1


SAME_TWICE = {
    "jit": lambda ref: jax.jit(copy_plus_one)(ref, ref),
    "vmap": lambda ref: jax.vmap(copy_plus_one)(ref, ref),
    "scan": lambda ref: lax.scan(lambda c, x: (c, copy_plus_one(*x)), 0, (ref, ref)),
    "cond": lambda ref: lax.cond(True, copy_plus_one, lambda *_: None, ref, ref),
    "jit_and_closed_over": lambda ref: jax.jit(lambda r: copy_plus_one(r, ref))(ref),
}


@probe(
    source="jax-ml/jax@5f3e95021fca",
    records="which uses of a reference are refused is up to JAX",
)
def same_reference_twice(env):
    """A function that gets the same reference twice is refused, by more and more functions."""
    words = ("only one reference to a mutable array", "closed over and passed", "donate the same")
    return {
        name: outcome(lambda use=use: use(new_reference(X)), *words)
        for name, use in SAME_TWICE.items()
    }


def returned_by_cond(ref):
    """Return a reference from a branch."""
    return lax.cond(True, lambda: ref, lambda: ref)


def returned_by_a_rule(ref):
    """Return a reference from a function with a derivative of its own."""
    f = jax.custom_vjp(lambda r: r)
    f.defvjp(lambda r: (r, None), lambda _, c: (c,))
    return f(ref)


RETURNS = {
    "jit": jax.jit(lambda r: r),
    "vmap": jax.vmap(lambda r: r),
    "new_in_jit": lambda _: jax.jit(lambda: new_reference(X))(),
    "cond": returned_by_cond,
    "custom_vjp": returned_by_a_rule,
    "scan": lambda _: lax.scan(lambda c, _: (c, new_reference(X)), 0, None, length=2),
    "scan_carry": lambda ref: lax.scan(lambda c, _: (c, None), ref, None, length=2),
}


@probe(
    source="jax-ml/jax@b6482f126ea9",
    records="which uses of a reference are refused is up to JAX",
)
def returned_reference(env):
    """The outcomes of functions that return a reference, in transformations and loops."""
    return {
        name: outcome(lambda use=use: use(new_reference(X)), "returned a mutable array reference")
        for name, use in RETURNS.items()
    }


def scale_and_count(x, ref):
    """Return the product with the factor in a reference, and add one to the factor."""
    y = x * ref[...]
    ref[...] += 1.0
    return y


NOT_LINEARIZED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="a checkpoint could not use references of its caller",
    issue="jax-ml/jax@ddc67f06ac01",
)
RUN_TWICE = deviation(
    "jax>=0.8.1",
    outcome="ok",
    reason="the backward pass runs the function again, with its writes",
)


@probe(source="jax-ml/jax@ddc67f06ac01", deviations=[NOT_LINEARIZED, RUN_TWICE])
def checkpoint_of_a_counter(env):
    """The gradient of a `jax.checkpoint` that reads a factor from a reference and adds to it."""
    slope, ref = jax.grad(jax.checkpoint(scale_and_count)), new_reference(jnp.float32(1))
    refused = outcome(lambda: slope(2.0, new_reference(jnp.float32(1))))
    if refused != "ran":
        return Observed(refused, (floats(1), floats(2)))
    return Observed((slope(2.0, ref), ref[...]), (floats(1), floats(2)))


START_SHARED = [
    deviation(
        "jax<0.6",
        outcome="ok",
        reason="the lanes shared one reference, and each got the vector of all results",
        issue="jax-ml/jax@e33413c5ca8e",
    ),
    deviation(
        "jax>=0.6,<0.6.2",
        error="ValueError",
        match="not in tuple",
        reason="a reference that starts with the same value in all lanes could not be batched",
        issue="jax-ml/jax@e33413c5ca8e",
    ),
    deviation(
        "jax>=0.6.2,<0.7.2",
        error="Exception",
        match="vmapped value on an unbatched",
        reason="a reference that starts with the same value in all lanes could not be batched",
        issue="jax-ml/jax@e33413c5ca8e",
    ),
]


@probe(source="jax-ml/jax@e33413c5ca8e", deviations=START_SHARED)
def same_start_in_lanes(env):
    """Under vmap, a reference that starts with a constant becomes one for each lane."""

    @jax.jit
    def add_to_one(x):
        ref = new_reference(jnp.float32(1))
        ref[...] += x
        return ref[...]

    return Observed(jax.vmap(add_to_one)(X), X + 1)


NOT_PASSED_WHEN_COMPILED = deviation(
    "jax<0.7.1",
    error="ValueError",
    match="argument 2 is longer than argument 1",
    reason="the compiled function did not get the references that it closes over",
    issue="jax-ml/jax@c055b60156fe",
)


@probe(source="jax-ml/jax@c055b60156fe", deviations=[NOT_PASSED_WHEN_COMPILED])
def closed_over_and_compiled(env):
    """A function that was compiled ahead of time writes to a reference that it closes over."""
    ref = new_reference(X)

    def add():
        ref[...] += 1.0

    jax.jit(add).lower().compile()()
    return Observed(ref[...], X + 1)


def fill(part):
    """Write to a part of a reference."""
    part[...] = jnp.full_like(part[...], 9)


PARTS = {
    "jit": lambda ref: jax.jit(fill)(ref.at[0]),
    "cond": lambda ref: lax.cond(True, fill, lambda _: None, ref.at[0]),
    "vmap": lambda ref: jax.vmap(fill)(ref.at[0]),
}


@probe(
    source="jax-ml/jax@60a8d25b7d0f",
    releases="jax>=0.7",
    records="which uses of a reference are refused is up to JAX",
)
def part_of_a_reference(env):
    """Transformations and branches get a part of a reference, `ref.at[0]`, and write to it."""
    observed = {}
    for name, use in PARTS.items():
        ref = new_reference(np.zeros((2, 2), np.float32))
        observed[name] = outcome(lambda use=use, ref=ref: use(ref)), ref[...]
    return observed


FREEZE_NOT_BATCHED = [
    deviation(
        "jax<0.6",
        error="NotImplementedError",
        match="Batching rule for 'mutable_array' not implemented",
        reason="references had no batching rule",
        issue="jax-ml/jax@05269a8ec90a",
    ),
    deviation(
        "jax>=0.6,<0.8",
        error="NotImplementedError",
        match="Batching rule for 'freeze' not implemented",
        reason="`freeze` had no batching rule",
        issue="jax-ml/jax@387293f9be99",
    ),
]


@probe(source="jax-ml/jax@387293f9be99", releases="jax>=0.5", deviations=FREEZE_NOT_BATCHED)
def frozen_in_lanes(env):
    """A function that makes a reference and freezes it runs under vmap, from 0.8.0."""
    freeze = find("jax:freeze", "jax.experimental:freeze", "jax._src.core:freeze")
    return Observed(jax.vmap(lambda x: freeze(new_reference(x)))(X), X)


AXES_OF_AN_ELEMENT = deviation(
    "jax>=0.8,<0.8.2",
    error="ValueError",
    match="out of bounds",
    reason="the batching rule moved an axis that the element no longer has",
    issue="jax-ml/jax#33309",
)


@probe(source="jax-ml/jax#33309", releases="jax>=0.7.1", deviations=[AXES_OF_AN_ELEMENT])
def element_of_a_mapped_reference(env):
    """`vmap` of a function that reads the element `ref[0]` of a reference: one from each row."""
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    value = jax.vmap(lambda ref: ref[0])(new_reference(jnp.asarray(rows)))
    return Observed(value, rows[:, 0])


def squared_in_place(x):
    """Return the square of a number, written to a reference."""
    ref = new_reference(x)
    ref[...] *= ref[...]
    return ref[...]


FORWARD = {
    "jvp": lambda x: jax.jvp(squared_in_place, (x,), (np.float32(1),))[1],
    "jacfwd": jax.jacfwd(squared_in_place),
    "vmap_of_grad": lambda x: jax.vmap(jax.grad(squared_in_place))(x[None])[0],
}


REFERENCES_NOT_DIFFERENTIATED = [
    deviation(
        "jax<0.4.38",
        params=["jvp"],
        outcome="raised",
        reason="references had no rule of differentiation",
    ),
    deviation(
        "jax<0.6",
        params=["jacfwd"],
        outcome="raised",
        reason="references had no batching rule",
    ),
    deviation(
        "jax>=0.7.2",
        params=["jacfwd"],
        outcome="raised",
        reason="the tangent of a reference that starts without lanes has none, and takes one",
    ),
    deviation(
        "jax<0.8",
        params=["vmap_of_grad"],
        outcome="raised",
        reason="references could not be transposed, or batched",
    ),
]


@probe(
    source="jax-ml/jax@1e2c56e261b6", params=[*FORWARD], deviations=REFERENCES_NOT_DIFFERENTIATED
)
def derivative_in_place(env, name):
    """The derivative of a function that squares a number in a reference."""
    return Observed(FORWARD[name](np.float32(3)), np.float32(6))


NO_BRANCHES_IN_LANES = deviation(
    error="NotImplementedError",
    match="State effect not supported in vmap-of-cond",
    reason="the batching rule of cond has no references",
    issue="jax-ml/jax#39290",
)


@probe(source="jax-ml/jax#39290", releases="jax>=0.7.1", deviations=[NO_BRANCHES_IN_LANES])
def branch_in_lanes(env):
    """`vmap` of a `cond` writes to the references of the lanes whose predicate is true."""
    ref = new_reference(np.zeros(3, np.float32))

    def f(chosen, ref):
        def write():
            ref[...] += 1

        lax.cond(chosen, write, lambda: None)

    jax.vmap(f)(np.array([True, False, True]), ref)
    return Observed(np.asarray(ref[...]), floats(1, 0, 1))


NO_REFERENCES_IN_A_JVP_RULE = deviation(
    params=["custom_jvp"],
    error="NotImplementedError",
    match="No state discharge rule implemented for primitive: custom_jvp_call",
    reason="a program with a custom_jvp function that writes to a reference cannot be lowered",
    issue="jax-ml/jax#27470",
)
NO_REFERENCES_IN_A_VJP_RULE = deviation(
    "jax<0.7.1",
    params=["custom_vjp"],
    error="NotImplementedError",
    match="No state discharge rule implemented for primitive: custom_vjp_call",
    reason="a program with a custom_vjp function that writes to a reference cannot be lowered",
    issue="jax-ml/jax#27470",
)


@probe(
    source="jax-ml/jax#27470",
    params=["custom_jvp", "custom_vjp"],
    deviations=[NO_REFERENCES_IN_A_JVP_RULE, NO_REFERENCES_IN_A_VJP_RULE],
)
def written_by_a_function_with_a_rule(env, name):
    """A jitted function with a custom derivative writes to a reference that it closes over."""
    ref = new_reference(np.float32(0))

    def f(x):
        ref[...] = 3 * x
        return x * x

    g = getattr(jax, name)(f)
    if name == "custom_jvp":
        g.defjvp(lambda primals, tangents: (g(*primals), 2 * primals[0] * tangents[0]))
    else:
        g.defvjp(lambda x: (g(x), x), lambda x, cotangent: (2 * x * cotangent,))
    return Observed(
        (jax.jit(g)(np.float32(2)), np.asarray(ref[...])), (np.float32(4), np.float32(6))
    )


DEAD_WRITES_KEPT = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="freezing a reference counted as an effect",
    issue="jax-ml/jax@54603e2e7241",
)


@probe(source="jax-ml/jax@54603e2e7241", releases="jax>=0.8", deviations=[DEAD_WRITES_KEPT])
def unused_result_of_a_reference(env):
    """The program has no trace of an inner jit that writes to its own reference for nothing."""

    @jax.jit
    def add(x):
        ref = jax.new_ref(x)
        ref[...] += 1
        return jax.freeze(ref)

    lowered = jax.jit(lambda x, y: (add(y), x)[1]).lower(X, X)
    return Observed("stablehlo.add" in lowered.as_text(), False)


ONLY_OUTSIDE_OF_JIT = deviation(
    "jax<0.8",
    outcome="ok",
    reason="a traced reference was no instance of the class",
    issue="jax-ml/jax@dbba284efcb4",
)


@probe(source="jax-ml/jax@dbba284efcb4", releases="jax>=0.7.2", deviations=[ONLY_OUTSIDE_OF_JIT])
def class_of_a_reference(env):
    """Under jit too, a reference is an instance of `jax.Ref`."""
    found = []
    jax.jit(lambda ref: found.append(isinstance(ref, jax.Ref)))(jax.new_ref(X))
    return Observed([isinstance(jax.new_ref(X), jax.Ref), *found], [True, True])
