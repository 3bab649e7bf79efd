"""Kernels under vmap, jvp, grad, scan, shard_map and `disable_jit`, in interpret mode."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import (
    F32,
    block,
    copy,
    describe,
    double,
    kernel_call,
    prefetch,
    rows,
    shape,
    square,
    square_elements,
    vector,
    window,
)

defaults(platforms=("cpu",))


def _specs(count=1):
    return {"grid": (4,), "in_specs": [rows()] * count, "out_specs": rows()}


def _numbered(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 10 * pl.program_id(0) + 100 * pl.num_programs(0)


def two():
    """Return two vectors."""
    return vector(16).reshape(2, 8)


STEPS = np.repeat([0, 10, 20, 30], 2).astype(F32) + 400


def _nested():
    f, x = kernel_call(_numbered, shape(8), **_specs()), vector(48).reshape(3, 2, 8)
    return jax.vmap(jax.vmap(f), in_axes=1, out_axes=1), [x], x + STEPS


def _second_axis():
    f = kernel_call(double, shape(8), **_specs())
    return jax.vmap(f, in_axes=1), [two().T.copy()], 2 * two()


def _scratch():
    def kernel(x_ref, o_ref, scratch_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            scratch_ref[...] = jnp.zeros_like(scratch_ref)

        scratch_ref[...] += x_ref[...]
        o_ref[...] = scratch_ref[...]

    spec = prefetch(0, (4,), [rows()], rows(), [pltpu.VMEM((2,), F32)])
    f = kernel_call(kernel, shape(8), grid_spec=spec)
    return jax.vmap(f), [two()], np.cumsum(two().reshape(2, 4, 2), 1).reshape(2, 8)


def _prefetch():
    spec = block((1, 4), lambda i, indices: (indices[i], 0))
    out_spec = block((1, 4), lambda i, _: (i, 0))

    def kernel(_, x_ref, o_ref):
        copy(x_ref, o_ref)

    f = kernel_call(kernel, shape(4, 4), grid_spec=prefetch(1, (4,), [spec], out_spec))
    indices = np.array([[2, 0, 3, 1], [0, 1, 2, 2]], np.int32)
    return jax.vmap(f, in_axes=(0, None)), [indices, square()], square()[indices]


def _in_place():
    def kernel(y_ref, x_ref, o_ref):
        o_ref[0] = 10 * x_ref[1] + y_ref[0]

    f = kernel_call(kernel, shape(8), input_output_aliases={1: 0})
    exact = np.stack([vector()] * 2)
    exact[:, 0] = 10 + two()[:, 0]
    return jax.vmap(f, in_axes=(0, None)), [two(), vector()], exact


def _in_place_second_axis():
    f = kernel_call(double, shape(8), input_output_aliases={0: 0})
    return jax.vmap(f, in_axes=1), [two().T], 2 * two()


def _traced_grid():
    def f(n, x):
        specs = {"in_specs": [rows()], "out_specs": rows(), "input_output_aliases": {0: 0}}
        return pl.pallas_call(double, out_shape=shape(8), grid=(n,), interpret=True, **specs)(x)

    exact = np.where(np.arange(8) < [[4], [2]], 2 * two(), two())
    return jax.vmap(f), [np.array([2, 1], np.int32), two()], exact


def _padded_windows():
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.where(jnp.isnan(x_ref[...]), -1, x_ref[...])

    specs = {"in_specs": [window(2, lambda i: (2 * i,), (1, 1))], "out_specs": rows()}
    f = kernel_call(kernel, shape(10), grid=(5,), **specs)
    return jax.vmap(f), [two()], np.pad(two(), ((0, 0), (1, 1)), constant_values=-1)


BATCHED = {
    "nested": _nested,
    "second_axis": _second_axis,
    "scratch": _scratch,
    "prefetch": _prefetch,
    "in_place": _in_place,
    "in_place_second_axis": _in_place_second_axis,
    "traced_grid": _traced_grid,
    "padded_windows": _padded_windows,
}
NO_PADDING_FOR_THE_BATCH = deviation(
    "jax<0.6.1",
    params=["padded_windows"],
    error="ValueError",
    match="length of padding_config",
    reason="the padding of the windows had no entry for the batch",
    issue="jax-ml/jax@eab1dfccbca4",
)


ALIASED_ARGUMENT_NOT_TRANSPOSED = deviation(
    "jax<0.4.31",
    params=["in_place_second_axis"],
    error="ValueError",
    match="Cannot lower jaxpr with verifier errors",
    reason="the batch stayed in the second axis of the argument, but not in that of the result",
    issue="jax-ml/jax@8ce0b55c86f3",
)


@probe(
    source="jax-ml/jax@8ce0b55c86f3",
    params=[*BATCHED],
    deviations=[NO_PADDING_FOR_THE_BATCH, ALIASED_ARGUMENT_NOT_TRANSPOSED],
)
def batched(env, name):
    """Vmap of a kernel: program ids, index maps and aliases do not see the batch."""
    f, args, reference = BATCHED[name]()
    return Observed(jax.jit(f)(*args), reference=reference)


def _push(f, x=None):
    x = vector() if x is None else x
    return jax.jit(lambda y: jax.jvp(f, (y,), (jnp.ones_like(y),)))(x)


def _kernel_of_steps(x_ref, o_ref):
    o_ref[...] = x_ref[...] * x_ref[...] + pl.program_id(0)


TANGENTS = {
    "blocks": lambda: kernel_call(square_elements, shape(8), **_specs()),
    "program_id": lambda: kernel_call(_kernel_of_steps, shape(8), **_specs()),
    "in_place": lambda: kernel_call(square_elements, shape(8), input_output_aliases={0: 0}),
}
NO_PROGRAM_ID = deviation(
    "jax>=0.4.30",
    params=["program_id"],
    error="AssertionError",
    reason="the derivative of the kernel is traced without the grid",
    issue="jax-ml/jax#37521",
)
NO_ALIASING = deviation(
    "jax>=0.4.30",
    params=["in_place"],
    error="NotImplementedError",
    match="JVP with aliasing not supported",
    reason="the rule has no aliases",
)


@probe(source="jax-ml/jax#37521", params=[*TANGENTS], deviations=[NO_PROGRAM_ID, NO_ALIASING])
def tangent(env, name):
    """Jvp differentiates a kernel, but not if it calls program_id or has aliases."""
    value, tangent = _push(TANGENTS[name]())
    steps = np.repeat([0, 1, 2, 3], 2) if name == "program_id" else 0
    exact = {"value": (vector() ** 2 + steps).astype(F32), "tangent": 2 * vector()}
    return Observed({"value": value, "tangent": tangent}, reference=exact)


ZERO_TANGENT_MISCOUNTED = deviation(
    "jax>=0.4.30",
    error="ValueError",
    match="zip",
    reason="the rule counts a block specification for the tangent that is zero",
    issue="jax-ml/jax#37267",
)


@probe(source="jax-ml/jax#37267", deviations=[ZERO_TANGENT_MISCOUNTED])
def one_argument_is_constant(env):
    """Jvp of a kernel fails if one of two arguments is constant."""

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * y_ref[...]

    f = kernel_call(kernel, shape(8))
    return Observed(
        _push(lambda x: f(x, 3 * vector())), reference=(3 * vector() ** 2, 3 * vector())
    )


INTEGER_TANGENT_STORED = deviation(
    "jax<0.4.34",
    error="ValueError",
    match="Invalid dtype for `swap`",
    reason="a tangent of dtype float0 was stored",
)
INTEGER_TANGENT_STORED_AGAIN = deviation(
    "jax>=0.6.1",
    error="TypeError",
    match="float0",
    reason="a tangent of dtype float0 is stored",
)


@probe(source="jax-ml/jax#37521", deviations=[INTEGER_TANGENT_STORED, INTEGER_TANGENT_STORED_AGAIN])
def integer_output(env):
    """Jvp of a kernel with an integer output works from 0.4.34 to 0.6.0 only."""

    def kernel(x_ref, o_ref, n_ref):
        o_ref[...] = x_ref[...] * x_ref[...]
        n_ref[...] = x_ref[...].astype(np.int32)

    f = kernel_call(kernel, (shape(8), shape(8, dtype=np.int32)))
    return Observed(_push(lambda x: f(x)[0]), reference=(vector() ** 2, 2 * vector()))


NO_MESSAGE = deviation(
    "jax<0.4.38",
    outcome="ok",
    match="AssertionError",
    reason="an AssertionError without a message",
    issue="jax-ml/jax#22197",
)


@probe(source="jax-ml/jax#22197", deviations=[NO_MESSAGE])
def gradient(env):
    """Grad of a kernel is refused, from 0.4.38 by an error with words; there is no transpose."""
    f = kernel_call(square_elements, shape(8))
    text = describe(lambda: jax.jit(jax.grad(lambda x: f(x).sum()))(vector()))
    expected = "ValueError: Linearization failed to produce known values"
    return Observed(text[: len(expected)], reference=expected)


def _custom_gradient():
    def backward(x_ref, g_ref, o_ref):
        o_ref[...] = 2 * x_ref[...] * g_ref[...]

    forward = kernel_call(square_elements, shape(8), **_specs())
    f = jax.custom_vjp(forward)
    rule = kernel_call(backward, shape(8), **_specs(2))
    f.defvjp(lambda x: (forward(x), x), lambda x, g: (rule(x, g),))
    return jax.grad(lambda x: f(x).sum()), 2 * vector()


def _in_scan():
    f = kernel_call(double, shape(8), **_specs())
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0], 8 * vector()


NESTED = {
    "custom_vjp": _custom_gradient,
    "scan": _in_scan,
}


@probe(source="jax-ml/jax@d872812a359a", params=[*NESTED])
def within(env, name):
    """A kernel runs within scan, and has a gradient by custom_vjp."""
    f, reference = NESTED[name]()
    return Observed(jax.jit(f)(vector()), reference=reference)


NO_REPLICATION_RULE = deviation(
    "jax<0.6",
    params=["check_on"],
    error="NotImplementedError",
    match="No replication rule for pallas_call",
    reason="the replication check had no rule for kernels",
)
KERNEL_CHECKED = deviation(
    "jax>=0.6,<0.6.2",
    params=["check_on"],
    error="ValueError",
    match="requires varying manual axes to match",
    reason="the body of the kernel was checked as a part of the function",
)
NO_TYPE_OF_THE_OUTPUT = deviation(
    "jax>=0.6.2",
    params=["check_on"],
    error="ValueError",
    match="must not be `None`",
    reason="the type of the output must name the axes over which it varies",
)


@probe(
    source="jax-ml/jax@d872812a359a",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_REPLICATION_RULE, KERNEL_CHECKED, NO_TYPE_OF_THE_OUTPUT],
)
def in_shard_map(env, check):
    """A kernel runs in shard_map without the check.

    With the check, `out_shape` must state the variance from 0.6.2.
    """
    f = kernel_call(double, shape(2), grid=(2,), in_specs=[rows(1)], out_specs=rows(1))
    mapped = env.compat.shard_map(
        f, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"), check=check
    )
    return Observed(jax.jit(mapped)(vector()), reference=2 * vector())


ASSERTED = deviation(
    "jax>=0.4.31,<0.4.34",
    error="AssertionError",
    reason="the call was traced as a jit, which disable_jit removes",
    issue="jax-ml/jax#29168",
)
RECURSION = deviation(
    "jax>=0.4.34,<0.6.1",
    error="RecursionError",
    match="maximum recursion depth exceeded",
    reason="the evaluation of the primitive calls jit, which calls the primitive",
    issue="jax-ml/jax#29168",
)
REFUSED = deviation(
    "jax>=0.6.1,<0.6.2",
    error="NotImplementedError",
    match="pallas_call not supported with disable_jit",
    reason="pallas_call was refused in this context",
    issue="jax-ml/jax#29168",
)


@probe(source="jax-ml/jax#29168", deviations=[ASSERTED, RECURSION, REFUSED])
def without_jit(env):
    """A kernel can be called under `jax.disable_jit()` from 0.6.2."""
    with jax.disable_jit():
        out = kernel_call(double, shape(8), **_specs())(vector())
    return Observed(out, reference=2 * vector())


NAMES_NOT_BATCHED = deviation(
    "jax<0.11.1",
    error="ValueError",
    match=r"zip\(\) argument",
    reason="the axis that vmap adds to the grid had no name",
    issue="jax-ml/jax@67559cc92cbf",
)


@probe(source="jax-ml/jax@67559cc92cbf", releases="jax>=0.4.31", deviations=[NAMES_NOT_BATCHED])
def named_grid_in_lanes(env):
    """A kernel whose grid has a named axis runs under vmap, from 0.11.1."""
    named = {**_specs(), "grid": (("tile", 4),)}
    return Observed(jax.vmap(kernel_call(double, shape(8), **named))(two()), reference=2 * two())
