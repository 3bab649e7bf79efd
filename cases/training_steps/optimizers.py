"""Optimisers of optax against NumPy float64, with sharded weights and state.

Three steps on a matrix, whose gradient depends on the matrix, sharded by rows, and by rows and
columns. Optimisers with norms or factored moments communicate.
"""

from __future__ import annotations

import jax
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, probe

from ._helpers import draw

defaults(platforms=("cpu",), devices=4, requires=("optax",), rtol=2e-4, atol=2e-5)

RATE, STEPS = 0.125, 3
B1, B2, EPS = 0.9, 0.999, 1e-8


def _norm(x):
    return np.sqrt((x**2).sum())


# For each optimiser a function (weights, gradient, state, step) -> change, in NumPy. The state is
# a dictionary that keeps arrays between steps.
def _ema(state, key, value, decay, start=0.0):
    state[key] = decay * state.get(key, np.full_like(value, start)) + (1 - decay) * value
    return state[key]


def _adam(p, g, s, t, *, eps=EPS):
    m = _ema(s, "m", g, B1) / (1 - B1**t)
    v = _ema(s, "v", g**2, B2) / (1 - B2**t)
    return -RATE * m / (np.sqrt(v) + eps)


def _momentum(p, g, s, t):
    s["m"] = g + 0.9 * s.get("m", 0.0)
    return -RATE * s["m"]


def _lion(p, g, s, t):
    m = s.get("m", np.zeros_like(g))
    s["m"] = 0.99 * m + 0.01 * g
    return -RATE * (np.sign(0.9 * m + 0.1 * g) + 1e-3 * p)


def _lamb(p, g, s, t):
    u = _adam(p, g, s, t, eps=1e-6) / -RATE
    return -RATE * u * _norm(p) / _norm(u)


def _lars(p, g, s, t):
    s["m"] = -RATE * g * 0.001 * _norm(p) / _norm(g) + 0.9 * s.get("m", 0.0)
    return s["m"]


def _rmsprop(p, g, s, t):
    return -RATE * g / np.sqrt(_ema(s, "v", g**2, 0.9) + EPS)


def _adagrad(p, g, s, t):
    s["v"] = s.get("v", 0.1) + g**2
    return -RATE * g / np.sqrt(s["v"] + 1e-7)


def _adafactor(p, g, s, t):
    decay = 1 - t**-0.8
    square = g**2 + 1e-30
    rows, columns = _ema(s, "r", square.mean(1), decay), _ema(s, "c", square.mean(0), decay)
    u = g * (rows / rows.mean())[:, None] ** -0.5 * columns**-0.5
    return -u / max(1, np.sqrt((u**2).mean())) * RATE * max(np.sqrt((p**2).mean()), 1e-3)


def _clipped(p, g, s, t):
    return _adam(p, g * min(1, 0.5 / _norm(g)), s, t)


OPTIMIZERS = {
    "momentum": (lambda: optax.sgd(RATE, 0.9), _momentum),
    "adam": (lambda: optax.adam(RATE), _adam),
    "adamw": (
        lambda: optax.adamw(RATE, weight_decay=0.1),
        lambda p, *a: _adam(p, *a) - RATE * 0.1 * p,
    ),
    "lion": (lambda: optax.lion(RATE), _lion),
    "lamb": (lambda: optax.lamb(RATE), _lamb),
    "lars": (lambda: optax.lars(RATE), _lars),
    "rmsprop": (lambda: optax.rmsprop(RATE), _rmsprop),
    "adagrad": (lambda: optax.adagrad(RATE), _adagrad),
    "adafactor": (lambda: optax.adafactor(RATE, min_dim_size_to_factor=2), _adafactor),
    "clipped_adam": (
        lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adam(RATE)),
        _clipped,
    ),
}
LAYOUTS = {"rows": ("x",), "both": ("x", "y")}


def _data(env):
    """Return weights and the target that their gradient points away from."""
    return draw(env, 8, 4) + np.float32(0.25), draw(env, 8, 4, seed=1)


def _exact(rule, w, target):
    """Return weights after three steps of an optimiser in NumPy float64."""
    w, target, state = w.astype(np.float64), target.astype(np.float64), {}
    for t in range(1, STEPS + 1):
        w = w + rule(w, w - target, state, t)
    return w


def _steps(optimizer):
    """Return a jitted function of three steps, from the initial state on."""

    def train(w, target):
        state = optimizer.init(w)
        for _ in range(STEPS):
            change, state = optimizer.update(w - target, state, w)
            w = optax.apply_updates(w, change)
        return w

    return jax.jit(train)


@probe(source="google-deepmind/optax#1714", params=[*OPTIMIZERS])
def optimizer(env, name):
    """Three steps are those of the formula, with weights and state sharded on one or two axes."""
    make, rule = OPTIMIZERS[name]
    mesh = env.mesh((2, 2), ("x", "y"))
    w, target = _data(env)
    train = _steps(make())
    observed = {}
    for key, spec in LAYOUTS.items():
        place = NamedSharding(mesh, P(*spec))
        observed[key] = train(jax.device_put(w, place), jax.device_put(target, place))
    return Observed(observed, dict.fromkeys(LAYOUTS, _exact(rule, w, target)))
