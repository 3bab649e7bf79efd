"""Typed keys: arrays of a special dtype, and the operations they allow.

`jax.random.key` makes a scalar of dtype `key<fry>`, `PRNGKey` two plain words. Typed keys refuse
arithmetic, and later releases refuse more: conversion to NumPy, and truth.
"""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit import strategies as st
from conformance.kit.endings import refusal
from conformance.kit.laws import check_same

from ._helpers import SEED, fold_in, key_words, run_draw, split

defaults(platforms=("cpu",))

data = jax.random.key_data


NO_PICKLE_ON_PYTHON_3_11 = deviation(
    "jax>=0.8.2,<0.9.1",
    error="TypeError",
    match="cannot pickle 'PRNGKeyArray'",
    reason="Python 3.11 did not find __getstate__ of the parent class, which is written in C",
    issue="jax-ml/jax#35065",
)


@probe(source="jax-ml/jax#35081", deviations=[NO_PICKLE_ON_PYTHON_3_11])
def pickled(env):
    """A pickled key keeps its dtype and words. Pickling was broken from 0.8.2 to 0.9.0.1."""
    key = jax.random.wrap_key_data(jnp.asarray(key_words()))
    key = pickle.loads(pickle.dumps(key))  # noqa: S301 - the bytes are made here
    observed = {"dtype": str(key.dtype), "words": data(key)}
    return Observed(observed, reference={"dtype": "key<fry>", "words": key_words()})


IMPL_NOT_COMPARABLE = deviation(
    "jax<0.4.33",
    error="AttributeError",
    match="_impl",
    reason="key_impl returned an object that cannot be compared with its name",
    issue="jax-ml/jax@4bb81075bcc8",
)
IMPL_NOT_EQUAL_TO_NAME = deviation(
    "jax>=0.4.33,<0.4.36",
    outcome="ok",
    reason="key_impl returned an object that prints like its name and is not equal to it",
    issue="jax-ml/jax@4bb81075bcc8",
)


@probe(source="jax-ml/jax@4bb81075bcc8", deviations=[IMPL_NOT_COMPARABLE, IMPL_NOT_EQUAL_TO_NAME])
def name_of_the_implementation(env):
    """`key_impl` is a plain string since 0.4.36, not an object that prints like a string."""
    impl = jax.random.key_impl(jax.random.wrap_key_data(key_words()))
    observed = {"a string": isinstance(impl, str), "equal to the name": impl == "threefry2x32"}
    return Observed(observed, reference={"a string": True, "equal to the name": True})


CONVERTED_TO_OBJECTS = deviation(
    "jax<0.4.36",
    outcome="ok",
    match="ran",
    reason="NumPy converted a key to an array of one object",
    issue="jax-ml/jax#24481",
)


@probe(source="jax-ml/jax#24481", deviations=[CONVERTED_TO_OBJECTS])
def to_numpy(env):
    """`np.asarray(key)` is a TypeError since 0.4.36; before, it gave a useless object array."""
    key = jax.random.wrap_key_data(key_words())
    observed = refusal(lambda: np.asarray(key), "jax.random.key_data")
    return Observed(observed, reference="TypeError: jax.random.key_data")


BOOL_USED_LEN = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="bool() of a key used the length of the key",
    issue="jax-ml/jax@68706155b6b5",
)


@probe(source="jax-ml/jax@68706155b6b5", deviations=[BOOL_USED_LEN])
def truth(env):
    """`bool(keys)` is refused since 0.10.1.

    Before, it was True for an array of keys, and for a single key `len` failed.
    """
    words = ("converted to boolean", "len() of unsized")
    keys = jax.random.wrap_key_data(np.zeros((2, 2), np.uint32))
    observed = {
        "key": refusal(lambda: bool(jax.random.wrap_key_data(key_words())), *words),
        "keys": refusal(lambda: bool(keys), *words),
    }
    message = "TypeError: converted to boolean"
    return Observed(observed, reference={"key": message, "keys": message})


NO_PHILOX = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="the philox generators were added in 0.10.2",
    issue="jax-ml/jax@0fa13e32e863",
)


@probe(source="jax-ml/jax@0fa13e32e863", deviations=[NO_PHILOX])
def implementations(env):
    """Generators by name: the number of words of each key; an unknown name is refused."""
    names = ("threefry2x32", "rbg", "unsafe_rbg", "philox4x32", "nothing")
    observed = {}
    for name in names:
        outcome = refusal(lambda name=name: jax.random.key(SEED, impl=name), "unrecognized")
        result = outcome == "ran" and data(jax.random.key(SEED, impl=name))
        observed[name] = result.shape[-1] if outcome == "ran" else outcome
    expected = dict(zip(names, (2, 4, 4, 2, "ValueError: unrecognized"), strict=True))
    return Observed(observed, reference=expected)


NO_DTYPE_ARGUMENT = deviation(
    "jax<0.10.1",
    error="TypeError",
    match="unexpected keyword argument 'dtype'",
    reason="the argument was added in 0.10.1; name the implementation instead",
    issue="jax-ml/jax#27854",
)


@probe(source="jax-ml/jax#27854", deviations=[NO_DTYPE_ARGUMENT])
def key_of_a_dtype(env):
    """`key(seed, dtype=other.dtype)` makes a key of the same kind, from 0.10.1."""
    result = jax.random.key(SEED, dtype=jax.random.key(0, impl="rbg").dtype)
    return Observed(str(jax.random.key_impl(result)), reference="rbg")


OLD_BIT_LAYOUT = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the bits are those of the old layout",
    issue="jax-ml/jax#18480",
)


@probe(source="jax-ml/jax#9263", deviations=[OLD_BIT_LAYOUT])
def wrapped_and_unwrapped(env):
    """`wrap_key_data` is the inverse of `key_data`; a legacy key draws the same numbers."""

    def keys(key):
        return {
            "data": data(key),
            "split": data(jax.random.split(key)),
            "legacy": jax.random.split(jax.random.PRNGKey(SEED)),
        }

    words = split(key_words())
    return Observed(
        run_draw(keys), reference={"data": key_words(), "split": words, "legacy": words}
    )


@probe(source="jax-ml/jax@5ac8043860a8")
def refused_keys(env):
    """Invalid keys, and invalid uses of keys, raise errors that name the requirement."""
    random = jax.random
    key, keys = random.wrap_key_data(key_words()), random.wrap_key_data(np.zeros((2, 2), np.uint32))
    observed = {
        "words": refusal(lambda: random.wrap_key_data(np.zeros(3, np.uint32)), "shape to end"),
        "signed": refusal(lambda: random.wrap_key_data(np.zeros(2, np.int32)), "uint32"),
        "seed": refusal(lambda: random.key(1.5), "must be an integer"),
        "seeds": refusal(lambda: random.key(np.arange(2)), "scalar seed"),
        "number": refusal(lambda: random.uniform(5), "invalid PRNG key data"),
        "sum": refusal(lambda: key + 1, "does not accept dtypes"),
        "batch split": refusal(lambda: random.split(keys), "single key", "vmap"),
        "batch drawn": refusal(lambda: random.normal(keys, (2,)), "single key", "vmap"),
    }
    expected = {
        "words": "TypeError: shape to end",
        "signed": "TypeError: uint32",
        "seed": "TypeError: must be an integer",
        "seeds": "TypeError: scalar seed",
        "number": "TypeError: invalid PRNG key data",
        "sum": "TypeError: does not accept dtypes",
        "batch split": "ValueError: single key, vmap",
        "batch drawn": "ValueError: single key, vmap",
    }
    return Observed(observed, reference=expected)


NBYTES_ABSTRACT = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="nbytes",
    reason="nbytes of a key was abstract",
    issue="jax-ml/jax#27579",
)


@probe(source="jax-ml/jax#27579", deviations=[NBYTES_ABSTRACT])
def bytes_of_keys(env):
    """`nbytes` of three keys is 24. It was not implemented before 0.6.0."""
    keys = jax.random.wrap_key_data(np.zeros((3, 2), np.uint32))
    return Observed(keys.nbytes, reference=24)


@probe(source="jax-ml/jax#9263", deviations=[OLD_BIT_LAYOUT])
def arrays_of_keys(env):
    """Array operations move keys like elements of any array; each key is a pair of words."""

    def moved(key):
        keys = jax.random.split(key, 4)
        result = {
            "index": keys[-1],
            "concatenate": jnp.concatenate([keys, keys[:1]]),
            "where": jnp.where(np.arange(4) > 1, keys, keys[0]),
            "set": keys.at[1].set(keys[3]),
            "broadcast": jnp.broadcast_to(keys[0], (2, 2)),
            "transpose": keys.reshape(2, 2).T,
        }
        return {name: data(key) for name, key in result.items()}

    words = split(key_words(), 4)
    expected = {
        "index": words[-1],
        "concatenate": np.r_[words, words[:1]],
        "where": words[[0, 0, 2, 3]],
        "set": words[[0, 3, 2, 3]],
        "broadcast": np.tile(words[0], (2, 2, 1)),
        "transpose": words.reshape(2, 2, 2).swapaxes(0, 1),
    }
    return Observed(run_draw(moved), reference=expected)


NO_VALUE_FOR_A_MISSING_KEY = deviation(
    "jax<0.8.2",
    error="ValueError",
    match="Unsupported dtype for gather fill_value",
    reason="a gather of keys had no fill value",
    issue="jax-ml/jax#33476",
)


@probe(source="jax-ml/jax#33476", deviations=[NO_VALUE_FOR_A_MISSING_KEY])
def keys_out_of_bounds(env):
    """`keys.at[7].get(mode="fill")` beyond the end is the key whose bits are all ones."""
    keys = jax.random.wrap_key_data(np.arange(6, dtype=np.uint32).reshape(3, 2))
    taken = jax.jit(lambda keys: keys.at[np.array([1, 7])].get(mode="fill"))(keys)
    return Observed(data(taken), np.array([[2, 3], [2**32 - 1] * 2], np.uint32))


@probe(source="jax-ml/jax@8949a63ce18d", config={"jax_debug_key_reuse": True})
def reuse(env):
    """With the key reuse checker on, a second draw from a key is an error.

    A draw from each key of a split is not.
    """
    key = jax.random.wrap_key_data(key_words())
    fresh = jax.random.split(jax.random.wrap_key_data(key_words(7)))
    jax.random.bits(key)
    observed = {
        "the same key": refusal(lambda: jax.random.bits(key), "consumed"),
        "keys of a split": refusal(lambda: [jax.random.bits(k) for k in fresh], "consumed"),
    }
    expected = {"the same key": "KeyReuseError: consumed", "keys of a split": "ran"}
    return Observed(observed, reference=expected)


@probe(source="jax-ml/jax#9263", given={"seed": st.integers(0, 2**32 - 1)})
def folded_in_a_loop(env, seed):
    """`fold_in` of the step under scan gives a key for each step, the same as outside."""
    check_same(
        fold_steps(key_words(seed)), np.stack([fold_in(key_words(seed), i) for i in range(4)])
    )


@jax.jit
def fold_steps(words):
    """Return the words of the keys of four steps."""
    key = jax.random.wrap_key_data(words)
    return jax.lax.scan(lambda c, i: (c, data(jax.random.fold_in(key, i))), 0, np.arange(4))[1]


WORDS_STAYED_NUMPY = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the words stayed a NumPy array, which is on no device",
    issue="jax-ml/jax@47bc2f55dc0e",
)


@probe(source="jax-ml/jax@47bc2f55dc0e", deviations=[WORDS_STAYED_NUMPY])
def held_by_a_wrapped_key(env):
    """A key that wraps NumPy words contains a JAX array since 0.6.0, so it has a sharding."""
    key = jax.random.wrap_key_data(key_words())
    base_array = key._base_array  # noqa: SLF001 - no public name for the array
    return Observed(type(base_array).__name__, reference="ArrayImpl")


@probe(
    source="jax-ml/jax#24589",
    records="nothing documented says where the words of a fetched key are",
)
def fetched(env):
    """`jax.device_get` of a key moves its words to a NumPy array, from 0.4.36 to 0.5.3."""
    key = jax.device_get(jax.random.wrap_key_data(jnp.asarray(key_words())))
    return {"class": type(key).__name__, "words": type(data(key)).__name__}


MASKED_BY_NUMBERS = deviation(
    "jax>=0.5",
    params=["diagonal"],
    error="ValueError",
    match="Cannot convert_element_type",
    reason="the elements are masked by numbers, to which keys cannot be converted",
)
NOT_FILLED_WITH_KEYS = deviation(
    "jax<0.7.2",
    params=["full"],
    error="ValueError",
    match="canonicalize_dtype called on extended dtype",
    reason="the dtype of the key was canonicalised",
)
FUNCTIONS_OF_KEYS = {
    "diagonal": (jnp.diagonal, (2,)),
    "full": (lambda keys: jax.lax.full((3,), keys[0, 0]), (3,)),
    "tril": (jnp.tril, (2, 2)),
}


@probe(
    source="jax-ml/jax@ee0469088750",
    params=[*FUNCTIONS_OF_KEYS],
    deviations=[MASKED_BY_NUMBERS, NOT_FILLED_WITH_KEYS],
)
def rearranged_by(env, name):
    """`jnp.diagonal` of keys is refused from 0.5.0 on; `lax.full` of a key works from 0.7.2 on."""
    function, shape = FUNCTIONS_OF_KEYS[name]
    keys = jax.random.split(jax.random.wrap_key_data(key_words()), (2, 2))
    return Observed(function(keys).shape, reference=shape)
