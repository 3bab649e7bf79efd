"""What `compute_on("device_host")` becomes when it is really compiled for a TPU.

The topic `compute_on` looks at StableHLO, where the annotation is. Here XLA has acted on it: the
placed operations stand in a computation of the thread `host`, called as `HostExecute`. That is
what jax#27825 loses: up to 0.5.3 its program was compiled for the TPU without a word, from 0.6.0
it is refused, with jit outermost it has always been placed.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import by_platform


@probe(
    source="jax-ml/jax#27825",
    platforms=["tpu"],
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            match="adds|on_host",
            reason="lower and trace, copied off the jitted function, bypass compute_on: silent",
            issue="jax-ml/jax#27825",
        ),
        deviation(
            "jax>=0.6",
            error="AttributeError",
            match="has no attribute '(trace|lower)'",
            reason="jax#27873 made lower and trace class attributes: loud instead of silent",
            issue="jax-ml/jax#27825",
        ),
    ],
)
def compiled_outside_jit(env):
    """compute_on outermost, compiled ahead of time: jax#27825 to its end.

    The program adds 1 on a CPU and 2 on a TPU. Placed on the host of the TPU it should add 1,
    there. Up to 0.5.3 the executable adds 2, on the TPU itself.
    """
    placed = env.compat.compute_on(jax.jit(by_platform))
    x = env.put(np.float32(0), SingleDeviceSharding(env.devices[0]))
    lowered = placed.trace(x).lower()
    hlo = lowered.compile().as_text()
    (added,) = re.findall(r"f32\[\]\S* constant\((\d)\)", hlo)
    seen = {"adds": int(added), "on_host": 'custom_call_target="HostExecute"' in hlo}
    return Observed(
        seen, {"adds": 1, "on_host": True}, artifacts={"stablehlo": lowered, "hlo": hlo}
    )


@program(
    source="jax-ml/jax#27825",
    platforms=["tpu"],
    params={"inside": {"inner_jit": False}, "jit_both_sides": {"inner_jit": True}},
    facts={
        "host_compute": True,
        "custom_calls": {"HostExecute": 1},
        "filecheck": {
            "hlo": """
                CHECK: execution_thread="host"
                CHECK: constant(){{.*}}value="1.0"
                CHECK: entry
                CHECK-NOT: value="2.0"
                CHECK: custom_call_target="HostExecute"
            """
        },
    },
)
def branch_taken_on_the_host(env, inner_jit):
    """The same program with jit outermost: a thread of the host adds 1, on every release."""
    f = jax.jit(by_platform) if inner_jit else by_platform
    return Program(
        jax.jit(env.compat.compute_on(f)), args=(np.float32(0),), reference=lambda x: x + 1
    )


@program(
    source="jax-ml/jax#27825",
    platforms=["tpu"],
    facts={
        "host_compute": False,
        "custom_calls": {},
        "filecheck": {"hlo": 'CHECK-NOT: value="1.0"\nCHECK: constant(), value="2.0"'},
    },
)
def branch_taken_on_the_device(env):
    """Unplaced, it adds 2 on the TPU and leaves nothing of the other branch."""
    return Program(by_platform, args=(np.float32(0),), reference=lambda x: x + 2)


@program(
    source="jax-ml/jax#27825",
    platforms=["tpu"],
    params={"one": {"factor": 1.0}, "two": {"factor": 2.0}},
    facts={"host_compute": True, "custom_calls": {"HostExecute": 1}},
    deviations=[
        deviation(
            "jax>=0.5.3,<0.7",
            params=["one"],
            outcome="ok",
            match="host_compute",
            reason="XLA took a computation of one operation off the host, and inlined it",
        )
    ],
)
def operations_placed(env, factor):
    """A sine on the host, by itself or with a multiplication: both are to be placed.

    By itself it was computed on the TPU from 0.5.3 to 0.6.2. The StableHLO is annotated all the
    same, so nothing but the compiled code shows it. Multiplying by one is no operation, either.
    """
    x = env.rng(1).standard_normal((8, 128)).astype(np.float32)
    return Program(
        env.compat.compute_on(lambda y: factor * jnp.sin(y)),
        args=(x,),
        reference=lambda y: factor * np.sin(y.astype(np.float64)),
    )


@program(
    source="jax-ml/jax#23887",
    platforms=["tpu"],
    facts={"host_compute": True, "custom_calls": {"HostExecute": 1}},
    deviations=[
        deviation(
            "jax<0.5.1",
            outcome="ok",
            match="custom_calls",
            reason="three calls of the host, where one is enough",
        )
    ],
)
def branches_within(env):
    """A `cond` inside a placed function: jax#23887, where compiling for a TPU failed."""

    def either(x):
        return lax.cond(x[0] > 0, lambda y: jnp.sin(y) + 1.0, lambda y: y * 3.0, x)

    x = env.rng(2).standard_normal(128).astype(np.float32)
    return Program(env.compat.compute_on(either), args=(x,))


@program(
    source="jax-ml/jax#27825",
    platforms=["tpu"],
    devices=4,
    facts={"host_compute": True, "custom_calls": {"HostExecute": 1}, "collectives": {}},
)
def sharded(env):
    """Each host computes on the shards of its devices: placing needs no collective."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    placed = env.compat.compute_on(lambda x: jnp.sin(x) + 1.0)
    x = env.rng(3).standard_normal((8, 128)).astype(np.float32)
    return Program(
        lambda y: placed(2.0 * y) / 3.0,
        args=(env.put(x, rows),),
        jit={"out_shardings": rows},
        reference=lambda y: (np.sin(2.0 * y.astype(np.float64)) + 1.0) / 3.0,
    )


@program(
    source="jax-ml/jax#27825",
    platforms=["tpu"],
    facts={"host_compute": True, "custom_calls": {"HostExecute": 2}},
)
def two_visits(env):
    """Device work between two placed parts keeps them apart: the data go to the host twice."""
    placed = env.compat.compute_on(lambda x: jnp.sin(x) + 1.0)
    x = env.rng(4).standard_normal((128, 128)).astype(np.float32)
    return Program(lambda y: placed(placed(y) @ y), args=(x,))
