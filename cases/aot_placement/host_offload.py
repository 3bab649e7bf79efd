"""Parameters, results and activations in the host's memory: what XLA makes of `pinned_host`.

The topic `memory_kinds` asks whether a CPU takes memory kinds at all. Here they are compiled for
devices that have a memory of their own, where it matters which side of it an array lies: what
is offloaded must be a parameter or result in the host's memory, and nothing else may go there.

Of a CUDA topology the devices have no memories up to 0.8.3, and later the memory of a parameter
or result does not reach the compiler: there only what a program itself moves can be seen.
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


def _memories(env, spec=None):
    """Return shardings over four devices: in pinned host memory, and in the devices' own."""
    mesh = env.mesh(4, "x")
    spec = P("x") if spec is None else spec
    return NamedSharding(mesh, spec, memory_kind="pinned_host"), NamedSharding(mesh, spec)


def _matrix(env, seed=0):
    return env.rng(seed).standard_normal((WIDTH, WIDTH)).astype(np.float32)


@program(
    source="jax-ml/jax#26285",
    devices=4,
    platforms=["tpu"],
    facts={
        "results": [{"type": "f32[64,256]", "memory": "pinned_host"}],
        "collectives": {},
    },
    deviations=[
        deviation(
            "jax<0.5",
            error="ValueError",
            match="Could not find memory addressable",
            reason="the devices of a TPU topology have no memories before 0.5.0",
        )
    ],
)
def result_to_host(env):
    """`out_shardings` in pinned host memory: the result is there, computed on the device."""
    host, device = _memories(env)
    return Program(
        lambda x: 2.0 * x + 1.0,
        args=(env.put(_matrix(env), device),),
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
    deviations=[
        deviation(
            "jax<0.5",
            error="ValueError",
            match="Could not find memory addressable",
            reason="the devices of a TPU topology have no memories before 0.5.0",
        )
    ],
)
def parameter_from_host(env):
    """A parameter offloaded: it arrives in the host's memory and is fetched by device_put."""
    host, device = _memories(env)
    return Program(
        lambda w, x: jnp.tanh(jax.device_put(w, device) * x),
        args=(env.put(_matrix(env, 1), host), env.put(_matrix(env, 2), device)),
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
    deviations=[
        deviation(
            "jax<0.5",
            error="ValueError",
            match="Could not find memory addressable",
            reason="the devices of a TPU topology have no memories before 0.5.0",
        )
    ],
)
def computed_where_it_lies(env):
    """An offloaded parameter used as it is, with no device_put: a TPU's host computes with it."""
    host, device = _memories(env)
    return Program(
        lambda x: 2.0 * x + 1.0, args=(env.put(_matrix(env), host),), jit={"out_shardings": device}
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
    deviations=[
        deviation(
            "jax<0.5",
            error="ValueError",
            match="Could not find memory addressable",
            reason="the devices of a TPU topology have no memories before 0.5.0",
        ),
        deviation(
            "jax>=0.5,<0.6.2",
            error="XlaRuntimeError",
            match="Async slices that change the element type",
            reason="fetching and rounding to bfloat16 in one step, which the TPU cannot",
        ),
    ],
)
def layers_streamed(env):
    """Weights of all layers stay on the host; a scan fetches those of one at a time.

    What must not happen is that the stack as a whole is copied to the device first.
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
        args=(env.put(weights, stack), env.put(_matrix(env, 4), rows)),
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
    deviations=[
        deviation(
            "jax<0.5",
            error="ValueError",
            match="Could not find memory addressable",
            reason="the devices of a TPU topology have no memories before 0.5.0",
        )
    ],
)
def optimizer_state(env):
    """Momentum kept on the host between steps: fetched, updated, and sent back where it was.

    It is donated: the host's buffer is the one that is written again.
    """
    host, device = _memories(env)

    def step(momentum, w, grad):
        fetched = 0.9 * jax.device_put(momentum, device) + grad
        return jax.device_put(fetched, host), w - 0.01 * fetched

    def by_hand(momentum, w, grad):
        fetched = 0.9 * momentum.astype(np.float64) + grad
        return fetched, w - 0.01 * fetched

    return Program(
        step,
        args=(
            env.put(_matrix(env, 5), host),
            env.put(_matrix(env, 6), device),
            env.put(_matrix(env, 7), device),
        ),
        jit={"donate_argnums": (0, 1), "out_shardings": (host, device)},
        reference=by_hand,
    )


def _scanned(env, policy):
    """Return the gradient of four layers whose hidden units are named, under a policy."""

    def layer(h, w):
        return jnp.sin(checkpoint_name(h @ w, "hidden")), None

    def loss(ws, x):
        return lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0].sum()

    weights = env.rng(8).standard_normal((4, WIDTH, WIDTH)).astype(np.float32) / 16
    return Program(jax.grad(loss), args=(weights, _matrix(env, 9)))


@program(source="jax-ml/jax#23831", platforms=["tpu", "gpu"], facts={"memory_spaces": {}})
def activations_kept(env):
    """Named activations saved for the backward pass: where they were made."""
    return _scanned(env, jax.checkpoint_policies.save_only_these_names("hidden"))


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
    deviations=[
        deviation(
            "jax<0.9",
            platform="cuda",
            outcome="ok",
            match="pinned_host",
            reason="the devices of a CUDA topology have no memories, so nothing is offloaded",
        ),
        deviation(
            "jax<0.5",
            platform="tpu",
            outcome="ok",
            match="pinned_host",
            reason="the devices of a TPU topology have no memories up to 0.4.38",
        ),
    ],
)
def activations_offloaded(env):
    """The same, offloaded: the loop writes them into a stack in the host's memory."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    return _scanned(env, policy)
