"""`compute_on("device_host")` in code that is really compiled for a TPU.

The topic `compute_on` looks at StableHLO, which has the annotation. Here XLA has acted on it: the
placed operations are in a computation of the thread `host`, called as `HostExecute`. jax#27825
loses this: up to 0.5.3 its program was silently compiled for the TPU, from 0.6.0 it is refused, and
with jit outermost it has always been placed.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import by_platform

defaults(platforms=["tpu"])


LOWER_BYPASSES_COMPUTE_ON = deviation(
    "jax<0.6",
    outcome="ok",
    match="adds|on_host",
    reason="lower and trace, copied from the jitted function, silently bypass compute_on",
    issue="jax-ml/jax#27825",
)
LOWER_IS_A_CLASS_ATTRIBUTE = deviation(
    "jax>=0.6",
    error="AttributeError",
    match="has no attribute '(trace|lower)'",
    reason="jax#27873 made lower and trace class attributes: an error instead of silence",
    issue="jax-ml/jax#27825",
)


@probe(
    source="jax-ml/jax#27825", deviations=[LOWER_BYPASSES_COMPUTE_ON, LOWER_IS_A_CLASS_ATTRIBUTE]
)
def compiled_outside_jit(env):
    """jax#27825 in compiled code: compute_on outermost, compiled ahead of time.

    The program adds 1 on a CPU and 2 on a TPU. Placed on the host of the TPU, it should add 1 on
    the host. Up to 0.5.3 the executable adds 2, on the TPU itself.
    """
    placed = env.compat.compute_on(jax.jit(by_platform))
    x = env.put(np.float32(0), SingleDeviceSharding(env.devices[0]))
    lowered = placed.trace(x).lower()
    hlo = lowered.compile().as_text()
    (added,) = re.findall(r"f32\[\]\S* constant\((\d)\)", hlo)
    observed = {"adds": int(added), "on_host": 'custom_call_target="HostExecute"' in hlo}
    return Observed(
        observed, {"adds": 1, "on_host": True}, artifacts={"stablehlo": lowered, "hlo": hlo}
    )


@program(
    source="jax-ml/jax#27825",
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
    """With jit outermost, a thread of the host adds 1, on every release."""
    f = jax.jit(by_platform) if inner_jit else by_platform
    return Program(
        jax.jit(env.compat.compute_on(f)), args=(np.float32(0),), reference=lambda x: x + 1
    )


@program(
    source="jax-ml/jax#27825",
    facts={
        "host_compute": False,
        "custom_calls": {},
        "filecheck": {"hlo": 'CHECK-NOT: value="1.0"\nCHECK: constant(), value="2.0"'},
    },
)
def branch_taken_on_the_device(env):
    """Without placement the program adds 2 on the TPU and drops the other branch."""
    return Program(by_platform, args=(np.float32(0),), reference=lambda x: x + 2)


SINGLE_OPERATION_INLINED = deviation(
    "jax>=0.5.3,<0.7",
    params=["one"],
    outcome="ok",
    match="host_compute",
    reason="XLA moved a computation of one operation off the host, and inlined it",
)


@program(
    source="jax-ml/jax#27825",
    params={"one": {"factor": 1.0}, "two": {"factor": 2.0}},
    facts={"host_compute": True, "custom_calls": {"HostExecute": 1}},
    deviations=[SINGLE_OPERATION_INLINED],
)
def operations_placed(env, factor):
    """A sine is placed on the host, by itself or with a multiplication.

    By itself it was computed on the TPU from 0.5.3 to 0.6.2. The StableHLO is annotated all the
    same, so only the compiled code shows it. Multiplying by 1 is no operation, either.
    """
    x = env.rng(1).standard_normal((8, 128)).astype(np.float32)
    return Program(
        env.compat.compute_on(lambda y: factor * jnp.sin(y)),
        args=(x,),
        reference=lambda y: factor * np.sin(y.astype(np.float64)),
    )


THREE_HOST_CALLS = deviation(
    "jax<0.5.1",
    outcome="ok",
    match="custom_calls",
    reason="XLA calls the host three times, although one call is enough",
)


@program(
    source="jax-ml/jax#23887",
    facts={"host_compute": True, "custom_calls": {"HostExecute": 1}},
    deviations=[THREE_HOST_CALLS],
)
def branches_within(env):
    """A `cond` inside a placed function compiles for a TPU; in jax#23887 this failed."""

    def either(x):
        return lax.cond(x[0] > 0, lambda y: jnp.sin(y) + 1.0, lambda y: y * 3.0, x)

    x = env.rng(2).standard_normal(128).astype(np.float32)
    return Program(env.compat.compute_on(either), args=(x,))


@program(
    source="jax-ml/jax#27825",
    devices=4,
    facts={"host_compute": True, "custom_calls": {"HostExecute": 1}, "collectives": {}},
)
def sharded(env):
    """Each host computes on the shards of its devices: the placement needs no collective."""
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
    source="jax-ml/jax#27825", facts={"host_compute": True, "custom_calls": {"HostExecute": 2}}
)
def two_visits(env):
    """Device work between two placed parts separates them: the data go to the host twice."""
    placed = env.compat.compute_on(lambda x: jnp.sin(x) + 1.0)
    x = env.rng(4).standard_normal((128, 128)).astype(np.float32)
    return Program(lambda y: placed(placed(y) @ y), args=(x,))
