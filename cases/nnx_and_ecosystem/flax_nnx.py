"""Flax NNX with each jax release: transformations of modules, and their effects on state.

Each Flax release is the one current at the time of the jax release. A module is a Python object
that holds arrays; NNX splits it before a transformation and writes changes back afterwards. From
Flax 0.11 (jax 0.7.1) on, a module is a pytree, so that plain `jax.jit` accepts it, too, and
silently drops the changes.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import data, exact_adam, exact_gradient, exact_loss

defaults(platforms=("cpu",))


class Layer(nnx.Module):
    """`tanh(x @ kernel)`."""

    def __init__(self, kernel):
        self.kernel = nnx.Param(jnp.asarray(kernel))

    def __call__(self, x):  # noqa: D102 - see the class
        return jnp.tanh(x @ self.kernel[...])


class Counter(nnx.Module):
    """Counts its calls."""

    def __init__(self):
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self):  # noqa: D102 - see the class
        self.calls.value = self.calls.value + 1
        return self.calls.value


def loss(model, x, y):
    """Return the mean squared error of a layer."""
    return jnp.mean((model(x) - y) ** 2)


def get_leaf(tree):
    """Return the only leaf of a tree."""
    (only,) = jax.tree_util.tree_leaves(tree)
    return only


def differentiate_state(graph, state, x, y):
    """Return the gradient with respect to a module's state, with plain `jax.grad`."""
    return get_leaf(jax.grad(lambda state: loss(nnx.merge(graph, state), x, y))(state))


GRADIENTS = {
    "grad": lambda m, x, y: get_leaf(nnx.grad(loss)(m, x, y)),
    "value_and_grad": lambda m, x, y: get_leaf(nnx.value_and_grad(loss)(m, x, y)[1]),
    "remat": lambda m, x, y: get_leaf(nnx.grad(nnx.remat(loss))(m, x, y)),
    "jit": lambda m, x, y: get_leaf(nnx.jit(nnx.grad(loss))(m, x, y)),
    "split": lambda m, x, y: differentiate_state(*nnx.split(m), x, y),
}


FLAX_IMPORT_FAILS = deviation(
    "jax==0.11.2",
    packages={"flax": "<0.12.10"},
    error="AttributeError",
    match="has no attribute 'HiPrimitive'",
    reason="the Flax release current at the time fails to import on jax 0.11.2",
    issue="google/flax#5596",
)


@program(source="google/flax#4286", requires=["flax>=0.8.4"], deviations=[FLAX_IMPORT_FAILS])
def gradient(env):
    """Five ways to differentiate a module's parameter agree with the closed form."""
    return Program(
        lambda kernel, x, y: {
            name: compute(Layer(kernel), x, y) for name, compute in GRADIENTS.items()
        },
        args=data(env),
        reference=lambda *args: dict.fromkeys(GRADIENTS, exact_gradient(*args)),
    )


@program(source="google/flax#4286", requires=["flax>=0.8.4"], deviations=[FLAX_IMPORT_FAILS])
def loss_of_a_module(env):
    """The forward pass and loss of a module are right without a transformation of NNX."""
    fn = lambda kernel, x, y: loss(Layer(kernel), x, y)  # noqa: E731 - a single expression
    return Program(fn, args=data(env), reference=exact_loss)


MODULE_IS_NOT_A_PYTREE = deviation(
    packages={"flax": "<0.11"},
    params=("jax_jit",),
    error="TypeError",
    match="is not a valid JAX type|as an abstract array",
    reason="a module is not a pytree before Flax 0.11",
    issue="google/flax#4811",
)
JIT_UPDATES_A_COPY = deviation(
    packages={"flax": ">=0.11"},
    params=("jax_jit",),
    outcome="ok",
    reason="jit updates a copy of the module",
    issue="google/flax#4811",
)


@probe(
    source="google/flax#3997",
    requires=["flax>=0.8.4"],
    params={
        "nnx_jit": {"way": "nnx_jit"},
        "jax_jit": {"way": "jax_jit"},
        "split": {"way": "split"},
    },
    deviations=[FLAX_IMPORT_FAILS, MODULE_IS_NOT_A_PYTREE, JIT_UPDATES_A_COPY],
)
def count_after_two_calls(env, way):
    """A counter in a module is 2 after two calls under `nnx.jit`, and 0 under `jax.jit`.

    Up to Flax 0.10, plain `jax.jit` refused modules; now that they are pytrees, it updates a copy.
    To keep the changes, return the module (or its state) from the function.
    """
    model = Counter()
    if way == "split":
        graph, state = nnx.split(model)

        @jax.jit
        def step(state):
            inner = nnx.merge(graph, state)
            inner()
            return nnx.state(inner)

        nnx.update(model, step(step(state)))
    else:
        step = (nnx.jit if way == "nnx_jit" else jax.jit)(lambda m: m())
        step(model)
        step(model)
    return Observed({"calls": int(model.calls.value)}, {"calls": 2})


UPDATE_TAKES_THE_MODEL = deviation(
    packages={"flax": ">=0.11"},
    params=("before",),
    error="TypeError",
    match="Missing required argument `wrt`",
    reason="wrt is required, and update takes the model",
    issue="google/flax#4842",
)
UPDATE_TAKES_ONLY_GRADIENTS = deviation(
    packages={"flax": "<0.11"},
    params=("since",),
    error="TypeError",
    match="wrt|takes 2 positional arguments but 3 were given",
    reason="Optimizer has no argument wrt yet, or update takes only gradients",
    issue="google/flax#4842",
)


@probe(
    source="google/flax#4842",
    requires=["flax>=0.8.4"],
    params={
        "before": {"style": "before"},
        "since": {"style": "since"},
        "optax": {"style": "optax"},
    },
    rtol=1e-3,
    deviations=[FLAX_IMPORT_FAILS, UPDATE_TAKES_THE_MODEL, UPDATE_TAKES_ONLY_GRADIENTS],
)
def two_steps_of_adam(env, style):
    """`nnx.Optimizer` is called in another way from Flax 0.11 on; optax without it always works.

    Before: `Optimizer(model, tx)` and `update(gradients)`. From 0.11 on: `wrt=` in the
    constructor, and the model in `update`. Using optax on `nnx.state` works with every release.
    """
    kernel, x, y = data(env)
    adam = optax.adam(0.1)

    @jax.jit
    def trained(kernel):
        model = Layer(kernel)
        if style == "optax":
            graph, state = nnx.split(model)
            opt_state = adam.init(state)
            for _ in range(2):
                slope = jax.grad(lambda s: loss(nnx.merge(graph, s), x, y))(state)
                change, opt_state = adam.update(slope, opt_state, state)
                state = optax.apply_updates(state, change)
            return get_leaf(state)
        keywords = {} if style == "before" else {"wrt": nnx.Param}
        optimizer = nnx.Optimizer(model, adam, **keywords)
        for _ in range(2):
            slope = nnx.grad(loss)(model, x, y)
            optimizer.update(slope) if style == "before" else optimizer.update(model, slope)
        return model.kernel.value

    exact = exact_adam(kernel, [lambda k: exact_gradient(k, x, y)] * 2)
    return Observed(trained(kernel), exact)


class Listed(nnx.Module):
    """Two layers in a plain list, in a plain dictionary, or in an attribute for each."""

    def __init__(self, kernel, kind):
        layers = [Layer(kernel), Layer(kernel)]
        if kind == "names":
            self.first, self.second = layers
        else:
            self.layers = layers if kind == "list" else dict(enumerate(layers))


CONTAINER_MUST_BE_OF_NNX = deviation(
    packages={"flax": ">=0.12"},
    params=("list", "dict"),
    error="ValueError",
    match="Found (unexpected Arrays|data) on value of type",
    reason="a container of data must be an nnx.List or an nnx.Dict",
    issue="unifyai/ivy#28933",
)


@probe(
    source="unifyai/ivy#28933",
    requires=["flax>=0.8.4"],
    params={"list": {"kind": "list"}, "dict": {"kind": "dict"}, "names": {"kind": "names"}},
    deviations=[FLAX_IMPORT_FAILS, CONTAINER_MUST_BE_OF_NNX],
)
def layers_in_a_container(env, kind):
    """Layers in a plain list or dict attribute are a ValueError from Flax 0.12 (jax 0.8.0) on.

    Flax 0.12 requires `nnx.List` or `nnx.Dict`, which not every earlier release has. An attribute
    for each layer (`setattr(self, f"layer{i}", ...)`) works with every release.
    """
    kernel, _, _ = data(env)
    leaves = jax.tree_util.tree_leaves(nnx.state(Listed(kernel, kind)))
    return Observed({"parameters": len(leaves)}, {"parameters": 2})


USES = {
    "lax": lambda p: lax.add(p, jnp.ones(3)),
    "others": lambda p: {
        "product": p * 2,
        "sin": jnp.sin(p) ** 2 + jnp.cos(p) ** 2 + 1,
        "jit": jax.jit(lambda x: x + 1)(p),
        "brackets": lax.add(jnp.ones(3), p[...]),
    },
}


PARAM_CONVERTED_BY_TRACING_ONLY = deviation(
    "jax<0.8",
    packages={"flax": ">=0.10.7"},
    params=("lax",),
    error="TypeError",
    match="is not a valid JAX type|No constant handler",
    reason="Flax 0.10.7 and later convert a Param only when it is traced",
)
NO_CONVERSION_BY_JAX_ARRAY = deviation(
    "jax>=0.8",
    params=("lax",),
    error="ValueError",
    match="Triggering __jax_array__",
    reason="lax no longer converts operands by __jax_array__",
    issue="jax-ml/jax@395849bd7a1e",
)


@probe(
    source="jax-ml/jax@395849bd7a1e",
    requires=["flax>=0.8.4"],
    params={"lax": {"use": "lax"}, "others": {"use": "others"}},
    deviations=[FLAX_IMPORT_FAILS, PARAM_CONVERTED_BY_TRACING_ONLY, NO_CONVERSION_BY_JAX_ARRAY],
)
def parameter_as_an_array(env, use):
    """Arithmetic and jnp accept an `nnx.Param` in place of an array; `lax` no longer does.

    From jax 0.8.0 on, `lax` does not convert by `__jax_array__`. `param[...]` is an array on every
    release.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = jax.tree_util.tree_map(np.asarray, USES[use](nnx.Param(jnp.ones(3))))
    twos, others = 2 * np.ones(3), ("product", "sin", "jit", "brackets")
    return Observed(result, dict.fromkeys(others, twos) if use == "others" else twos)


@program(source="google/flax#4709", requires=["flax>=0.10.2"], deviations=[FLAX_IMPORT_FAILS])
def scan_over_layers(env):
    """`nnx.scan` applies a stack of layers, which `nnx.vmap` makes, layer after layer."""

    def fn(kernels, x):
        layers = nnx.vmap(Layer, in_axes=0, out_axes=0)(kernels)
        run = nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        return run(lambda x, layer: layer(x))(x, layers)

    def exact(kernels, x):
        for kernel in kernels.astype(np.float64):
            x = np.tanh(x @ kernel)
        return x

    kernels = env.rng(5).normal(size=(3, 3, 3)).astype(np.float32)
    return Program(fn, args=(kernels, data(env)[1]), reference=exact)


@probe(
    source="jax-ml/jax#18480",
    records="no standard defines a stream of random numbers",
    requires=["flax>=0.8.4"],
    deviations=[FLAX_IMPORT_FAILS],
)
def dropout_mask(env):
    """The mask of `nnx.Dropout` for a seed changes with jax 0.5.0 and with Flax 0.11.

    Kept elements are doubled with each mask. Only earlier releases are a reference for the mask.
    """

    @jax.jit
    def dropped(x):
        return nnx.Dropout(0.5, rngs=nnx.Rngs(1))(x)

    out = np.asarray(dropped(np.ones(16, np.float32)))
    scaled = sorted(set(out.tolist()))
    return Observed({"scaled": scaled, "kept": "".join(str(int(v > 0)) for v in out)})


REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    params=("check_on",),
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)
GRADIENT_SUMMED_ALREADY = deviation(
    "jax>=0.6.1",
    params=("check_on",),
    outcome="ok",
    reason="the transpose of the implicit pvary has already summed the gradient",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#36886",
    requires=["flax>=0.8.4"],
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[FLAX_IMPORT_FAILS, REPLICATED_COTANGENT, GRADIENT_SUMMED_ALREADY],
)
def data_parallel_module(env, check):
    """`pmean(grad(loss))` of a module's state is N times too big in shard_map with the check on.

    NNX does not change jax#36886: the state is replicated, and its gradient is already summed.
    """

    def step(kernel, x, y):
        graph, state = nnx.split(Layer(kernel))
        return get_leaf(lax.pmean(jax.grad(lambda s: loss(nnx.merge(graph, s), x, y))(state), "x"))

    specs = (P(), P("x"), P("x"))
    fn = env.compat.shard_map(
        step, mesh=env.mesh(4, "x"), in_specs=specs, out_specs=P(), check=check
    )
    return Program(fn, args=data(env), reference=exact_gradient)
