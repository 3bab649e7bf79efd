"""Kernels compiled for TPUs by Mosaic and for GPUs by Triton and Mosaic GPU, without hardware.

Each kernel of a TPU is a custom call `tpu_custom_call`, which holds the kernel as bytecode.
"""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program, raises

from ._helpers import F32, block, copy, double, kernel_call, prefetch, shape


def _spread(env, kernel, count=2):
    """Map a kernel over two devices: some releases cannot describe one."""
    return env.compat.shard_map(
        kernel, mesh=env.mesh(2, "x"), in_specs=(P("x"),) * count, out_specs=P("x"), check=False
    )


def _ones(env, *sizes, dtype=F32):
    sharding = jax.sharding.NamedSharding(env.mesh(2, "x"), P("x"))
    return env.put(np.ones(sizes, dtype), sharding)


def _tiles():
    return block((8, 128), lambda i: (i, 0))


def _elementwise(env):
    spec = _tiles()
    specs = {"grid": (2,), "in_specs": [spec], "out_specs": spec}
    f = kernel_call(double, shape(16, 128), interpret=False, **specs)
    return _spread(env, f, 1), (_ones(env, 32, 128),)


def _matmul(env):
    def kernel(a_ref, b_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=F32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = sum_ref[...].astype(o_ref.dtype)

    specs = [block((128, 128), lambda i, _, k: (i, k)), block((128, 128), lambda _, j, k: (k, j))]
    out_spec = block((128, 128), lambda i, j, _: (i, j))
    grid_spec = prefetch(0, (1, 1, 2), specs, out_spec, [pltpu.VMEM((128, 128), F32)])
    out = shape(128, 128, dtype=jnp.bfloat16)
    f = kernel_call(kernel, out, interpret=False, grid_spec=grid_spec)
    a, b = _ones(env, 256, 256, dtype=jnp.bfloat16), _ones(env, 512, 128, dtype=jnp.bfloat16)
    return _spread(env, f), (a, b)


def _softmax(env):
    def kernel(x_ref, o_ref):
        o_ref[...] = jax.nn.softmax(x_ref[...], axis=-1)

    specs = {"grid": (2,), "in_specs": [_tiles()], "out_specs": _tiles()}
    f = kernel_call(kernel, shape(16, 128), interpret=False, **specs)
    return _spread(env, f, 1), (_ones(env, 32, 128),)


def _rows_by_prefetch(env):
    spec = block((8, 128), lambda i, places: (places[i], 0))
    out_spec = block((8, 128), lambda i, _: (i, 0))

    def kernel(_, x_ref, o_ref):
        copy(x_ref, o_ref)

    grid_spec = prefetch(1, (2,), [spec], out_spec)
    f = kernel_call(kernel, shape(16, 128), interpret=False, grid_spec=grid_spec)
    return _spread(env, f), (_ones(env, 4, dtype=np.int32), _ones(env, 32, 128))


def _loop(env):
    def kernel(x_ref, o_ref):
        def body(i, total):
            return total + x_ref[pl.ds(8 * i, 8), :]

        o_ref[...] = jax.lax.fori_loop(0, 4, body, jnp.zeros((8, 128), F32))

    f = kernel_call(kernel, shape(8, 128), interpret=False)
    return _spread(env, f, 1), (_ones(env, 64, 128),)


def _copied(env):
    def kernel(x_ref, o_ref, semaphore):
        transfer = pltpu.make_async_copy(x_ref, o_ref, semaphore)
        transfer.start()
        transfer.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    grid_spec = prefetch(0, (1,), [anywhere], anywhere, [pltpu.SemaphoreType.DMA])
    f = kernel_call(kernel, shape(16, 128), interpret=False, grid_spec=grid_spec)
    return _spread(env, f, 1), (_ones(env, 32, 128),)


def _int8_sum(env):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].astype(np.int32) + 1

    specs = {"grid": (2,), "in_specs": [block((32, 128), lambda i: (i, 0))]}
    out_spec = block((32, 128), lambda i: (i, 0))
    out = shape(64, 128, dtype=np.int32)
    f = kernel_call(kernel, out, interpret=False, out_specs=out_spec, **specs)
    return _spread(env, f, 1), (_ones(env, 128, 128, dtype=np.int8),)


def _unaligned(env):
    spec = block((4, 100), lambda i: (i, 0))
    specs = {"grid": (2,), "in_specs": [spec], "out_specs": spec}
    f = kernel_call(double, shape(8, 200), interpret=False, **specs)
    return _spread(env, f, 1), (_ones(env, 16, 200),)


TPU_KERNELS = {
    "elementwise": _elementwise,
    "matmul": _matmul,
    "softmax": _softmax,
    "rows_by_prefetch": _rows_by_prefetch,
    "loop": _loop,
    "copied": _copied,
    "int8": _int8_sum,
}


OLDER_LIBTPU = deviation(
    "jax==0.7.1",
    platform="tpu",
    error="XlaRuntimeError",
    match="Unsupported version: expected <= 7 but got 8",
    reason="libtpu 0.0.20, which jax[tpu] 0.7.1 asks for, reads older bytecode of Mosaic alone",
)
NO_STOP_GRADIENT = deviation(
    "jax<0.7.1",
    platform="tpu",
    params=["softmax"],
    error="NotImplementedError",
    match="Unimplemented primitive in Pallas TPU lowering.*stop_gradient",
    reason="nn.softmax stops a gradient, for which kernels of TPUs had no rule",
)


@program(
    source="jax-ml/jax@d872812a359a",
    devices=2,
    platforms=["tpu"],
    params=[*TPU_KERNELS],
    facts={"custom_calls": {"tpu_custom_call": 1}},
    deviations=[OLDER_LIBTPU, NO_STOP_GRADIENT],
)
def tpu(env, name):
    """A kernel compiled for a TPU is one custom call with Mosaic's bytecode."""
    f, args = TPU_KERNELS[name](env)
    return Program(f, args)


@program(source="jax-ml/jax#22197", devices=2, platforms=["tpu"])
def unaligned_block(env):
    """A TPU refuses blocks of 4 x 100: the last two sizes must be multiples of 8 and 128."""
    f, args = _unaligned(env)
    return Program(f, args, reference=raises("ValueError", match="divisible by 8 and 128"))


def _triton_params():
    from jax.experimental.pallas import triton  # noqa: PLC0415 - from 0.4.35

    found = getattr(triton, "CompilerParams", None) or triton.TritonCompilerParams
    return found(num_warps=4)


@program(
    source="jax-ml/jax@d872812a359a",
    devices=2,
    platforms=["cuda"],
    params=["elementwise", "softmax"],
    facts={"custom_calls": {"__gpu$xla.gpu.triton": 1}},
)
def triton(env, name):
    """A kernel compiled for a GPU by Triton is one custom call with Triton's bytecode."""

    def softmax(x_ref, o_ref):
        o_ref[...] = jax.nn.softmax(x_ref[...], axis=-1)

    spec = block((16, 128), lambda i: (i, 0))
    f = kernel_call(
        double if name == "elementwise" else softmax,
        shape(32, 128),
        interpret=False,
        grid=(2,),
        in_specs=[spec],
        out_specs=spec,
        compiler_params=_triton_params(),
    )
    return Program(_spread(env, f, 1), (_ones(env, 64, 128),))


def _barrier(plgpu):
    positional = "num_arrivals" in inspect.signature(plgpu.Barrier).parameters
    return plgpu.Barrier(num_arrivals=1) if positional else plgpu.Barrier()


NEEDS_HOPPER = deviation(
    platform="cuda:a100",
    error="JaxRuntimeError|ValueError",
    match="Pass pipeline failed|only supported Hopper and newer",
    reason="asynchronous copies need Hopper or newer; 0.10.2 does not name the reason",
)


@program(
    source="jax-ml/jax@c10b9b88f2b1",
    devices=2,
    platforms=["cuda"],
    releases="jax>=0.6",
    facts={"collectives": {}},
    deviations=[NEEDS_HOPPER],
)
def mosaic_gpu(env):
    """`mosaic_gpu.kernel` copies to shared memory, doubles and copies back, compiled for a GPU."""
    from jax.experimental.pallas import mosaic_gpu as plgpu  # noqa: PLC0415 - from 0.4.35

    def kernel(x_ref, o_ref, shared_ref, barrier):
        plgpu.copy_gmem_to_smem(x_ref, shared_ref, barrier)
        plgpu.barrier_wait(barrier)
        shared_ref[...] = 2 * shared_ref[...]
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(shared_ref, o_ref)
        plgpu.wait_smem_to_gmem(0)

    named = inspect.signature(plgpu.kernel).parameters
    out, scratch = (
        ("out_type", "scratch_types") if "out_type" in named else ("out_shape", "scratch_shapes")
    )
    memory = [plgpu.SMEM((128, 128), F32), _barrier(plgpu)]
    f = plgpu.kernel(kernel, **{out: shape(128, 128), scratch: memory})
    return Program(_spread(env, f, 1), (_ones(env, 256, 128),))
