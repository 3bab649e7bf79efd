"""One small layer, its data, and what it computes, that the topics of this family share."""

from __future__ import annotations

import numpy as np

BATCH, WIDTH = 3, 4
COUNTS = np.arange(BATCH, dtype=np.int32)  # a trip count for each example, none among them
BATCHED_KERNEL = f"f32[{BATCH},{WIDTH},{WIDTH}]"  # as a jaxpr spells it


def data(env):
    """Return a kernel, a batch of inputs, and a trip count for each."""
    rng = env.rng(4700)
    kernel = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH
    return kernel, rng.standard_normal((BATCH, WIDTH)).astype(np.float32), COUNTS


def applied(kernel, x, times):
    """Return the layer `tanh(x @ kernel)` applied several times to one example, in float64."""
    for _ in range(times):
        x = np.tanh(x.astype(np.float64) @ kernel.astype(np.float64))
    return np.asarray(x, np.float64)


def by_hand(kernel, xs, counts, shape):
    """Return what a loop of some shape computes, example after example.

    Args:
        kernel: Kernel of the layer.
        xs: Batch of inputs.
        counts: Number for each example.
        shape: `while`: applied count times; `nested`: count times (count times, then once more);
            `static`: three times; `cond`: three times where count < 2, else the input.
    """
    times = {
        "while": lambda n: n,
        "nested": lambda n: n * (n + 1),
        "static": lambda _: 3,
        "cond": lambda n: 3 if n < 2 else 0,
        "times_3": lambda n: 3 * n,
    }[shape]
    return np.stack([applied(kernel, x, times(int(n))) for x, n in zip(xs, counts, strict=True)])
