"""Transfer guards, leak checks and key reuse checks: which uses they refuse.

On a CPU, a NumPy argument counts as a transfer from the host, and reading an array does not count
as a transfer to the host.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import call_outcome, floats

defaults(platforms=("cpu",))

WORDS = ("host-to-device", "device-to-host", "device-to-device")


def transfer(call):
    """Return `ran`, or the direction of the transfer that was refused."""
    return call_outcome(call, WORDS).rpartition(": ")[2]


IMPLICIT = {
    "jit of NumPy": lambda have: have.f(have.n),
    "jit of a number": lambda have: have.f(1.0),
    "jit of an array": lambda have: have.f(have.x),
    "array": lambda have: jnp.array(have.n),
    "asarray": lambda have: jnp.asarray(have.n),
    "ones": lambda _: jnp.ones(2),
    "arange": lambda _: jnp.arange(3),
    "key": lambda _: jax.random.key(0),
    "array + 1": lambda have: have.x + 1,
    "array[0]": lambda have: have.x[0],
    "cond": lambda have: lax.cond(True, jnp.sin, jnp.cos, have.x),
    "np.asarray": lambda have: np.asarray(have.f(have.x)),
    "str": lambda have: str(have.f(have.x)),
    "jit to another device": lambda have: jax.jit(have.f, out_shardings=have.other)(have.x),
}
EXPLICIT = {
    "device_put of NumPy": lambda have: jax.device_put(have.n),
    "device_put to another device": lambda have: jax.device_put(have.x, have.other),
    "device_get": lambda have: jax.device_get(have.f(have.x)),
}
RAN = ("jit of an array", "np.asarray", "str", "arange")


def run_under_guard(level, uses, devices):
    """Return the outcome of each use under a guard of all directions."""
    have = SimpleNamespace(
        f=jax.jit(lambda a: a + 1),
        x=jax.device_put(floats(1, 2)),
        n=floats(1, 2),
        other=jax.sharding.SingleDeviceSharding(devices[1]),
    )
    have.f(have.x)
    with jax.transfer_guard(level):
        return {name: transfer(lambda use=use: use(have)) for name, use in uses.items()}


ASARRAY_WAS_EXPLICIT = deviation(
    "jax<0.10.1",
    outcome="ok",
    match="asarray",
    reason="asarray was a device_put, which is explicit",
    issue="jax-ml/jax@92faff137ef9",
)


@probe(source="jax-ml/jax#10019", devices=2, deviations=[ASARRAY_WAS_EXPLICIT])
def implicit_transfers(env):
    """`transfer_guard("disallow")` refuses NumPy arguments, numbers, `ones`, indices and keys.

    It does not refuse reading an array on a CPU.
    """
    expected = {name: "ran" if name in RAN else "host-to-device" for name in IMPLICIT}
    expected["jit to another device"] = "device-to-device"
    return Observed(run_under_guard("disallow", IMPLICIT, env.devices), expected)


@probe(source="jax-ml/jax#10019", devices=2)
def explicit_transfers(env):
    """`disallow` permits `device_put` and `device_get`, `disallow_explicit` only the latter."""
    observed = {
        level: run_under_guard(level, EXPLICIT, env.devices)
        for level in ("disallow", "disallow_explicit")
    }
    refused = dict(zip(EXPLICIT, ("host-to-device", "device-to-device", "ran"), strict=True))
    expected = {"disallow": dict.fromkeys(EXPLICIT, "ran"), "disallow_explicit": refused}
    return Observed(observed, expected)


@probe(source="jax-ml/jax#10019", devices=2)
def guard_of_a_direction(env):
    """A guard of one direction, in a context or as an option, leaves the others alone."""
    f, n = jax.jit(lambda a: a + 1), floats(1, 2)
    x = jax.device_put(n)
    f(x)
    observed = {}
    for direction in ("host_to_device", "device_to_host", "device_to_device"):
        with getattr(jax, f"transfer_guard_{direction}")("disallow_explicit"):
            put = transfer(lambda: jax.device_put(x, env.devices[1]))
            observed[direction] = [transfer(lambda: f(n)), transfer(lambda: np.asarray(f(x))), put]
    jax.config.update("jax_transfer_guard", "disallow")
    observed["option"] = transfer(lambda: f(n))
    jax.config.update("jax_transfer_guard", "allow")
    observed["unknown level"] = refusal(
        lambda: jax.transfer_guard("never").__enter__(), "'disallow'"
    )
    expected = {
        "host_to_device": ["host-to-device", "ran", "ran"],
        "device_to_host": ["ran", "ran", "ran"],
        "device_to_device": ["ran", "ran", "device-to-device"],
        "option": "host-to-device",
        "unknown level": "ValueError: 'disallow'",
    }
    return Observed(observed, expected)


LEAKS = {
    "jit": lambda f: jax.jit(f)(floats(1)),
    "grad": lambda f: jax.grad(f)(floats(1)),
}


STORED_VALUE_NOT_FOUND = deviation(
    "jax>=0.7,<0.11.1",
    params=["grad"],
    outcome="ok",
    reason="the check was switched off for linearize, which grad uses",
    issue="jax-ml/jax@4752cc942607",
)


@probe(source="jax-ml/jax#7345", params=[*LEAKS], deviations=[STORED_VALUE_NOT_FOUND])
def leak_found(env, name):
    """`checking_leaks` reports a traced value that a function stores outside, and no other."""
    kept = []

    def stores(x):
        kept.append(x)
        return x + 1

    with jax.checking_leaks():
        observed = {
            "stored": call_outcome(partial(LEAKS[name], stores), ("Leaked trace",)),
            "not stored": call_outcome(partial(LEAKS[name], lambda x: jnp.sin(x) * x)),
        }
    return Observed(observed, {"stored": "Exception: Leaked trace", "not stored": "ran"})


LEAK_OF_THE_REWRITE = deviation(
    "jax<0.4.33",
    error="Exception",
    match="Leaked trace MainTrace.*RewriteTrace",
    reason="the rewrite of the replication check left a trace alive",
    issue="jax-ml/jax#23387",
)


@probe(source="jax-ml/jax#7345", devices=4, deviations=[LEAK_OF_THE_REWRITE])
def no_leak_in_shard_map(env):
    """`checking_leaks` finds nothing in a shard_map that stores nothing, from 0.4.33."""
    mesh = env.mesh(4, "x")
    f = env.compat.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with jax.checking_leaks():
        return Observed(jax.jit(f)(np.zeros(4, np.float32)), np.zeros(4, np.float32))


@probe(source="jax-ml/jax#3086")
def leaked_value_used(env):
    """A traced value used after its function has returned is an UnexpectedTracerError."""
    kept = []
    jax.jit(kept.append)(floats(1))
    observed = {
        "added": call_outcome(lambda: kept[0] + 1),
        "in another jit": call_outcome(partial(jax.jit(lambda y: y + kept[0]), floats(1))),
    }
    return Observed(observed, dict.fromkeys(observed, "UnexpectedTracerError"))
