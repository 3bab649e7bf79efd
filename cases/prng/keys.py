"""Typed keys: arrays of a dtype of their own, and what may be done with them.

`jax.random.key` makes a scalar of dtype `key<fry>`, `PRNGKey` two plain words. The typed ones
refuse arithmetic, and over the releases they refuse more: NumPy conversion, truth.
"""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import SEED, drawn, fold_in, seeded, split

data = jax.random.key_data


@probe(
    source="jax-ml/jax#35081",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.8.2,<0.9.1",
            error="TypeError",
            match="cannot pickle 'PRNGKeyArray'",
            reason="Python 3.11 did not find the method of the class in C",
            issue="jax-ml/jax#35065",
        )
    ],
)
def pickled(env):
    """A key through pickle: the same dtype and words. Broken from 0.8.2 to 0.9.0.1."""
    key = jax.random.wrap_key_data(jnp.asarray(seeded()))
    key = pickle.loads(pickle.dumps(key))  # noqa: S301 - our own bytes
    seen = {"dtype": str(key.dtype), "words": data(key)}
    return Observed(seen, reference={"dtype": "key<fry>", "words": seeded()})


@probe(
    source="jax-ml/jax@4bb81075bcc8",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.33",
            error="AttributeError",
            match="_impl",
            reason="it was an object that cannot be compared with its name",
            issue="jax-ml/jax@4bb81075bcc8",
        ),
        deviation(
            "jax>=0.4.33,<0.4.36",
            outcome="ok",
            reason="it was an object that prints like the name and is not equal to it",
            issue="jax-ml/jax@4bb81075bcc8",
        ),
    ],
)
def name_of_the_implementation(env):
    """`key_impl` is a plain string since 0.4.36, not an object that prints like one."""
    impl = jax.random.key_impl(jax.random.wrap_key_data(seeded()))
    seen = {"a string": isinstance(impl, str), "equal to the name": impl == "threefry2x32"}
    return Observed(seen, reference={"a string": True, "equal to the name": True})


@probe(
    source="jax-ml/jax#24481",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            outcome="ok",
            match="ran",
            reason="it made an array of one object",
            issue="jax-ml/jax#24481",
        )
    ],
)
def to_numpy(env):
    """`np.asarray(key)` is a TypeError since 0.4.36; before, a useless array of objects."""
    key = jax.random.wrap_key_data(seeded())
    seen = refusal(lambda: np.asarray(key), "jax.random.key_data")
    return Observed(seen, reference="TypeError: jax.random.key_data")


@probe(
    source="jax-ml/jax@68706155b6b5",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10.1",
            outcome="ok",
            reason="the truth of a key was whether it has a length",
            issue="jax-ml/jax@68706155b6b5",
        )
    ],
)
def truth(env):
    """`bool(keys)` is refused since 0.10.1: it was True for an array, and `len` failed for one."""
    words = ("converted to boolean", "len() of unsized")
    keys = jax.random.wrap_key_data(np.zeros((2, 2), np.uint32))
    seen = {
        "key": refusal(lambda: bool(jax.random.wrap_key_data(seeded())), *words),
        "keys": refusal(lambda: bool(keys), *words),
    }
    told = "TypeError: converted to boolean"
    return Observed(seen, reference={"key": told, "keys": told})


@probe(
    source="jax-ml/jax@0fa13e32e863",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10.2",
            outcome="ok",
            reason="the philox generators came with 0.10.2",
            issue="jax-ml/jax@0fa13e32e863",
        )
    ],
)
def implementations(env):
    """The named generators: how many words a key has, and that another name is refused."""
    names = ("threefry2x32", "rbg", "unsafe_rbg", "philox4x32", "nothing")
    seen = {}
    for name in names:
        told = refusal(lambda name=name: jax.random.key(SEED, impl=name), "unrecognized")
        made = told == "ran" and data(jax.random.key(SEED, impl=name))
        seen[name] = made.shape[-1] if told == "ran" else told
    wanted = dict(zip(names, (2, 4, 4, 2, "ValueError: unrecognized"), strict=True))
    return Observed(seen, reference=wanted)


@probe(
    source="jax-ml/jax#27854",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10.1",
            error="TypeError",
            match="unexpected keyword argument 'dtype'",
            reason="the argument came with 0.10.1; name the implementation",
            issue="jax-ml/jax#27854",
        )
    ],
)
def key_of_a_dtype(env):
    """`key(seed, dtype=other.dtype)`: a key of the same kind, from 0.10.1."""
    made = jax.random.key(SEED, dtype=jax.random.key(0, impl="rbg").dtype)
    return Observed(str(jax.random.key_impl(made)), reference="rbg")


@probe(
    source="jax-ml/jax#9263",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def wrapped_and_unwrapped(env):
    """`wrap_key_data` is the inverse of `key_data`, and a legacy key draws the same numbers."""

    def keys(key):
        return {
            "data": data(key),
            "split": data(jax.random.split(key)),
            "legacy": jax.random.split(jax.random.PRNGKey(SEED)),
        }

    words = split(seeded())
    return Observed(drawn(keys), reference={"data": seeded(), "split": words, "legacy": words})


@probe(source="jax-ml/jax@5ac8043860a8", platforms=("cpu",))
def refused_keys(env):
    """What is no key, and what a key is not for; each with a message that says what is."""
    random = jax.random
    key, keys = random.wrap_key_data(seeded()), random.wrap_key_data(np.zeros((2, 2), np.uint32))
    seen = {
        "words": refusal(lambda: random.wrap_key_data(np.zeros(3, np.uint32)), "shape to end"),
        "signed": refusal(lambda: random.wrap_key_data(np.zeros(2, np.int32)), "uint32"),
        "seed": refusal(lambda: random.key(1.5), "must be an integer"),
        "seeds": refusal(lambda: random.key(np.arange(2)), "scalar seed"),
        "number": refusal(lambda: random.uniform(5), "invalid PRNG key data"),
        "sum": refusal(lambda: key + 1, "does not accept dtypes"),
        "batch split": refusal(lambda: random.split(keys), "single key", "vmap"),
        "batch drawn": refusal(lambda: random.normal(keys, (2,)), "single key", "vmap"),
    }
    wanted = {
        "words": "TypeError: shape to end",
        "signed": "TypeError: uint32",
        "seed": "TypeError: must be an integer",
        "seeds": "TypeError: scalar seed",
        "number": "TypeError: invalid PRNG key data",
        "sum": "TypeError: does not accept dtypes",
        "batch split": "ValueError: single key, vmap",
        "batch drawn": "ValueError: single key, vmap",
    }
    return Observed(seen, reference=wanted)


@probe(
    source="jax-ml/jax#27579",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="nbytes",
            reason="it was abstract",
            issue="jax-ml/jax#27579",
        )
    ],
)
def bytes_of_keys(env):
    """`nbytes` of three keys: 24. Not implemented before 0.6.0."""
    keys = jax.random.wrap_key_data(np.zeros((3, 2), np.uint32))
    return Observed(keys.nbytes, reference=24)


@probe(
    source="jax-ml/jax#9263",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def arrays_of_keys(env):
    """Keys are moved about like any array; what moves are pairs of words."""

    def moved(key):
        keys = jax.random.split(key, 4)
        made = {
            "index": keys[-1],
            "concatenate": jnp.concatenate([keys, keys[:1]]),
            "where": jnp.where(np.arange(4) > 1, keys, keys[0]),
            "set": keys.at[1].set(keys[3]),
            "broadcast": jnp.broadcast_to(keys[0], (2, 2)),
            "transpose": keys.reshape(2, 2).T,
        }
        return {name: data(key) for name, key in made.items()}

    words = split(seeded(), 4)
    wanted = {
        "index": words[-1],
        "concatenate": np.r_[words, words[:1]],
        "where": words[[0, 0, 2, 3]],
        "set": words[[0, 3, 2, 3]],
        "broadcast": np.tile(words[0], (2, 2, 1)),
        "transpose": words.reshape(2, 2, 2).swapaxes(0, 1),
    }
    return Observed(drawn(moved), reference=wanted)


@probe(
    source="jax-ml/jax@8949a63ce18d",
    platforms=("cpu",),
    config={"jax_debug_key_reuse": True},
)
def reuse(env):
    """With the checker on a second draw from one key is an error, and one from a split is not."""
    key = jax.random.wrap_key_data(seeded())
    fresh = jax.random.split(jax.random.wrap_key_data(seeded(7)))
    jax.random.bits(key)
    seen = {
        "the same key": refusal(lambda: jax.random.bits(key), "consumed"),
        "keys of a split": refusal(lambda: [jax.random.bits(k) for k in fresh], "consumed"),
    }
    wanted = {"the same key": "KeyReuseError: consumed", "keys of a split": "ran"}
    return Observed(seen, reference=wanted)


@probe(source="jax-ml/jax#9263", platforms=("cpu",))
def folded_in_a_loop(env):
    """`fold_in` of the step under scan: a key for each step, the same as outside."""

    def folded(key):
        return jax.lax.scan(lambda c, i: (c, data(jax.random.fold_in(key, i))), 0, np.arange(4))[1]

    return Observed(drawn(folded), reference=np.stack([fold_in(seeded(), i) for i in range(4)]))


@probe(
    source="jax-ml/jax@47bc2f55dc0e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="NumPy words stayed NumPy words: on no device",
            issue="jax-ml/jax@47bc2f55dc0e",
        )
    ],
)
def held_by_a_wrapped_key(env):
    """NumPy words wrapped as a key are a jax array inside, since 0.6.0: so they have a sharding."""
    key = jax.random.wrap_key_data(seeded())
    held = key._base_array  # noqa: SLF001 - what is told is what is inside
    return Observed(type(held).__name__, reference="ArrayImpl")
