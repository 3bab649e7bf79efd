"""Equinox's filtered transformations, and whether libraries can be imported at all.

Equinox reaches into jax's internals (its own while loops, closure conversion, errors at run time),
so an upgrade of jax shows there first.
"""

from __future__ import annotations

import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import data, exact_gradient, exact_loss


@probe(
    source="google/flax#5596",
    platforms=("cpu",),
    params={
        "chex": {"name": "chex"},
        "equinox": {"name": "equinox"},
        "flax": {"name": "flax"},
        "flax.linen": {"name": "flax.linen"},
        "flax.nnx": {"name": "flax.nnx"},
        "optax": {"name": "optax"},
    },
    deviations=[
        deviation(
            "jax==0.11.2",
            packages={"flax": "<0.12.10"},
            params=("flax.nnx",),
            error="AttributeError",
            match="has no attribute 'HiPrimitive'",
            reason="it asks for a name that jax 0.11.2 has not any more",
            issue="google/flax#5596",
        ),
    ],
)
def library_imports(env, name):
    """Whether a library of the day can be imported with this jax, or what the import says.

    The newest of each as of the release's date. A release of jax can be older than the library
    that works with it: NNX, though not Linen, had to wait for Flax 0.12.10 with jax 0.11.2.
    """
    package = name.partition(".")[0]
    if package not in env.cell.versions:
        env.unsupported(f"{package} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(name)
    return Observed({"imported": module.__name__}, {"imported": name})


def layer(kernel):
    """Return an Equinox module with an array, a function and a static number."""
    import equinox as eqx  # noqa: PLC0415 - only where the case needs it

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


@program(
    source="patrick-kidger/equinox#979",
    requires=["equinox>=0.11"],
    platforms=("cpu",),
)
def filtered_gradient(env):
    """The gradient of an Equinox module that holds a function, in four ways."""
    import equinox as eqx  # noqa: PLC0415 - its import is observed as the case is built

    def partition(model, x, y):
        arrays, rest = eqx.partition(model, eqx.is_array)
        return jax.grad(lambda a: loss(eqx.combine(a, rest), x, y))(arrays)

    ways = {
        "filter_grad": eqx.filter_grad(loss),
        "filter_jit": eqx.filter_jit(eqx.filter_grad(loss)),
        "filter_checkpoint": eqx.filter_grad(eqx.filter_checkpoint(loss)),
        "partition": partition,
    }
    return Program(
        lambda kernel, x, y: {name: way(layer(kernel), x, y).kernel for name, way in ways.items()},
        args=data(env),
        reference=lambda *args: dict.fromkeys(ways, exact_gradient(*args)),
    )


@program(source="patrick-kidger/equinox#979", requires=["equinox>=0.11"], platforms=("cpu",))
def filtered_vmap(env):
    """`eqx.filter_vmap` over examples of a loss whose module is not mapped."""
    import equinox as eqx  # noqa: PLC0415 - its import is observed as the case is built

    def fn(kernel, x, y):
        each = eqx.filter_vmap(loss, in_axes=(None, 0, 0))
        return jnp.mean(each(layer(kernel), x, y))

    return Program(fn, args=data(env), reference=exact_loss)


@program(
    source="patrick-kidger/equinox#979",
    xla_flags=["--xla_backend_optimization_level=0"],
    requires=["equinox>=0.11"],
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.4.33",
            error="ValueError",
            match="Closure-converted function called with different dynamic arguments",
            reason="the Equinox of its day closes over types that jax 0.4.33 sees otherwise",
        ),
        deviation(
            "jax==0.4.34",
            error="TypeError",
            match="Custom JVP rule must produce primal and tangent outputs",
            reason="tangents of integers, in the Equinox of its day",
        ),
    ],
)
def gradient_through_a_while_loop(env):
    """Reverse mode through Equinox's own checkpointed while loop, which jax's refuses."""
    import equinox.internal as eqxi  # noqa: PLC0415 - its import is observed as the case is built

    def fn(x):
        def loop(x):
            cond, body = (lambda c: c[0] < 3), (lambda c: (c[0] + 1, jnp.sin(c[1])))
            return eqxi.while_loop(cond, body, (0, x), max_steps=8, kind="checkpointed")[1]

        return jax.grad(lambda x: loop(x).sum())(x)

    def exact(x):
        x = x.astype(np.float64)
        return np.cos(x) * np.cos(np.sin(x)) * np.cos(np.sin(np.sin(x)))

    return Program(fn, args=(env.rng(3).normal(size=4).astype(np.float32),), reference=exact)


@probe(source="patrick-kidger/equinox#979", requires=["equinox>=0.11"], platforms=("cpu",))
def error_at_run_time(env):
    """`eqx.error_if` under jit: raised when the value is bad, with its message, else silent."""
    import equinox as eqx  # noqa: PLC0415 - its import is observed as the case is built

    guarded = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "negative mass"))
    good = guarded(np.float32(1))
    try:
        guarded(np.float32(-1)).block_until_ready()
        told = "nothing"
    except Exception as error:  # noqa: BLE001 - its class differs, its message is asked for
        told = "negative mass" if "negative mass" in str(error) else "something else"
    return Observed([float(good), told], [1.0, "negative mass"])


@probe(
    source="jax-ml/jax#18480",
    records="no standard fixes a stream of random numbers",
    requires=["equinox>=0.11"],
    platforms=("cpu",),
)
def initial_parameters(env):
    """`eqx.nn.Linear` for a key: other parameters from jax 0.5.0 on, within the same bounds.

    The values have no reference but their past; the bounds are 1/sqrt(inputs).
    """
    import equinox as eqx  # noqa: PLC0415 - its import is observed as the case is built

    weight = np.asarray(jax.jit(lambda: eqx.nn.Linear(4, 2, key=jax.random.key(0)).weight)())
    return {"within": bool((np.abs(weight) <= 0.5).all()), "weight": weight}


@probe(
    source="patrick-kidger/equinox#1169",
    records="which names are deprecated is up to jax",
    requires=["equinox>=0.11"],
    platforms=("cpu",),
)
def warnings_of_equinox(env):
    """Deprecation warnings that jax gives while Equinox is imported and used: names that will go.

    There is no right answer to compare with; a warning here is an error some releases on.
    """
    ones = jax.device_put(np.ones(3, np.float32))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import equinox as eqx  # noqa: PLC0415 - its import is what is observed

        eqx.filter_make_jaxpr(eqx.filter_grad(lambda x: jnp.sum(x**2)))(ones)
        eqx.filter_eval_shape(lambda x: x, ones)
    told = {str(one.message).partition("\n")[0][:80] for one in caught}
    return {"told": " | ".join(sorted(line for line in told if "jax" in line))}
