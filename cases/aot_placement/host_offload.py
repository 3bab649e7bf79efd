"""Parameters, results and activations in the host's memory, `pinned_host`, compiled by XLA.

The topic `memory_kinds` checks whether a CPU accepts memory kinds at all. Here they are compiled
for devices with a separate memory, where the place of an array matters: an offloaded array must be
a parameter or result in the host's memory, and nothing else may be moved there.

The devices of a CUDA topology have no memories up to 0.8.3. On later releases the memory of a
parameter or result does not reach the compiler: only moves by the program itself are visible.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program

WIDTH = 256


def _make_shardings(env, spec=None):
    """Return shardings over four devices, in pinned host memory and in the devices' own memory."""
    mesh = env.mesh(4, "x")
    spec = P("x") if spec is None else spec
    return NamedSharding(mesh, spec, memory_kind="pinned_host"), NamedSharding(mesh, spec)


def _draw_matrix(env, seed=0):
    return env.rng(seed).standard_normal((WIDTH, WIDTH)).astype(np.float32)


TPU_TOPOLOGY_HAS_NO_MEMORIES = deviation(
    "jax<0.5",
    error="ValueError",
    match="Could not find memory addressable",
    reason="the devices of a TPU topology have no memories before 0.5.0",
)


@program(
    source="jax-ml/jax#26285",
    devices=4,
    platforms=["tpu"],
    facts={
        "results": [{"type": "f32[64,256]", "memory": "pinned_host"}],
        "collectives": {},
    },
    deviations=[TPU_TOPOLOGY_HAS_NO_MEMORIES],
)
def result_to_host(env):
    """With `out_shardings` in pinned host memory the device's result is on the host."""
    host, device = _make_shardings(env)
    return Program(
        lambda x: 2.0 * x + 1.0,
        args=(env.put(_draw_matrix(env), device),),
        jit={"out_shardings": host},
        reference=lambda x: 2.0 * x.astype(np.float64) + 1.0,
    )


@program(
    source="jax-ml/jax#28137",
    devices=4,
    platforms=["tpu"],
    facts={
        "filecheck": {
            "hlo": """
                CHECK: entry
                CHECK: f32[64,256]S(pinned_host) parameter(), index=0
            """
        },
        "results": [{"type": "f32[64,256]"}],
        "collectives": {},
    },
    deviations=[TPU_TOPOLOGY_HAS_NO_MEMORIES],
)
def parameter_from_host(env):
    """An offloaded parameter arrives in the host's memory and is fetched by device_put."""
    host, device = _make_shardings(env)
    return Program(
        lambda w, x: jnp.tanh(jax.device_put(w, device) * x),
        args=(env.put(_draw_matrix(env, 1), host), env.put(_draw_matrix(env, 2), device)),
        jit={"out_shardings": device},
        reference=lambda w, x: np.tanh(w.astype(np.float64) * x),
    )


@program(
    source="openxla/xla#25767",
    devices=4,
    platforms=["tpu"],
    facts={
        "filecheck": {
            "hlo": """
                CHECK: entry
                CHECK: f32[64,256]S(pinned_host) parameter(), index=0
            """
        },
        "custom_calls": {"HostExecute": 1},
    },
    deviations=[TPU_TOPOLOGY_HAS_NO_MEMORIES],
)
def computed_where_it_lies(env):
    """If an offloaded parameter is used without device_put, a TPU's host computes with it."""
    host, device = _make_shardings(env)
    return Program(
        lambda x: 2.0 * x + 1.0,
        args=(env.put(_draw_matrix(env), host),),
        jit={"out_shardings": device},
    )


FETCH_AND_ROUND_IN_ONE_STEP = deviation(
    "jax>=0.5,<0.6.2",
    error="XlaRuntimeError",
    match="Async slices that change the element type",
    reason="XLA fetches and rounds to bfloat16 in one step, which the TPU cannot do",
)


@program(
    source="jax-ml/jax#28137",
    devices=4,
    platforms=["tpu"],
    facts={
        "filecheck": {
            "hlo": """
                CHECK: entry
                CHECK: f32[8,256,64]S(pinned_host) parameter(), index=0
                CHECK-NOT: = f32[8,256,64] copy
            """
        },
    },
    deviations=[TPU_TOPOLOGY_HAS_NO_MEMORIES, FETCH_AND_ROUND_IN_ONE_STEP],
)
def layers_streamed(env):
    """The weights of all layers stay on the host; a scan fetches them layer by layer.

    The stack as a whole must not be copied to the device first.
    """
    mesh = env.mesh(4, "x")
    stack = NamedSharding(mesh, P(None, None, "x"), memory_kind="pinned_host")
    layer = NamedSharding(mesh, P(None, "x"))
    rows = NamedSharding(mesh, P())
    weights = env.rng(3).standard_normal((8, WIDTH, WIDTH)).astype(np.float32) / 16

    def forward(stack, x):
        return lax.scan(lambda h, w: (jnp.tanh(h @ jax.device_put(w, layer)), None), x, stack)[0]

    return Program(
        forward,
        args=(env.put(weights, stack), env.put(_draw_matrix(env, 4), rows)),
        jit={"out_shardings": rows},
    )


@program(
    source="jax-ml/jax#28988",
    devices=4,
    platforms=["tpu"],
    facts={
        "filecheck": {
            "hlo": """
                CHECK: entry
                CHECK: f32[64,256]S(pinned_host) parameter(), index=0
            """
        },
        "results": [{"type": "f32[64,256]", "memory": "pinned_host"}, {"type": "f32[64,256]"}],
        "donation": ["parameter 0 -> output [0] may-alias", "parameter 1 -> output [1] may-alias"],
    },
    deviations=[TPU_TOPOLOGY_HAS_NO_MEMORIES],
)
def optimizer_state(env):
    """Momentum stays on the host between steps: fetched, updated, and sent back.

    It is donated: the result is written to the same buffer of the host.
    """
    host, device = _make_shardings(env)

    def step(momentum, w, grad):
        fetched = 0.9 * jax.device_put(momentum, device) + grad
        return jax.device_put(fetched, host), w - 0.01 * fetched

    def update_exactly(momentum, w, grad):
        fetched = 0.9 * momentum.astype(np.float64) + grad
        return fetched, w - 0.01 * fetched

    return Program(
        step,
        args=(
            env.put(_draw_matrix(env, 5), host),
            env.put(_draw_matrix(env, 6), device),
            env.put(_draw_matrix(env, 7), device),
        ),
        jit={"donate_argnums": (0, 1), "out_shardings": (host, device)},
        reference=update_exactly,
    )


def _make_gradient(env, policy):
    """Return the gradient of four layers with named hidden units, under a checkpoint policy."""

    def layer(h, w):
        return jnp.sin(checkpoint_name(h @ w, "hidden")), None

    def loss(ws, x):
        return lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0].sum()

    weights = env.rng(8).standard_normal((4, WIDTH, WIDTH)).astype(np.float32) / 16
    return Program(jax.grad(loss), args=(weights, _draw_matrix(env, 9)))


@program(source="jax-ml/jax#23831", platforms=["tpu", "gpu"], facts={"memory_spaces": {}})
def activations_kept(env):
    """Named activations saved for the backward pass stay in the memory where they were made."""
    return _make_gradient(env, jax.checkpoint_policies.save_only_these_names("hidden"))


CUDA_TOPOLOGY_HAS_NO_MEMORIES = deviation(
    "jax<0.9",
    platform="cuda",
    outcome="ok",
    match="pinned_host",
    reason="the devices of a CUDA topology have no memories, so nothing is offloaded",
)
TPU_TOPOLOGY_OFFLOADS_NOTHING = deviation(
    "jax<0.5",
    platform="tpu",
    outcome="ok",
    match="pinned_host",
    reason="the devices of a TPU topology have no memories up to 0.4.38",
)


@program(
    source="jax-ml/jax#23831",
    platforms=["tpu", "gpu"],
    facts={
        "filecheck": {
            "hlo": """
                CHECK: f32[4,256,256]S(pinned_host) dynamic-update-slice
                CHECK: entry
            """
        }
    },
    deviations=[CUDA_TOPOLOGY_HAS_NO_MEMORIES, TPU_TOPOLOGY_OFFLOADS_NOTHING],
)
def activations_offloaded(env):
    """Named activations are offloaded: the loop writes them to a stack in the host's memory."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    return _make_gradient(env, policy)
