"""A small layer with its data and expected results, shared by the topics of this family."""

from __future__ import annotations

import numpy as np

BATCH, WIDTH = 3, 4
COUNTS = np.arange(BATCH, dtype=np.int32)  # a trip count for each example, zero included
BATCHED_KERNEL = f"f32[{BATCH},{WIDTH},{WIDTH}]"  # as in a jaxpr


def data(env):
    """Return a kernel, a batch of inputs, and a trip count for each input."""
    rng = env.rng(4700)
    kernel = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH
    return kernel, rng.standard_normal((BATCH, WIDTH)).astype(np.float32), COUNTS


def apply_layer(kernel, x, times):
    """Return the result of applying `tanh(x @ kernel)` several times to an example, in float64."""
    for _ in range(times):
        x = np.tanh(x.astype(np.float64) @ kernel.astype(np.float64))
    return np.asarray(x, np.float64)


def compute_expected(kernel, xs, counts, shape):
    """Return the result of a loop for each example, computed without jax.

    Args:
        kernel: Kernel of the layer.
        xs: Batch of inputs.
        counts: Trip count for each example.
        shape: Kind of loop. `while`: the layer is applied count times; `nested`: count times
            (count times, then once more); `static`: three times; `cond`: three times where
            count < 2, else the input.
    """
    times = {
        "while": lambda n: n,
        "nested": lambda n: n * (n + 1),
        "static": lambda _: 3,
        "cond": lambda n: 3 if n < 2 else 0,
        "times_3": lambda n: 3 * n,
    }[shape]
    return np.stack(
        [apply_layer(kernel, x, times(int(n))) for x, n in zip(xs, counts, strict=True)]
    )
