"""Flax: layers of linen and of NNX, their transformations and their state, against NumPy."""

import jax.numpy as jnp
import numpy as np

from conformance.kit import Program, program


def rows(env):
    """Return a batch of inputs."""
    return env.rng(0).normal(size=(4, 3)).astype(np.float32)


def normal(env, *shape):
    """Return weights."""
    return env.rng(1).normal(size=shape).astype(np.float32)


@program(requires=["flax"], rtol=1e-5)
def dense_after_norm(env):
    """Linen: two layers, applied to parameters that are given."""
    from flax import linen as nn

    params = {"layers_0": {"scale": np.float32([1, 2, 3]), "bias": np.float32([0, 1, 0])}}
    params["layers_1"] = {"kernel": normal(env, 3, 2), "bias": np.float32([1, -1])}
    model = nn.Sequential([nn.LayerNorm(epsilon=1e-6), nn.Dense(2)])

    def run(params, x):
        return model.apply({"params": params}, x)

    def reference(params, x):
        x = x.astype(np.float64)
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6)
        norm, dense = params["layers_0"], params["layers_1"]
        return (x * norm["scale"] + norm["bias"]) @ dense["kernel"] + dense["bias"]

    return Program(run, args=(params, rows(env)), reference=reference)


@program(requires=["flax"], rtol=1e-5)
def attention(env):
    """Linen: attention with a causal mask."""
    from flax import linen as nn

    q, k, v = env.rng(2).normal(size=(3, 5, 2, 4)).astype(np.float32)

    def run(q, k, v):
        mask = nn.make_causal_mask(jnp.ones(5))
        return nn.dot_product_attention(q, k, v, mask=mask)

    def reference(q, k, v):
        q, k, v = (a.astype(np.float64) for a in (q, k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / 2 + np.triu(np.full((5, 5), -np.inf), 1)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)

    return Program(run, args=(q, k, v), reference=reference)


@program(requires=["flax"], rtol=1e-5)
def running_statistics(env):
    """NNX: a step of BatchNorm writes the module's state, also under jit."""
    from flax import nnx

    def run(x):
        norm = nnx.BatchNorm(3, momentum=0.9, rngs=nnx.Rngs(0))

        @nnx.jit
        def train(norm, x):
            return norm(x)

        y = train(norm, x)
        return y, norm.mean.value, norm.var.value

    def reference(x):
        x = x.astype(np.float64)
        y = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
        return y, 0.1 * x.mean(0), 0.9 + 0.1 * x.var(0)

    return Program(run, args=(rows(env),), reference=reference)


@program(requires=["flax"], rtol=1e-5)
def stacked_layers(env):
    """NNX: layers made by vmap, run by scan."""
    from flax import nnx

    kernels = normal(env, 4, 3, 3)

    def run(kernels, x):
        @nnx.vmap(in_axes=0, out_axes=0)
        def stack(kernel):
            layer = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
            layer.kernel.value = kernel
            return layer

        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def forward(x, layer):
            return jnp.tanh(layer(x))

        return forward(x, stack(kernels))

    def reference(kernels, x):
        for kernel in kernels.astype(np.float64):
            x = np.tanh(x @ kernel)
        return x

    return Program(run, args=(kernels, rows(env)), reference=reference)


@program(requires=["flax"], rtol=1e-5)
def gradient_of_a_module(env):
    """NNX: the gradient has the structure of the module's parameters."""
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, first, second):
            self.first, self.second = nnx.Param(first), nnx.Param(second)

        def __call__(self, x):
            return x @ self.first.value @ self.second.value

    def run(first, second, x):
        found = nnx.grad(lambda model: model(x).sum())(Model(first, second))
        return found["first"].value, found["second"].value

    def reference(first, second, x):
        ones = np.ones((len(x), 2))
        return x.T @ ones @ second.T, (x @ first).T @ ones

    first, second = normal(env, 3, 3), normal(env, 3, 2)
    return Program(run, args=(first, second, rows(env)), reference=reference)
