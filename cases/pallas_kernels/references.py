"""Reads, writes and control flow in kernels, in interpret mode."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import F32, prefetch, run, run_rows, shape, square, vector

defaults(platforms=("cpu",))

INDICES = {
    "element": lambda _: np.s_[1, 2],
    "block": lambda _: np.s_[1:3, :2],
    "steps": lambda _: np.s_[::3, 1::2],
    "traced_row": lambda i: np.s_[i[0], :],
    "rows_by_array": lambda i: np.s_[i, :],
}
NO_STRIDES = deviation(
    "jax<0.4.33",
    params=["steps"],
    error="NotImplementedError",
    match="Unimplemented stride support",
    reason="the interpreter had no strides",
    issue="jax-ml/jax@fc1af8d05092",
)
STRIDE_BEYOND_THE_END = deviation(
    "jax>=0.4.33,<0.4.34",
    params=["steps"],
    error="TypeError",
    match="limit_indices must be less than or equal to operand shape",
    reason="a strided slice whose last step ends beyond the array was refused",
    issue="jax-ml/jax@e0faa596b3d6",
)


@probe(
    source="jax-ml/jax@d872812a359a",
    params=[*INDICES],
    deviations=[NO_STRIDES, STRIDE_BEYOND_THE_END],
)
def index(env, name):
    """An index of a reference reads and writes the elements that it selects in NumPy."""
    places, written = np.array([2, 0, 1], np.int32), square()
    exact = written[INDICES[name](places)].copy()
    written[INDICES[name](places)] = -exact

    def kernel(i_ref, x_ref, read_ref, o_ref):
        selected = INDICES[name](i_ref[...])
        read_ref[...] = x_ref[selected]
        o_ref[...] = x_ref[...]
        o_ref[selected] = -x_ref[selected]

    out = (shape(*exact.shape), shape(4, 4))
    return Observed(run(kernel, out, places, square()), reference=(exact, written))


WRITTEN_TO_THE_WHOLE = deviation(
    "jax<0.4.33",
    params=["element", "traced_slice"],
    error="TypeError",
    match="dynamic_update_slice update",
    reason="the interpreter wrote to the whole reference, not to the part of `at`",
)
NO_RESHAPE = deviation(
    "jax<0.4.35",
    params=["reshaped"],
    error="AttributeError",
    match="no attribute 'reshape'",
    reason="a reference had no reshape",
)


def _element_of_a_part(o_ref, i_ref):
    o_ref.at[4:][1] = F32(-1)


def _traced_slice_of_a_part(o_ref, i_ref):
    o_ref.at[pl.ds(i_ref[0], 4)][pl.ds(i_ref[0], 2)] = jnp.full(2, -1, F32)


def _reshaped(o_ref, i_ref):
    o_ref[...] = o_ref.reshape(2, 4)[...].T.reshape(8)


PARTS = {
    "element": (_element_of_a_part, [0, 1, 2, 3, 4, -1, 6, 7]),
    "traced_slice": (_traced_slice_of_a_part, [0, 1, -1, -1, 4, 5, 6, 7]),
    "reshaped": (_reshaped, [0, 4, 1, 5, 2, 6, 3, 7]),
}


@probe(
    source="jax-ml/jax@d872812a359a", params=[*PARTS], deviations=[WRITTEN_TO_THE_WHOLE, NO_RESHAPE]
)
def parts(env, name):
    """A part of a reference, by `at` or `reshape`, is written in place."""
    write, exact = PARTS[name]

    def kernel(i_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]
        write(o_ref, i_ref)

    out = run(kernel, shape(8), np.array([1], np.int32), vector())
    return Observed(out, reference=np.array(exact, F32))


def _fori_loop(o_ref):
    def body(i, _):
        o_ref[pl.ds(2 * i, 2)] = o_ref[pl.ds(2 * i, 2)] * (i + 1)

    lax.fori_loop(0, 4, body, None)


def _while_loop_that_reads(o_ref):
    def body(i):
        o_ref[i] = o_ref[i] + 1
        return i + 1

    lax.while_loop(lambda i: o_ref[i] < 4, body, 0)


def _cond(o_ref):
    def negate():
        o_ref[0] = -o_ref[7]

    def double():
        o_ref[...] = 2 * o_ref[...]

    lax.cond(o_ref[1] > 0, negate, double)
    lax.cond(o_ref[1] > 1, negate, double)


def _when(o_ref):
    @pl.when(o_ref[1] > 0)
    def _():
        o_ref[0] = F32(9)

    @pl.when(False)
    def _():
        o_ref[2] = F32(9)


CONTROL = {
    "fori_loop": (_fori_loop, vector() * np.repeat([1, 2, 3, 4], 2)),
    "while_loop_that_reads": (_while_loop_that_reads, [1, 2, 3, 4, 4, 5, 6, 7]),
    "cond": (_cond, [-14, 2, 4, 6, 8, 10, 12, 14]),
    "when": (_when, [9, 1, 2, 3, 4, 5, 6, 7]),
}
NO_READS_IN_THE_CONDITION = deviation(
    "jax<0.7.2",
    params=["while_loop_that_reads"],
    error="NotImplementedError",
    reason="the condition of a while loop could not read a reference",
)


@probe(source="jax-ml/jax@d872812a359a", params=[*CONTROL], deviations=[NO_READS_IN_THE_CONDITION])
def control_flow(env, name):
    """Loops and branches in a kernel write to references as the same Python code would."""
    body, exact = CONTROL[name]

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        body(o_ref)

    return Observed(run(kernel, shape(8), vector()), reference=np.array(exact, F32))


NOT_REPLACED = deviation(
    "jax>=0.4.30",
    error="NotImplementedError",
    match="rule for primitive 'program_id' not found",
    reason="the interpreter replaces program_id in the body of the kernel only, not within loops",
)


@probe(source="jax-ml/jax@d872812a359a", deviations=[NOT_REPLACED])
def program_id_in_a_loop(env):
    """`pl.program_id` within a loop is not interpreted, on any release; call it before the loop."""

    def kernel(x_ref, o_ref):
        def body(i, _):
            o_ref[i] = x_ref[i] + pl.program_id(0)

        lax.fori_loop(0, 2, body, None)

    steps = np.repeat([0, 1, 2, 3], 2)
    return Observed(run_rows(kernel, shape(8), vector()), reference=(vector() + steps).astype(F32))


NO_STEP = deviation(
    "jax<0.7.1",
    params=["step"],
    error="TypeError",
    match="unexpected keyword argument 'step'",
    reason="pl.loop had no step",
)


@probe(
    source="jax-ml/jax@d872812a359a",
    releases="jax>=0.6.2",
    params={"plain": {}, "step": {"step": 3}},
    deviations=[NO_STEP],
)
def loop_decorator(env, **keywords):
    """`pl.loop` decorates the body of a loop from 0.6.2, and takes a step from 0.7.1."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

        @pl.loop(1, 8, **keywords)
        def _(i):
            o_ref[i] = -x_ref[i]

    chosen = np.isin(np.arange(8), range(1, 8, keywords.get("step", 1)))
    return Observed(
        run(kernel, shape(8), vector()), reference=np.where(chosen, -vector(), vector())
    )


NO_RUN_SCOPED = deviation(
    "jax<0.4.31",
    error="AttributeError",
    match="run_scoped",
    reason="run_scoped was in pallas.tpu alone",
    issue="jax-ml/jax@80a193d5db41",
)
NOT_INTERPRETED = deviation(
    "jax>=0.4.31,<0.4.33",
    error="NotImplementedError",
    match="No state discharge rule implemented for primitive: run_scoped",
    reason="the interpreter had no rule for run_scoped",
    issue="jax-ml/jax@a18561df1a16",
)
GRID_FORGOTTEN = deviation(
    "jax>=0.5.1",
    params=["program_id"],
    error="AssertionError",
    reason="the body is traced again without the grid, so that program_id has no axis",
    issue="jax-ml/jax@8649132d86dc",
)


@probe(
    source="jax-ml/jax@a18561df1a16",
    params={"plain": {"numbered": False}, "program_id": {"numbered": True}},
    deviations=[NO_RUN_SCOPED, NOT_INTERPRETED, GRID_FORGOTTEN],
)
def scoped_memory(env, numbered):
    """`pl.run_scoped` provides memory for a function in a kernel.

    From 0.5.1 `program_id` within it is an AssertionError in interpret mode.
    """

    def kernel(x_ref, o_ref):
        def body(scratch_ref):
            scratch_ref[...] = 3 * x_ref[...]
            if numbered:
                scratch_ref[...] += pl.program_id(0).astype(F32)
            return scratch_ref[...] + 1

        o_ref[...] = pl.run_scoped(body, pltpu.VMEM((2,), F32))

    step = np.repeat([0, 1, 2, 3], 2) if numbered else 0
    out = run_rows(kernel, shape(8), vector())
    return Observed(out, reference=(3 * vector() + step + 1).astype(F32))


def _signal(name):
    return getattr(pl if hasattr(pl, name) else pltpu, name)


SEMAPHORE_TYPE_LOST = deviation(
    "jax<0.4.33",
    error="ValueError",
    match="Must signal",
    reason="in the interpreter a semaphore was an integer",
    issue="jax-ml/jax@a18561df1a16",
)


@probe(source="jax-ml/jax@a18561df1a16", deviations=[SEMAPHORE_TYPE_LOST])
def semaphores(env):
    """A semaphore counts signals and waits, in an array of semaphores too."""

    def kernel(o_ref, semaphore, several):
        _signal("semaphore_signal")(semaphore, 3)
        _signal("semaphore_wait")(semaphore, 1)
        _signal("semaphore_signal")(several.at[1], 5)
        reads = (semaphore, several.at[0], several.at[1])
        for i, ref in enumerate(reads):
            o_ref[i] = _signal("semaphore_read")(ref)

    kinds = pltpu.SemaphoreType
    spec = {"in_specs": [], "out_specs": pl.BlockSpec(memory_space=pltpu.SMEM)}
    specs = prefetch(0, (1,), scratch=[kinds.REGULAR, kinds.REGULAR((2,))], **spec)
    out = run(kernel, shape(3, dtype=np.int32), grid_spec=specs)
    return Observed(out, reference=np.array([2, 0, 5], np.int32))


NO_TRANSFORMS = deviation(
    "jax<0.4.31",
    params=["row"],
    error="AttributeError",
    match="'int' object has no attribute 'shape'",
    reason="a copy to a part at a static place was not understood",
)


@probe(
    source="jax-ml/jax@a18561df1a16",
    params={"whole": {"row": False}, "row": {"row": True}},
    deviations=[NO_TRANSFORMS],
)
def asynchronous_copy(env, row):
    """`make_async_copy` copies an array, or a row to another row."""

    def kernel(x_ref, o_ref, semaphore):
        o_ref[...] = jnp.zeros_like(o_ref)
        source, target = (x_ref.at[1], o_ref.at[2]) if row else (x_ref, o_ref)
        transfer = pltpu.make_async_copy(source, target, semaphore)
        transfer.start()
        transfer.wait()

    whole = pl.BlockSpec(memory_space=pltpu.VMEM)
    specs = prefetch(0, (1,), [whole], whole, [pltpu.SemaphoreType.DMA])
    out = run(kernel, shape(4, 4), square(), grid_spec=specs)
    exact = square() * (np.arange(4) == 1)[:, None]
    return Observed(out, reference=np.roll(exact, 1, axis=0) if row else square())


ASSERTED = deviation(
    "jax>=0.5.1,<0.6.1",
    error="AssertionError",
    reason="the interpreter sliced the reference itself in place of its value",
    issue="jax-ml/jax#33260",
)
REFERENCE_SLICED = deviation(
    "jax>=0.6.1,<0.8.1",
    error="ValueError",
    match="Attempting to pass a Ref",
    reason="the interpreter sliced the reference itself in place of its value",
    issue="jax-ml/jax#33260",
)


@probe(source="jax-ml/jax#33260", releases="jax>=0.5", deviations=[ASSERTED, REFERENCE_SLICED])
def copy_to_a_row_of_scoped_memory(env):
    """A copy to a row of memory from `run_scoped` works in interpret mode from 0.8.1."""

    def kernel(o_ref):
        def outer(semaphore, one_ref):
            one_ref[...] = jnp.ones_like(one_ref)

            def inner(two_ref):
                transfer = pltpu.make_async_copy(one_ref, two_ref.at[0], semaphore)
                transfer.start()
                transfer.wait()
                o_ref[...] = two_ref[0]

            pl.run_scoped(inner, pltpu.VMEM((1, 1), F32))

        pl.run_scoped(outer, pltpu.SemaphoreType.DMA, pltpu.VMEM((1,), F32))

    return Observed(run(kernel, shape(1)), reference=np.ones(1, F32))


INTERLEAVED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="the interpreter repeated each element, as np.repeat; a TPU repeats the array",
    issue="jax-ml/jax@8e5fc0510388",
)


@probe(source="jax-ml/jax@8e5fc0510388", releases="jax<0.10.2", deviations=[INTERLEAVED])
def repeat(env):
    """`pltpu.repeat` repeats the array as a TPU does; up to 0.8.0 interpret mode interleaved.

    The values on the CPU silently differed from those on a TPU. It was removed in 0.10.2.
    """

    def kernel(x_ref, o_ref):
        o_ref[...] = pltpu.repeat(x_ref[...], 2, 1)

    return Observed(run(kernel, shape(4, 8), square()), reference=np.tile(square(), (1, 2)))


@probe(source="jax-ml/jax@d872812a359a")
def strided_roll(env):
    """`pltpu.roll` with a stride rolls each row one place further than the last."""

    def kernel(x_ref, o_ref):
        o_ref[...] = pltpu.roll(x_ref[...], 3, 1, stride=1, stride_axis=0)

    exact = np.stack([np.roll(row, 3 + i) for i, row in enumerate(square())])
    return Observed(run(kernel, shape(4, 4), square()), reference=exact)


AXIS_OF_INDICES_FIRST = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the axis of an array of indices came first, wherever the array is",
    issue="jax-ml/jax@9f5f6edb8548",
)


@probe(source="jax-ml/jax@9f5f6edb8548", deviations=[AXIS_OF_INDICES_FIRST])
def columns_by_array(env):
    """`x_ref[:, columns]` reads columns; up to 0.5.3 the result was silently transposed."""
    columns = np.array([2, 0], np.int32)

    def kernel(x_ref, columns_ref, o_ref):
        o_ref[...] = x_ref[:, columns_ref[...]]

    call = pl.pallas_call(kernel, out_shape=shape(2, 2), interpret=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return Observed(call(x, columns), reference=x[:, columns])


CONDITION_REFUSED = deviation(
    "jax<0.7.2",
    error="NotImplementedError",
    reason="the condition of a while loop could not read a reference",
    issue="jax-ml/jax@06a05902970e",
)
READ_BEFORE_THE_LOOP = deviation(
    "jax>=0.7.2",
    outcome="ok",
    reason="the condition is given the block before the loop",
    issue="jax-ml/jax@06a05902970e",
)


@probe(source="jax-ml/jax@06a05902970e", deviations=[CONDITION_REFUSED, READ_BEFORE_THE_LOOP])
def condition_that_reads_what_is_written(env):
    """The condition of a while loop reads what the body wrote, as the same Python code would.

    From 0.7.2 it silently reads what the block had before the loop.
    """

    def kernel(o_ref):
        def body(i):
            o_ref[0] += 1
            return i + 1

        o_ref[...] = jnp.zeros(2, F32)
        lax.while_loop(lambda i: (o_ref[0] < 3) & (i < 10), body, 0)

    return Observed(run(kernel, shape(2)), reference=F32([3, 0]))
