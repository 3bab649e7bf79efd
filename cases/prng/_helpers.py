"""Threefry in NumPy, which computes the expected streams without JAX; and draws of JAX.

The layout is the default since 0.5.0 (`jax_threefry_partitionable`): the counter of element i is
the 64-bit number i, in two words. `original_bits` and `original_split` implement the earlier
layout, whose counters were halves of one range and depended on its length.
"""

from __future__ import annotations

from statistics import NormalDist

import jax
import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
SEED = 1701


def threefry(key, first, second):
    """Return the two words of threefry2x32 with 20 rounds.

    Args:
        key: Two words.
        first: First words of the counters.
        second: Second words of the counters.
    """
    with np.errstate(over="ignore"):
        k0, k1 = (np.uint32(word) for word in key)
        keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
        x = np.asarray(first, np.uint32) + k0
        y = np.asarray(second, np.uint32) + k1
        for group in range(5):
            for rotation in ROTATIONS[group % 2]:
                x = x + y
                y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
                y = y ^ x
            x = x + keys[(group + 1) % 3]
            y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def key_words(seed=SEED):
    """Return the words of the key of a seed: its high half and its low half."""
    return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)


def run_draw(draw, *args):
    """Return the result of a JAX draw with the key of SEED.

    The draw is compiled as one program, which shares bits and compilation.

    Args:
        draw: Function of a key and of further arguments.
        args: Arrays.
    """
    run = jax.jit(lambda words, *args: draw(jax.random.wrap_key_data(words), *args))
    return run(key_words(), *args)


def hash_counters(key, count):
    """Return both words of threefry for the counters 0, 1, 2 ... as 64-bit numbers."""
    index = np.arange(count, dtype=np.uint64)
    return threefry(key, index >> np.uint64(32), index & np.uint64(0xFFFFFFFF))


def split(key, count=2):
    """Return the key data of `jax.random.split`."""
    return np.stack(hash_counters(key, count), axis=-1)


def fold_in(key, number):
    """Return the key data of `jax.random.fold_in`."""
    return np.array(threefry(key, 0, number), np.uint32)


def bits(key, count, width=32):
    """Return `count` random words of the given width."""
    first, second = hash_counters(key, count)
    if width == 64:
        return first.astype(np.uint64) << np.uint64(32) | second
    return (first ^ second).astype(f"uint{width}")


def original_bits(key, count):
    """Return 32-bit words in the layout used before 0.5.0."""
    counters = np.arange(count + count % 2, dtype=np.uint32)
    counters[count:] = 0
    return np.concatenate(threefry(key, *np.split(counters, 2)))[:count]


def original_split(key, count=2):
    """Return the key data of `split` in the layout used before 0.5.0."""
    return original_bits(key, 2 * count).reshape(count, 2)


def unit(key, count, width=32, mantissa=23):
    """Return exact numbers in [0, 1) whose mantissas are the top bits of each word."""
    top = bits(key, count, width) >> np.array(width - mantissa, f"uint{width}")
    return top.astype(np.float64) / 2.0**mantissa


def between(u, low, high=1.0):
    """Return the result of `uniform` for numbers in [0, 1), with its float32 rounding."""
    low, high = np.float32(low), np.float32(high)
    return np.maximum(low, u.astype(np.float32) * (high - low) + low).astype(np.float64)


def normal(key, count):
    """Return standard normal numbers, by inversion in float64."""
    u = between(unit(key, count), np.nextafter(np.float32(-1), np.float32(0)))
    return np.array([NormalDist().inv_cdf((x + 1) / 2) for x in u])


def gumbel(key, count):
    """Return standard Gumbel numbers, by inversion in float64."""
    u = between(unit(key, count), np.finfo(np.float32).tiny)
    return -np.log(-np.log(u))


def randint(key, count, low, high, width=32):
    """Return integers in [low, high) as `randint` documents: from twice the bits of the dtype.

    Dtypes of less than 32 bits are drawn with 32 bits, as JAX does from 0.7.2 on.
    """
    width = max(width, 32)
    higher, lower = (bits(k, count, width).astype(object) for k in split(key))
    return np.array(
        [low + (h * 2**width + x) % (high - low) for h, x in zip(higher, lower, strict=True)]
    )
