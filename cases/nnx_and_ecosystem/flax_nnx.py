"""Flax NNX with the jax of its day: transformations of modules, and what they do with state.

A module is a Python object with arrays in it; NNX splits it before a transformation and writes
what changed back afterwards. From Flax 0.11 (jax 0.7.1) a module is a pytree, so that plain
`jax.jit` takes it too, and drops what changed without a word.
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

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import data, exact_adam, exact_gradient, exact_loss


class Layer(nnx.Module):
    """`tanh(x @ kernel)`."""

    def __init__(self, kernel):
        self.kernel = nnx.Param(jnp.asarray(kernel))

    def __call__(self, x):  # noqa: D102 - the class says it
        return jnp.tanh(x @ self.kernel[...])


class Counter(nnx.Module):
    """Counts its calls."""

    def __init__(self):
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self):  # noqa: D102 - the class says it
        self.calls.value = self.calls.value + 1
        return self.calls.value


def loss(model, x, y):
    """Return the mean squared error of a layer."""
    return jnp.mean((model(x) - y) ** 2)


def leaf(tree):
    """Return the only leaf of a tree."""
    (only,) = jax.tree_util.tree_leaves(tree)
    return only


def split_gradient(graph, state, x, y):
    """Return the gradient by a module's state, with plain `jax.grad`."""
    return leaf(jax.grad(lambda state: loss(nnx.merge(graph, state), x, y))(state))


GRADIENTS = {
    "grad": lambda m, x, y: leaf(nnx.grad(loss)(m, x, y)),
    "value_and_grad": lambda m, x, y: leaf(nnx.value_and_grad(loss)(m, x, y)[1]),
    "remat": lambda m, x, y: leaf(nnx.grad(nnx.remat(loss))(m, x, y)),
    "jit": lambda m, x, y: leaf(nnx.jit(nnx.grad(loss))(m, x, y)),
    "split": lambda m, x, y: split_gradient(*nnx.split(m), x, y),
}


@program(
    source="google/flax#4286",
    requires=["flax>=0.8.4"],
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
    ],
)
def gradient(env):
    """The gradient of a module's parameter in five ways: all are the closed form."""
    return Program(
        lambda kernel, x, y: {name: way(Layer(kernel), x, y) for name, way in GRADIENTS.items()},
        args=data(env),
        reference=lambda *args: dict.fromkeys(GRADIENTS, exact_gradient(*args)),
    )


@program(
    source="google/flax#4286",
    requires=["flax>=0.8.4"],
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
    ],
)
def loss_of_a_module(env):
    """A module's forward pass and loss, without any transformation of NNX."""
    fn = lambda kernel, x, y: loss(Layer(kernel), x, y)  # noqa: E731 - as short as it is
    return Program(fn, args=data(env), reference=exact_loss)


@probe(
    source="google/flax#3997",
    requires=["flax>=0.8.4"],
    platforms=("cpu",),
    params={
        "nnx_jit": {"way": "nnx_jit"},
        "jax_jit": {"way": "jax_jit"},
        "split": {"way": "split"},
    },
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
        deviation(
            packages={"flax": "<0.11"},
            params=("jax_jit",),
            error="TypeError",
            match="is not a valid JAX type|as an abstract array",
            reason="a module is no pytree yet",
            issue="google/flax#4811",
        ),
        deviation(
            packages={"flax": ">=0.11"},
            params=("jax_jit",),
            outcome="ok",
            reason="what jit updates is a copy",
            issue="google/flax#4811",
        ),
    ],
)
def count_after_two_calls(env, way):
    """A counter in a module after two jitted calls: 2 with `nnx.jit`, 0 with `jax.jit`.

    Plain `jax.jit` refused modules up to Flax 0.10; since they are pytrees it updates a copy.
    Return the module (or its state) from the function if it is to be kept.
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


@probe(
    source="google/flax#4842",
    requires=["flax>=0.8.4"],
    platforms=("cpu",),
    params={
        "before": {"style": "before"},
        "since": {"style": "since"},
        "optax": {"style": "optax"},
    },
    rtol=1e-3,
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
        deviation(
            packages={"flax": ">=0.11"},
            params=("before",),
            error="TypeError",
            match="Missing required argument `wrt`",
            reason="the model goes to update, and wrt must be said",
            issue="google/flax#4842",
        ),
        deviation(
            packages={"flax": "<0.11"},
            params=("since",),
            error="TypeError",
            match="wrt|takes 2 positional arguments but 3 were given",
            reason="wrt is not known yet, or update takes gradients alone",
            issue="google/flax#4842",
        ),
    ],
)
def two_steps_of_adam(env, style):
    """`nnx.Optimizer`, as called before and since Flax 0.11, and optax without it.

    Before: `Optimizer(model, tx)`, `update(gradients)`. Since: `wrt=` when it is made and the
    model in `update`. Using optax on `nnx.state` works with every release.
    """
    kernel, x, y = data(env)
    adam = optax.adam(0.1)

    @jax.jit
    def trained(kernel):
        model = Layer(kernel)
        if style == "optax":
            graph, state = nnx.split(model)
            memory = adam.init(state)
            for _ in range(2):
                slope = jax.grad(lambda s: loss(nnx.merge(graph, s), x, y))(state)
                change, memory = adam.update(slope, memory, state)
                state = optax.apply_updates(state, change)
            return leaf(state)
        keywords = {} if style == "before" else {"wrt": nnx.Param}
        optimizer = nnx.Optimizer(model, adam, **keywords)
        for _ in range(2):
            slope = nnx.grad(loss)(model, x, y)
            optimizer.update(slope) if style == "before" else optimizer.update(model, slope)
        return model.kernel.value

    exact = exact_adam(kernel, [lambda k: exact_gradient(k, x, y)] * 2)
    return Observed(trained(kernel), exact)


class Listed(nnx.Module):
    """Two layers in a plain list or dictionary, or under names of their own."""

    def __init__(self, kernel, kind):
        layers = [Layer(kernel), Layer(kernel)]
        if kind == "names":
            self.first, self.second = layers
        else:
            self.layers = layers if kind == "list" else dict(enumerate(layers))


@probe(
    source="unifyai/ivy#28933",
    requires=["flax>=0.8.4"],
    platforms=("cpu",),
    params={"list": {"kind": "list"}, "dict": {"kind": "dict"}, "names": {"kind": "names"}},
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
        deviation(
            packages={"flax": ">=0.12"},
            params=("list", "dict"),
            error="ValueError",
            match="Found (unexpected Arrays|data) on value of type",
            reason="a container of data must be an nnx.List or nnx.Dict",
            issue="unifyai/ivy#28933",
        ),
    ],
)
def layers_in_a_container(env, kind):
    """Layers in a plain list or dict attribute: a ValueError from Flax 0.12 (jax 0.8.0) on.

    `nnx.List` and `nnx.Dict` are asked for there, and are not known before. Attributes of their
    own (`setattr(self, f"layer{i}", ...)`) work with every release.
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


@probe(
    source="jax-ml/jax@395849bd7a1e",
    requires=["flax>=0.8.4"],
    platforms=("cpu",),
    params={"lax": {"use": "lax"}, "others": {"use": "others"}},
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
        deviation(
            "jax<0.8",
            packages={"flax": ">=0.10.7"},
            params=("lax",),
            error="TypeError",
            match="is not a valid JAX type|No constant handler",
            reason="Flax 0.10.7 and later convert a Param only once it is traced",
        ),
        deviation(
            "jax>=0.8",
            params=("lax",),
            error="ValueError",
            match="Triggering __jax_array__",
            reason="no conversion by __jax_array__ any more",
            issue="jax-ml/jax@395849bd7a1e",
        ),
    ],
)
def parameter_as_an_array(env, use):
    """An `nnx.Param` where an array is expected: arithmetic and jnp take it, `lax` stopped.

    jax 0.8.0 no longer converts by `__jax_array__` there. `param[...]` is an array everywhere.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = jax.tree_util.tree_map(np.asarray, USES[use](nnx.Param(jnp.ones(3))))
    twos, others = 2 * np.ones(3), ("product", "sin", "jit", "brackets")
    return Observed(seen, dict.fromkeys(others, twos) if use == "others" else twos)


@program(
    source="google/flax#4709",
    requires=["flax>=0.10.2"],
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
    ],
)
def scan_over_layers(env):
    """`nnx.scan` over a stack of layers made by `nnx.vmap`: layer after layer."""

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
    records="no standard fixes a stream of random numbers",
    requires=["flax>=0.8.4"],
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
    ],
)
def dropout_mask(env):
    """What `nnx.Dropout` keeps for a seed: another mask with jax 0.5.0 and with Flax 0.11.

    What is kept is doubled, whatever the mask; the mask itself has no reference but its past.
    """

    @jax.jit
    def dropped(x):
        return nnx.Dropout(0.5, rngs=nnx.Rngs(1))(x)

    out = np.asarray(dropped(np.ones(16, np.float32)))
    scaled = sorted(set(out.tolist()))
    return Observed({"scaled": scaled, "kept": "".join(str(int(v > 0)) for v in out)})


@program(
    source="jax-ml/jax#36886",
    requires=["flax>=0.8.4"],
    devices=4,
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="the flax of its day cannot be imported under jax 0.11.2",
            issue="google/flax#5596",
        ),
        deviation(
            "jax==0.6.0",
            params=("check_on",),
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax>=0.6.1",
            params=("check_on",),
            outcome="ok",
            reason="the gradient is summed already, by the transpose of the implicit pvary",
            issue="jax-ml/jax#36886",
        ),
    ],
)
def data_parallel_module(env, check):
    """`pmean(grad(loss))` of a module's state within shard_map: with the check on N times too big.

    NNX changes nothing about jax#36886: the state is replicated, its gradient is summed already.
    """

    def step(kernel, x, y):
        graph, state = nnx.split(Layer(kernel))
        return leaf(lax.pmean(jax.grad(lambda s: loss(nnx.merge(graph, s), x, y))(state), "x"))

    specs = (P(), P("x"), P("x"))
    fn = env.compat.shard_map(
        step, mesh=env.mesh(4, "x"), in_specs=specs, out_specs=P(), check=check
    )
    return Program(fn, args=data(env), reference=exact_gradient)
