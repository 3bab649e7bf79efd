"""Filtered transformations of Equinox, and imports of libraries.

Equinox uses internals of jax (for its own while loops, closure conversion and errors at run time),
so an upgrade of jax shows there first.
"""

from __future__ import annotations

import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import data, exact_gradient, exact_loss

defaults(platforms=("cpu",))


FLAX_IMPORT_FAILS = deviation(
    "jax==0.11.2",
    packages={"flax": "<0.12.10"},
    params=("flax.nnx",),
    error="AttributeError",
    match="has no attribute 'HiPrimitive'",
    reason="flax.nnx uses a name that jax 0.11.2 no longer has",
    issue="google/flax#5596",
)


@probe(
    source="google/flax#5596",
    params={
        "chex": {"name": "chex"},
        "equinox": {"name": "equinox"},
        "flax": {"name": "flax"},
        "flax.linen": {"name": "flax.linen"},
        "flax.nnx": {"name": "flax.nnx"},
        "optax": {"name": "optax"},
    },
    deviations=[FLAX_IMPORT_FAILS],
)
def library_imports(env, name):
    """A library in the release current at the time imports with this jax, or raises an error.

    Each library is the newest as of the date of the jax release. A release of jax can be older than
    the library that works with it: NNX, though not Linen, had to wait for Flax 0.12.10 with
    jax 0.11.2.
    """
    package = name.partition(".")[0]
    if package not in env.cell.versions:
        env.unsupported(f"{package} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(name)
    return Observed({"imported": module.__name__}, {"imported": name})


def make_layer(kernel):
    """Build an Equinox module with an array, a function and a static number."""
    import equinox as eqx  # noqa: PLC0415 - only cases that need Equinox import it

    class Layer(eqx.Module):
        kernel: jax.Array
        activation: object
        power: int = eqx.field(static=True)

        def __call__(self, x):
            return self.activation(x @ self.kernel) ** self.power

    return Layer(jnp.asarray(kernel), jnp.tanh, 1)


def loss(model, x, y):
    """Return the mean squared error of a layer."""
    return jnp.mean((model(x) - y) ** 2)


@program(source="patrick-kidger/equinox#979", requires=["equinox>=0.11"])
def filtered_gradient(env):
    """Four ways to differentiate an Equinox module with a function agree with the closed form."""
    import equinox as eqx  # noqa: PLC0415 - a failing import is an outcome of the case

    def partition(model, x, y):
        arrays, rest = eqx.partition(model, eqx.is_array)
        return jax.grad(lambda a: loss(eqx.combine(a, rest), x, y))(arrays)

    gradients = {
        "filter_grad": eqx.filter_grad(loss),
        "filter_jit": eqx.filter_jit(eqx.filter_grad(loss)),
        "filter_checkpoint": eqx.filter_grad(eqx.filter_checkpoint(loss)),
        "partition": partition,
    }
    return Program(
        lambda kernel, x, y: {
            name: gradient(make_layer(kernel), x, y).kernel for name, gradient in gradients.items()
        },
        args=data(env),
        reference=lambda *args: dict.fromkeys(gradients, exact_gradient(*args)),
    )


@program(source="patrick-kidger/equinox#979", requires=["equinox>=0.11"])
def filtered_vmap(env):
    """`eqx.filter_vmap` maps a loss over examples and leaves its module unmapped."""
    import equinox as eqx  # noqa: PLC0415 - a failing import is an outcome of the case

    def fn(kernel, x, y):
        each = eqx.filter_vmap(loss, in_axes=(None, 0, 0))
        return jnp.mean(each(make_layer(kernel), x, y))

    return Program(fn, args=data(env), reference=exact_loss)


CLOSURE_TYPES_DIFFER = deviation(
    "jax==0.4.33",
    error="ValueError",
    match="Closure-converted function called with different dynamic arguments",
    reason="the Equinox release at the time closes over types that jax 0.4.33 treats differently",
)
INTEGER_TANGENTS_REFUSED = deviation(
    "jax==0.4.34",
    error="TypeError",
    match="Custom JVP rule must produce primal and tangent outputs",
    reason="a JVP rule of the Equinox release at the time fails on tangents of integers",
)


@program(
    source="patrick-kidger/equinox#979",
    xla_flags=["--xla_backend_optimization_level=0"],
    requires=["equinox>=0.11"],
    deviations=[CLOSURE_TYPES_DIFFER, INTEGER_TANGENTS_REFUSED],
)
def gradient_through_a_while_loop(env):
    """Equinox's checkpointed while loop has a reverse mode; jax's while loop has none."""
    import equinox.internal as eqxi  # noqa: PLC0415 - a failing import is an outcome of the case

    def fn(x):
        def loop(x):
            cond, body = (lambda c: c[0] < 3), (lambda c: (c[0] + 1, jnp.sin(c[1])))
            return eqxi.while_loop(cond, body, (0, x), max_steps=8, kind="checkpointed")[1]

        return jax.grad(lambda x: loop(x).sum())(x)

    def exact(x):
        x = x.astype(np.float64)
        return np.cos(x) * np.cos(np.sin(x)) * np.cos(np.sin(np.sin(x)))

    return Program(fn, args=(env.rng(3).normal(size=4).astype(np.float32),), reference=exact)


@probe(source="patrick-kidger/equinox#979", requires=["equinox>=0.11"])
def error_at_run_time(env):
    """`eqx.error_if` under jit raises its message for a bad value, and is silent otherwise."""
    import equinox as eqx  # noqa: PLC0415 - a failing import is an outcome of the case

    guarded = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "negative mass"))
    good = guarded(np.float32(1))
    try:
        guarded(np.float32(-1)).block_until_ready()
        message = "nothing"
    except Exception as error:  # noqa: BLE001 - its class varies; the message is compared
        message = "negative mass" if "negative mass" in str(error) else "something else"
    return Observed([float(good), message], [1.0, "negative mass"])


@probe(
    source="jax-ml/jax#18480",
    records="no standard defines a stream of random numbers",
    requires=["equinox>=0.11"],
)
def initial_parameters(env):
    """`eqx.nn.Linear` gives other parameters for a key from jax 0.5.0 on, in the same bounds.

    Only earlier releases are a reference for the values; the bounds are 1/sqrt(inputs).
    """
    import equinox as eqx  # noqa: PLC0415 - a failing import is an outcome of the case

    weight = np.asarray(jax.jit(lambda: eqx.nn.Linear(4, 2, key=jax.random.key(0)).weight)())
    return {"within": bool((np.abs(weight) <= 0.5).all()), "weight": weight}


@probe(
    source="patrick-kidger/equinox#1169",
    records="jax decides which names are deprecated",
    requires=["equinox>=0.11"],
)
def warnings_of_equinox(env):
    """Importing and using Equinox shows deprecation warnings of jax: names that will be removed.

    There is no right answer to compare with; a warning here becomes an error some releases later.
    """
    ones = jax.device_put(np.ones(3, np.float32))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import equinox as eqx  # noqa: PLC0415 - the case observes warnings of the import

        eqx.filter_make_jaxpr(eqx.filter_grad(lambda x: jnp.sum(x**2)))(ones)
        eqx.filter_eval_shape(lambda x: x, ones)
    messages = {str(warning.message).partition("\n")[0][:80] for warning in caught}
    return {"told": " | ".join(sorted(line for line in messages if "jax" in line))}
