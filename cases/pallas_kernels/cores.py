"""The interpreter of TPU kernels, `pl.core_map` and `pl.kernel` on the CPU."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import (
    F32,
    accumulate,
    anywhere,
    block,
    copy,
    core_mesh,
    double,
    kernel_of_cores,
    prefetch,
    run,
    run_rows,
    shape,
    square,
    vector,
)

defaults(platforms=("cpu",))


def interpreter(**keywords):
    """Return the parameters of the interpreter of TPU kernels, from 0.6.2."""
    return pltpu.InterpretParams(**keywords)


def _copy_between(x_ref, y_ref):
    pltpu.sync_copy(x_ref, y_ref)


INTERPRETERS = {"plain": lambda: True, "tpu": interpreter}
RESULT_LOST = deviation(
    "jax<0.7",
    params=["plain"],
    outcome="ok",
    match="0.0",
    reason="with interpret=True the writes of a core_map were dropped: the result is zeros",
)
TYPES_DIFFER = deviation(
    "jax>=0.7,<0.7.1",
    params=["plain"],
    error="TypeError",
    match="ShapedArrayWithMemorySpace",
    reason="with interpret=True the types of the references were not understood",
)
RESULT_LOST_AGAIN = deviation(
    "jax>=0.7.1,<0.11.2",
    params=["plain"],
    outcome="ok",
    match="0.0",
    reason="with interpret=True the writes of a core_map were dropped: the result is zeros",
)


@probe(
    source="jax-ml/jax@33311b50ecf6",
    releases="jax>=0.6.2",
    params=[*INTERPRETERS],
    deviations=[RESULT_LOST, TYPES_DIFFER, RESULT_LOST_AGAIN],
)
def core_map(env, name):
    """`pl.core_map` writes to a reference; with `interpret=True` the write is lost up to 0.11.1.

    The result is silently zeros. Pass `interpret=pltpu.InterpretParams()`.
    """

    def body(refs):
        x_ref, y_ref = refs

        @pl.core_map(core_mesh(), interpret=INTERPRETERS[name]())
        def _():
            _copy_between(x_ref, y_ref)

    _, out = jax.jit(lambda x: pl.run_state(body)((x, jnp.zeros_like(x))))(vector() + 1)
    return Observed(out, reference=vector() + 1)


KERNEL_RESULT_LOST = deviation(
    "jax<0.10.1",
    params=["plain"],
    outcome="ok",
    match="0.0",
    reason="with interpret=True the writes were dropped: the result is zeros",
    issue="jax-ml/jax@108f08d2d216",
)


@probe(
    source="jax-ml/jax@833dc54b821a",
    releases="jax>=0.8.1",
    params=[*INTERPRETERS],
    deviations=[KERNEL_RESULT_LOST],
)
def kernel(env, name):
    """`pl.kernel` with `interpret=True` silently returns zeros up to 0.10.0."""
    f = kernel_of_cores(_copy_between, 8, INTERPRETERS[name]())
    return Observed(jax.jit(f)(vector() + 1), reference=vector() + 1)


def _matmul():
    a, b = vector(32).reshape(4, 8) / 8, vector(32).reshape(8, 4) / 8 - 1

    def body(a_ref, b_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += a_ref[...] @ b_ref[...]

    specs = [block((4, 4), lambda i, _, k: (i, k)), block((4, 4), lambda _, j, k: (k, j))]
    out = block((4, 4), lambda i, j, _: (i, j))
    return (
        (body, shape(4, 4), a, b),
        {"grid": (1, 1, 2), "in_specs": specs, "out_specs": out},
        a @ b,
    )


def _in_place_by_prefetch():
    indices, exact = np.array([2, 0], np.int32), square() * np.array([[2], [1], [2], [1]], F32)
    spec = block((1, 4), lambda i, indices: (indices[i], 0))

    def body(_, x_ref, o_ref):
        double(x_ref, o_ref)

    keywords = {"grid_spec": prefetch(1, (2,), [spec], spec), "input_output_aliases": {1: 0}}
    return (body, shape(4, 4), indices, square()), keywords, exact


def _copied():
    def body(x_ref, o_ref, semaphore):
        transfer = pltpu.make_async_copy(x_ref, o_ref, semaphore)
        transfer.start()
        transfer.wait()

    specs = {"in_specs": [anywhere()], "out_specs": anywhere()}
    scratch = [pltpu.SemaphoreType.DMA]
    return (body, shape(8), vector()), {"scratch_shapes": scratch, **specs}, vector()


TPU_KERNELS = {
    "matmul": _matmul,
    "in_place_by_prefetch": _in_place_by_prefetch,
    "copied": _copied,
}
ALIAS_OF_ANOTHER_ARGUMENT = deviation(
    "jax<0.7.1",
    params=["in_place_by_prefetch"],
    error="IndexError",
    match="list index out of range",
    reason="prefetched arguments were not counted",
    issue="jax-ml/jax@63f228139e0a",
)


@probe(
    source="jax-ml/jax@c2e7d61323b1",
    releases="jax>=0.6.2",
    params=[*TPU_KERNELS],
    deviations=[ALIAS_OF_ANOTHER_ARGUMENT],
)
def tpu_interpreter(env, name):
    """`interpret=pltpu.InterpretParams()` simulates a TPU, with the values of NumPy."""
    args, keywords, reference = TPU_KERNELS[name]()
    return Observed(run(*args, interpret=interpreter(), **keywords), reference=reference)


def _revisited():
    again = block((2,), lambda i: (i % 2,))
    return run_rows(copy, shape(4), vector(), out_specs=again, interpret=interpreter())


def _beyond():
    def body(i_ref, x_ref, o_ref):
        o_ref[0] = x_ref[i_ref[0]]

    place = np.array([20], np.int32)
    return run(body, shape(1), place, vector(), interpret=interpreter())


REVISITED = deviation(
    "jax<0.7.1",
    params=["revisited_block"],
    outcome="ok",
    reason="the interpreter did not notice that a step writes a block again",
    issue="jax-ml/jax@5ed02bfb5e1e",
)
STRICT = {
    "revisited_block": (_revisited, "Revisited"),
    "read_beyond": (_beyond, "bounds"),
}


@probe(
    source="jax-ml/jax@5ed02bfb5e1e",
    releases="jax>=0.6.2",
    params=[*STRICT],
    deviations=[REVISITED],
)
def strict_interpreter(env, name):
    """The interpreter of TPU kernels refuses what `interpret=True` accepts."""
    call, words = STRICT[name]
    text = refusal(lambda: jax.block_until_ready(call()), words)
    return Observed(text.partition(": ")[2], reference=words)


FORCED = deviation(
    "jax<0.7",
    error="AttributeError",
    match="force_tpu_interpret_mode",
    reason="the context did not exist",
)


@probe(source="jax-ml/jax@b0d87e610c09", releases="jax>=0.6.2", deviations=[FORCED])
def forced_interpreter(env):
    """`pltpu.force_tpu_interpret_mode()` interprets kernels without the keyword, from 0.7.0."""
    specs = {"in_specs": [block((2,), lambda i: (i,))], "out_specs": block((2,), lambda _: (0,))}
    with pltpu.force_tpu_interpret_mode():
        out = run(accumulate, shape(2), vector(), grid=(4,), interpret=False, **specs)
    return Observed(out, reference=vector().reshape(4, 2).sum(0))


NO_DERIVATIVE_OF_A_STATE = deviation(
    "jax>=0.7.1",
    error="ValueError",
    match="Linearization failed to produce known values",
    reason="the rules of run_state for derivatives are removed",
    issue="jax-ml/jax@52c36672357f",
)


@probe(
    source="jax-ml/jax@52c36672357f",
    releases="jax>=0.4.35",
    deviations=[NO_DERIVATIVE_OF_A_STATE],
)
def gradient_of_run_state(env):
    """`pl.run_state` has a gradient up to 0.7.0; from 0.7.1 on it is an internal ValueError."""

    def body(refs):
        x_ref, y_ref = refs
        y_ref[...] = jnp.sin(x_ref[...])

    def loss(x):
        return pl.run_state(body)((x, jnp.zeros_like(x)))[1].sum()

    x = np.float32([0, 1, 2])
    return Observed(jax.jit(jax.grad(loss))(x), reference=np.cos(x.astype(np.float64)))
