"""Optax: a few steps of an optimiser, its schedules and its clipping, against NumPy."""

import jax
import numpy as np

from conformance.kit import Program, program

STEPS = 12


def descended(env, make):
    """Return a program: some steps down a bowl whose axes differ in steepness."""
    scale = np.float32([1, 4, 9])

    def run(x):
        optimiser = make()

        def step(carry, _):
            x, state = carry
            updates, state = optimiser.update(scale * x, state, x)
            return (x + updates, state), x

        (x, _), path = jax.lax.scan(step, (x, optimiser.init(x)), length=STEPS)
        return x, path

    return run, env.rng(0).normal(size=3).astype(np.float32), scale


@program(requires=["optax"])
def momentum(env):
    """SGD with momentum: the velocity is kept by the optimiser."""
    import optax

    run, start, scale = descended(env, lambda: optax.sgd(0.05, momentum=0.9))

    def reference(x):
        x, velocity, path = x.astype(np.float64), 0, []
        for _ in range(STEPS):
            path.append(x)
            velocity = scale * x + 0.9 * velocity
            x = x - 0.05 * velocity
        return x, np.stack(path)

    return Program(run, args=(start,), reference=reference)


@program(requires=["optax"], rtol=1e-4, atol=1e-5)
def adam(env):
    """Adam with its corrections of the first steps."""
    import optax

    run, start, scale = descended(env, lambda: optax.adam(0.1))

    def reference(x):
        x, m, v, path = x.astype(np.float64), 0, 0, []
        for n in range(1, STEPS + 1):
            path.append(x)
            g = scale * x
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            x = x - 0.1 * (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
        return x, np.stack(path)

    return Program(run, args=(start,), reference=reference)


@program(requires=["optax"], rtol=1e-5)
def clipped(env):
    """Gradients of several arrays, clipped by their common norm."""
    import optax

    gradients = {"w": env.rng(1).normal(size=(4, 3)).astype(np.float32), "b": np.float32([3, 4])}

    def run(gradients):
        clip = optax.clip_by_global_norm(1.0)
        return clip.update(gradients, clip.init(gradients))[0]

    def reference(gradients):
        norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients.values()))
        return {name: g.astype(np.float64) / max(norm, 1) for name, g in gradients.items()}

    return Program(run, args=(gradients,), reference=reference)


@program(requires=["optax"], rtol=1e-5)
def warm_up_and_cosine(env):
    """A learning rate that rises, falls and stays."""
    import optax

    schedule = optax.warmup_cosine_decay_schedule(0.0, 1.0, 4, 16, end_value=0.1)

    def reference(counts):
        down = 0.5 * (1 + np.cos(np.pi * np.clip((counts - 4) / 12, 0, 1)))
        return np.where(counts < 4, counts / 4, 0.9 * down + 0.1)

    return Program(jax.vmap(schedule), args=(np.arange(20),), reference=reference)


@program(requires=["optax"], devices=4, facts={"collectives": {"all-reduce": 1}})
def sharded_step(env):
    """A step of data parallel training: one reduction of the gradient, none of the state."""
    import optax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = env.mesh(4, "x")
    x = env.put(env.rng(2).normal(size=(8, 3)).astype(np.float32), NamedSharding(mesh, P("x")))
    w = env.put(np.float32([1, 2, 3]), NamedSharding(mesh, P()))
    optimiser = optax.adamw(0.1)

    def step(w, x):
        gradient = jax.grad(lambda w: ((x @ w) ** 2).mean())(w)
        updates, _ = optimiser.update(gradient, optimiser.init(w), w)
        return optax.apply_updates(w, updates)

    def reference(w, x):
        # The first step of Adam goes the whole way, whatever the gradient's size.
        g = (2 * (x @ w)[:, None] * x).mean(0)
        return w - 0.1 * (g / (np.abs(g) + 1e-8) + 1e-4 * w)

    return Program(step, args=(w, x), reference=reference)
