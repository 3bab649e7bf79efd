"""A small layer with its data and exact results, shared by the topics of this family."""

from __future__ import annotations

import numpy as np

ROWS, WIDTH = 8, 3


def data(env):
    """Return a kernel, inputs and targets of a linear layer: eight rows, two per shard."""
    rng = env.rng(11)
    kernel = rng.normal(size=(WIDTH, 2)).astype(np.float32) / WIDTH
    x = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    return kernel, x, rng.normal(size=(ROWS, 2)).astype(np.float32)


def exact_loss(kernel, x, y):
    """Return the mean squared error of `tanh(x @ kernel)`, in float64."""
    kernel, x, y = (np.asarray(a, np.float64) for a in (kernel, x, y))
    return np.mean((np.tanh(x @ kernel) - y) ** 2)


def exact_gradient(kernel, x, y):
    """Return the gradient of `exact_loss` with respect to the kernel, in float64."""
    kernel, x, y = (np.asarray(a, np.float64) for a in (kernel, x, y))
    out = np.tanh(x @ kernel)
    return x.T @ (2 * (out - y) * (1 - out**2)) / out.size


def exact_adam(kernel, gradients):
    """Return a kernel after steps of Adam at a rate of 0.1, with its usual constants.

    Args:
        kernel: Initial kernel.
        gradients: Functions from a kernel to its gradient, one for each step.
    """
    rate, b1, b2, eps = 0.1, 0.9, 0.999, 1e-8
    kernel = np.asarray(kernel, np.float64)
    m, v = np.zeros_like(kernel), np.zeros_like(kernel)
    for step, gradient in enumerate(gradients, 1):
        g = gradient(kernel)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        kernel = kernel - rate * (m / (1 - b1**step)) / (np.sqrt(v / (1 - b2**step)) + eps)
    return kernel
