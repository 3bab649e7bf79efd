"""Equinox: modules under jit, grad and vmap, and a loop that can be differentiated."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Program, program


def weights(env):
    """Return the weights of two layers."""
    rng = env.rng(0)
    return [rng.normal(size=shape).astype(np.float32) for shape in ((5, 3), (5,), (2, 5), (2,))]


def network(w0, b0, w1, b1):
    """Return a perceptron with these weights."""
    import equinox as eqx

    made = eqx.nn.MLP(3, 2, 5, 1, key=jax.random.key(0))

    def arrays(module):
        return [array for layer in module.layers for array in (layer.weight, layer.bias)]

    return eqx.tree_at(arrays, made, [w0, b0, w1, b1])


def forward(x, w0, b0, w1, b1):
    """Return what it should compute."""
    return w1.astype(np.float64) @ np.maximum(w0.astype(np.float64) @ x + b0, 0) + b1


@program(requires=["equinox"])
def perceptron(env):
    """A module is a pytree, and may be an argument of a compiled function."""
    x = np.float32([1, -2, 3])
    return Program(lambda x, *w: network(*w)(x), args=(x, *weights(env)), reference=forward)


@program(requires=["equinox"])
def batch_of_one_module(env):
    """The module is not batched, its input is."""
    import equinox as eqx

    x = env.rng(1).normal(size=(4, 3)).astype(np.float32)

    def run(x, *w):
        return eqx.filter_vmap(network(*w))(x)

    def reference(x, *w):
        return np.stack([forward(row, *w) for row in x])

    return Program(run, args=(x, *weights(env)), reference=reference)


@program(requires=["equinox"])
def gradient_of_a_module(env):
    """The gradient is a module; what is no array in it is None."""
    import equinox as eqx

    x = np.float32([1, -2, 3])

    def run(x, *w):
        return eqx.filter_grad(lambda m: m(x).sum())(network(*w)).layers[1].weight

    def reference(x, w0, b0, w1, b1):
        hidden = np.maximum(w0.astype(np.float64) @ x + b0, 0)
        return np.stack([hidden, hidden])

    return Program(run, args=(x, *weights(env)), reference=reference)


@program(requires=["equinox"])
def loop_with_checkpoints(env):
    """A while_loop in reverse mode, which jax itself refuses."""
    import equinox.internal as eqxi

    def run(x):
        def root(x):
            return eqxi.while_loop(
                lambda y: jnp.abs(y * y - x) > 1e-6, lambda y: (y + x / y) / 2, x,
                max_steps=16, kind="checkpointed",
            )  # fmt: skip

        return jax.value_and_grad(root)(x)

    return Program(
        run, args=(np.float32(2),), reference=lambda x: (np.sqrt(2.0), 0.5 / np.sqrt(2.0))
    )


@program(requires=["equinox"])
def error_as_a_value(env):
    """`error_if` raises in a compiled program where its condition holds; here it does not."""
    import equinox as eqx

    def run(x):
        return eqx.error_if(x, (x < 0).any(), "negative") * 2

    return Program(run, args=(np.float32([1, 2]),), reference=lambda x: 2 * x)
