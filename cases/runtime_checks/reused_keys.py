"""`jax_debug_key_reuse`: a random key that is used twice is an error, at tracing or at run time."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import call_outcome

defaults(
    platforms=("cpu",),
    config={"jax_debug_key_reuse": True},
    xla_flags=["--xla_backend_optimization_level=0"],
)

bits, split = jax.random.bits, jax.random.split


def twice(key):
    """Draw twice from the same key."""
    return bits(key) + bits(key)


def apart(key):
    """Draw from both keys of a split."""
    one, other = split(key)
    return bits(one) + bits(other)


def same_of_three(key):
    """Draw twice from the first of three keys."""
    keys = split(key, 3)
    return bits(keys[0]) + bits(keys[0])


REUSED = {
    "draws": twice,
    "element": same_of_three,
    "nested jit": lambda key: jax.jit(bits)(key) + jax.jit(bits)(key),
    "checkpoint": jax.checkpoint(twice),
    "scan": lambda key: lax.scan(lambda c, _: (c, bits(key)), 0, None, length=2)[1],
    "while_loop": lambda key: lax.while_loop(
        lambda c: c < 2, lambda c: c | bits(key), np.uint32(1)
    ),
}
UNIQUE = {
    "split": apart,
    "clone": lambda key: bits(jax.random.clone(key)) + bits(key),
    "scan over keys": lambda key: lax.scan(lambda c, k: (c, bits(k)), 0, split(key, 3))[1],
}


@probe(source="jax-ml/jax#20236", params=[*REUSED])
def reused(env, name):
    """A key that is used twice in a jitted function is a KeyReuseError."""
    return Observed(call_outcome(lambda: jax.jit(REUSED[name])(jax.random.key(0))), "KeyReuseError")


@probe(source="jax-ml/jax#20236", params=[*UNIQUE])
def unique(env, name):
    """Keys of a split, folded keys and clones are used once each."""
    return Observed(call_outcome(lambda: jax.jit(UNIQUE[name])(jax.random.key(0))), "ran")


@probe(source="jax-ml/jax#20704")
def closed_over(env):
    """A key that a jitted function closes over is used up by its first call."""
    key = jax.random.key(0)
    f = jax.jit(lambda: bits(key))
    return Observed([call_outcome(f), call_outcome(f)], ["ran", "KeyReuseError"])


PUT_MIXED_KEYS_UP = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="device_put had no rule: a key of several was taken for another",
    issue="jax-ml/jax#25953",
)


@probe(source="jax-ml/jax#25953", deviations=[PUT_MIXED_KEYS_UP])
def device_put(env):
    """`device_put` of two keys of a split uses up neither, from 0.5.1."""
    keys = jax.device_put(tuple(split(jax.random.key(0))))
    return Observed(call_outcome(lambda: split(keys[1])), "ran")


EXECUTABLES_SHARED = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="executables compiled without the check were used",
    issue="jax-ml/jax@8b9a9d53c356",
)


@probe(
    source="jax-ml/jax@8b9a9d53c356",
    config={"jax_debug_key_reuse": False},
    deviations=[EXECUTABLES_SHARED],
)
def functions_called_before(env):
    """The check finds a reuse in functions that were called before it was switched on."""
    f = jax.jit(twice)
    f(jax.random.key(0))
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        outcomes = {"jit": call_outcome(lambda: f(key)), "clone": call_outcome(clone_and_draw)}
    return Observed(outcomes, {"jit": "KeyReuseError", "clone": "ran"})


def clone_and_draw():
    """Draw from a key and from its clone, outside of jit."""
    key = jax.random.key(0)
    other = jax.random.clone(key)
    return bits(key) + bits(other)


NO_KEYS_AT_ALL = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="an empty array of keys counted as one that is used up as a whole",
    issue="jax-ml/jax#37859",
)


@probe(source="jax-ml/jax#37859", deviations=[NO_KEYS_AT_ALL])
def no_lanes(env):
    """A vmap over an empty array of keys is no reuse, from 0.10.2."""
    f = jax.jit(lambda key: jax.vmap(apart)(split(key, 0)))
    return Observed(call_outcome(lambda: f(jax.random.key(0))), "ran")


SHARED_KEYS_NOT_SEEN = deviation(
    "jax<0.10",
    params=["constraint"],
    outcome="ok",
    reason="there was no rule for with_sharding_constraint",
    issue="jax-ml/jax@5ac4ab760132",
)


@probe(
    source="jax-ml/jax@5ac4ab760132",
    devices=4,
    params=["constraint", "shard_map", "shard_map twice"],
    deviations=[SHARED_KEYS_NOT_SEEN],
)
def sharded(env, name):
    """One draw by each shard, or after a sharding constraint, is no reuse; two draws are."""
    mesh = env.mesh(4, "x")
    draw = twice if name == "shard_map twice" else bits
    specs = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")}
    calls = {
        "constraint": lambda key: bits(lax.with_sharding_constraint(key, NamedSharding(mesh, P()))),
        "shard_map": lambda key: env.compat.shard_map(lambda k: draw(k[0])[None], **specs)(
            split(key, 4)
        ),
    }
    f = jax.jit(calls[name.partition(" ")[0]])
    outcome = call_outcome(lambda: f(jax.random.key(0)))
    return Observed(outcome, "KeyReuseError" if name == "shard_map twice" else "ran")
